"""What a study is going to do: everything is decided before anything runs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from regaug.data import standardize
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.splits import random_split
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.problems import LoadedSplits, Problem
from regaug.runs.tasks import make_tasks
from regaug.studies import plan as module
from regaug.studies.config import StudyConfig
from regaug.studies.plan import make_plan, plan_runs
from regaug.studies.search import draw_settings
from regaug.training.recipe import default_recipe, draw_recipes
from regaug.training.settings import Settings

METHODS = ("erm", "c-mixup", "foma-rho")


@pytest.fixture(autouse=True)
def _few_baselines(monkeypatch):
    monkeypatch.setattr(module, "baseline_names", lambda split: ("mean", "ridge"))


def make_problem(n=60, splits=3, **options):
    return Problem.from_table(make_manifold("paraboloid", n=n, noise=0.3), splits=splits, **options)


def make_runs(methods=METHODS, trials=7, splits=5, seed=0):
    config = StudyConfig("p", tuple(methods), ("mean",), trials, splits, "rmse", 0.25, seed=seed)
    recipes = draw_recipes(4, seed=seed, rows=36)
    own = {
        name: [
            replace(recipes[0], method_settings=settings)
            for settings in draw_settings(name, trials, seed=seed)
        ]
        for name in methods
    }
    return plan_runs(config, recipes, own)


# Runs


def test_a_plan_has_every_recipe_and_every_trial_of_every_method_on_every_split():
    runs = make_runs()
    assert len(runs) == 4 * 5 + 3 * 7 * 5 + 5
    assert len({(run.stage, run.method, run.split, run.trial) for run in runs}) == len(runs)
    assert len({run.key for run in runs}) == len(runs)
    stages = {run.stage: {own.method for own in runs if own.stage == run.stage} for run in runs}
    assert stages == {None: {"mean"}, "recipe": {"erm"}, "method": set(METHODS)}


def test_the_settings_of_a_trial_are_the_same_on_every_split_and_the_seeds_differ():
    runs = [run for run in make_runs() if not run.is_baseline]
    tried = {}
    for run in runs:
        place = run.stage, run.method, run.trial
        tried.setdefault(place, []).append(replace(run.settings, seed=0))
    assert all(settings == own[0] for own in tried.values() for settings in own)
    assert len({run.seed for run in runs}) == len(runs)
    assert all(run.settings.seed == run.seed for run in runs)


def test_a_plan_with_more_methods_trials_and_splits_contains_the_smaller_one():
    small = {run.key for run in make_runs(("erm", "foma-rho"), trials=3, splits=2)}
    assert small < {run.key for run in make_runs(trials=5, splits=3)}
    assert not small & {run.key for run in make_runs(seed=1) if not run.is_baseline}


def test_baselines_and_early_trials_come_first():
    runs = make_runs(trials=20, splits=10)
    assert [run.stage for run in runs[:11]] == [None] * 10 + ["recipe"]
    later = [run for run in runs if run.stage == "method"]
    tasks = make_tasks(later, {"p": make_problem()})
    firsts = [task[0].trial for task in tasks]
    assert firsts == sorted(firsts)
    assert [task[0].method for task in tasks[:3]] == list(METHODS)
    assert all(task[0].trial == 0 for task in tasks[:3])


# Configurations


def test_the_defaults_are_those_of_the_documentation():
    plan = make_plan(make_problem(splits=10))
    assert (len(plan.config.methods), plan.config.trials, plan.config.splits) == (9, 6, 10)
    assert plan.config.recipes == 12
    assert sum(not run.is_baseline for run in plan.runs) == (12 + 9 * 6) * 10
    quick = make_plan(make_problem(splits=5), quick=True).config
    assert (len(quick.methods), quick.trials, quick.recipes) == (5, 3, 6)
    few = make_plan(make_problem(), quick=True, trials=2).config
    assert (few.trials, few.recipes) == (2, 6)


@pytest.mark.parametrize("methods", [["mixup"], ["mixup", "erm"], ["mixup", "mixup"]])
def test_plain_training_is_always_there_and_no_method_twice(methods):
    plan = make_plan(make_problem(splits=1), methods=methods, trials=1)
    assert set(plan.config.methods) == {"erm", "mixup"}
    others = sorted(run.method for run in plan.runs if run.stage != "recipe")
    assert others == ["erm", "mean", "mixup", "ridge"]


def test_a_plan_is_the_same_for_everybody():
    plan, other = (make_plan(make_problem(), methods=METHODS, trials=4) for _ in range(2))
    assert plan.config == other.config
    assert plan.runs == other.runs
    assert json.loads(json.dumps(plan.config.to_dict())) == json.loads(
        json.dumps(other.config.to_dict())
    )


def test_the_configuration_says_what_the_data_are():
    config = make_plan(make_problem(100), trials=1).config
    assert (config.rows, config.columns, config.targets, config.splits) == (100, 2, 1, 3)
    assert config.hidden == (64, 64)
    other = make_plan(make_problem(100, seed=1), trials=1).config
    assert other.checksum != config.checksum
    assert replace(other, checksum=config.checksum) == config


def test_the_test_share_counts_validation_rows_as_training_rows():
    assert make_plan(make_problem(100), trials=1).config.test_share == pytest.approx(20 / 80)


def test_other_recipes_make_another_study(monkeypatch, shorten):
    config = make_plan(make_problem(), trials=1).config
    shorten(monkeypatch, 9)
    other = make_plan(make_problem(), trials=1).config
    assert other.recipe != config.recipe
    assert replace(other, recipe=config.recipe) == config


def make_own_net(split):
    return nn.Linear(split.train.x.shape[1], 1)


def test_a_network_of_ones_own_gets_what_a_recipe_says_of_any_network():
    problem = make_problem()
    own, tables = (
        make_plan(replace(problem, model=model), trials=2, methods=["mixup"])
        for model in (make_own_net, None)
    )
    for run, other in zip(own.runs, tables.runs, strict=True):
        assert (run.method, run.seed, run.stage) == (other.method, other.seed, other.stage)
        if run.settings is not None:
            for name in ("learning_rate", "weight_decay", "batch_size", "epochs", "metric"):
                assert getattr(run.settings, name) == getattr(other.settings, name)
    first = next(run for run in own.runs if run.stage == "recipe")
    assert first.settings.learning_rate == default_recipe(36).learning_rate


def test_settings_may_be_given_and_are_the_only_ones():
    own = {
        name: Settings(epochs=2, method_settings={"alpha": 0.5} if name == "mixup" else {})
        for name in ("erm", "mixup")
    }
    plan = make_plan(make_problem(), methods=["erm", "mixup"], settings=own, baselines=False)
    assert plan.config.trials == 1
    assert plan.config.baselines == ()
    assert (len(plan.runs), plan.config.recipes) == (6, 0)
    assert {run.stage for run in plan.runs} == {"method"}
    for run in plan.runs:
        assert replace(run.settings, seed=0) == own[run.method]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"methods": ["fomma"]}, UnknownNameError, "Unknown method 'fomma'. Did you mean 'foma'"),
        ({"trials": 0}, ArgumentError, "`trials` must be"),
        ({"seed": -1}, ArgumentError, "`seed` must be"),
        ({"search": "grid"}, ArgumentError, "`search` must be one of 'random', 'tpe'"),
    ],
)
def test_what_cannot_be_done_is_said(options, error, message):
    with pytest.raises(error, match=message):
        make_plan(make_problem(), **options)


# The logarithm


def make_skewed(change=lambda y: y, n=100):
    x = np.random.default_rng(0).standard_normal((n, 2))
    info = Info(name="prices", task="table", metric="rmse", split="At random.")
    y = change(np.exp(3 + 1.5 * x[:, 0]))
    data = ArrayData(x, y, info=info, rule=lambda seed: random_split(n, seed=seed))
    return Problem.from_table(data, splits=2)


def test_half_the_recipes_fit_the_logarithm_of_a_skewed_positive_target():
    plan = make_plan(make_skewed(), trials=4, methods=["erm"])
    assert plan.notes == ["The target is positive and skewed: half the recipes fit its logarithm."]
    logs = [run.log for run in plan.runs if run.stage == "recipe" and run.split == 0]
    assert logs == [False, True] * 4
    beside = [(run.method, run.trial, run.log) for run in plan.runs if run.is_baseline]
    assert ("mean", None, False) in beside
    for name in ("ridge",):
        own = [one for one in beside if one[0] == name]
        assert own == [(name, 0, False)] * 2 + [(name, 1, True)] * 2


@pytest.mark.parametrize("change", [lambda y: -y, lambda y: y - y.min(), np.log])
def test_no_other_target_is_fitted_by_its_logarithm(change):
    plan = make_plan(make_skewed(change), trials=2)
    assert plan.notes == []
    assert not any(run.log for run in plan.runs)


def test_a_target_whose_scale_is_given_is_not_fitted_by_its_logarithm():
    skewed = make_skewed()
    scaled = [replace(standardize(split), **split.parts) for split in skewed.splits]
    problem = Problem(scaled, is_scaled=True)
    assert not any(run.log for run in make_plan(problem, trials=2, methods=["erm"]).runs)
    named = replace(problem, is_scaled=False, splits=LoadedSplits(scaled.__getitem__, 2))
    assert not any(run.log for run in make_plan(named, trials=2, methods=["erm"]).runs)


def test_settings_that_are_given_and_scaled_targets_are_left_as_they_are():
    skewed = make_skewed()
    own = {"erm": Settings(epochs=2)}
    given = make_plan(skewed, methods=["erm"], settings=own)
    scaled = make_plan(replace(skewed, is_scaled=True), methods=["erm"], trials=2)
    assert not any(run.log for run in (*given.runs, *scaled.runs))
