"""The study: decided by its seed, continued by the same call, honest about what it leaves out."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from regaug.data import load, read_table
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.datasets.series import SeriesData
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.splits import random_split
from regaug.ensemble import Ensemble
from regaug.exceptions import ArgumentError, ArgumentTypeError, StoreError, UnknownNameError
from regaug.problems import Problem
from regaug.runs import record as record_module
from regaug.runs import tasks
from regaug.runs.store import Store
from regaug.runs.tasks import Workforce, make_tasks
from regaug.runs.worker import Worker
from regaug.studies import plan as module
from regaug.studies import targets as targets_module
from regaug.studies.compare import compare, run_plan
from regaug.studies.facts import read_facts
from regaug.studies.folders import Place
from regaug.studies.latest import find_study
from regaug.studies.plan import make_plan
from regaug.studies.progress import Progress
from regaug.studies.rounds import plan_rounds
from regaug.studies.study import Study
from regaug.studies.targets import TARGETS
from regaug.training.recipe import draw_recipes

METHODS = ("erm", "c-mixup", "foma-rho")
BESIDE = ("nets", "auto", "mean", "ridge")
SIZE = {"methods": METHODS, "trials": 4}
RECIPES = 8
RUNS = RECIPES * 3 + 3 * 4 * 3 + 2 * 3


def make_small(patch):
    """Make studies small: the length of a training and the baselines are no arguments of theirs."""
    patch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge"))
    patch.setattr(module, "draw_recipes", lambda *n, **o: short_recipes(*n, **o, epochs=6))


def short_recipes(count, *, epochs, **options):
    """Recipes with batches of three sizes, so that no method is done in one piece."""
    own = draw_recipes(count, **options)
    sizes = [16, 32, 24]
    return [
        replace(recipe, epochs=epochs, patience=3, batch_size=sizes[number % 3])
        for number, recipe in enumerate(own)
    ]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    make_small(monkeypatch)


def make_data(n=60, seed=0):
    return make_manifold("paraboloid", n=n, noise=0.3, seed=seed)


def make_problem(seed=0, *, data=None, metric="rmse", splits=3):
    """The problem of a table, with a small net."""
    data = data or make_data()
    problem = Problem.from_table(data, splits=splits, metric=metric, seed=seed)
    return replace(problem, hidden=(8,))


def tasks_of(study, trials=4):
    """Return the tasks of a finished study in the order in which one process does them."""
    problem = make_problem()
    plan = make_plan(problem, methods=METHODS, trials=4)
    found = {own.run.key: own for own in study.records}
    rounds = plan_rounds(plan.runs, lambda: found, config=plan.config)
    is_late = lambda run: run.stage == "method" and run.trial >= trials  # noqa: E731
    runs = [[run for run in own if not is_late(run)] for own in rounds]
    return [task for own in runs for task in make_tasks(own, {problem.name: problem})]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that nothing has disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return compare(make_problem(), out=tmp_path_factory.mktemp("whole") / "runs", **SIZE)


def check_same(study, other):
    assert study.comparison == other.comparison
    assert study.verdict == other.verdict
    assert study.best == other.best
    assert study.trials == other.trials


def count_lines(folder):
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("runs-*.jsonl"))


# The seed decides.


def test_the_same_seed_gives_the_same_table_bit_for_bit(whole):
    torch.rand(7)  # whatever else a process does with the global generator
    check_same(compare(make_problem(), **SIZE), whole)


@pytest.mark.serial
def test_two_processes_give_the_table_of_one(whole):
    check_same(compare(make_problem(), jobs=2, **SIZE), whole)


def test_another_seed_gives_another_table(whole):
    other = compare(make_problem(seed=1), seed=1, **SIZE)
    for row in other.comparison.rows:
        assert row.errors != whole.comparison.row(row.name).errors


def test_global_state_is_left_alone():
    before = torch.get_rng_state(), torch.get_num_threads(), signal.getsignal(signal.SIGINT)
    compare(make_problem(), trials=1, methods=["erm"])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), signal.getsignal(signal.SIGINT)) == before[1:]


def test_a_study_has_what_was_asked_for(whole):
    assert whole.trials == 4
    assert {row.name for row in whole.comparison.rows} == {*METHODS, *BESIDE}
    assert all(len(own) == 3 for own in (*whole.chosen.values(), *whole.scores.values()))
    assert all(row.n_failed == 0 for row in whole.comparison.rows)
    for method in METHODS:
        assert [own.run.split for own in whole.chosen[method]] == [0, 1, 2]
        assert {own.run.method for own in whole.chosen[method]} == {method}
        assert whole.details[method].single is not None
    assert whole.config.recipes == RECIPES
    assert whole.steps.names[0] == "default recipe, single net"
    assert whole.steps.names[-1] == "blend"


def test_every_method_is_trained_by_the_best_recipes_of_its_split(whole):
    def rank(record):
        return record.validation_error("rmse")

    for split in range(3):
        own = [record for record in whole.records if record.run.split == split]
        recipes = sorted([r for r in own if r.run.stage == "recipe"], key=rank)
        assert len(recipes) == RECIPES
        for record in own:
            if record.run.stage == "method":
                run, recipe = record.run, recipes[record.run.trial % 3].run
                for name in ("learning_rate", "weight_decay", "batch_size", "epochs"):
                    assert getattr(run.settings, name) == getattr(recipe.settings, name)


def test_what_is_compared_is_the_ensemble_of_a_methods_runs(whole):
    for name in METHODS:
        errors = [own.rmse for own in whole.scores[name]]
        assert whole.comparison.row(name).errors == tuple(errors)
        assert errors != [own.score("test", "rmse") for own in whole.chosen[name]]
    frame = whole.to_frame().set_index("name")
    singles = [own.score("test", "rmse") for own in whole.chosen["erm"]]
    assert frame.loc["erm", "single"] == pytest.approx(np.mean(singles))
    spent = whole.runs_frame().query("stage == 'method'").groupby("method")["epochs"].sum()
    for name in METHODS:
        assert frame.loc[name, "epochs"] == spent[name]


def test_a_folder_without_its_targets_says_so_and_the_same_call_writes_them(tmp_path):
    options = {"methods": ["erm"], "trials": 1, "out": tmp_path}
    study = compare(make_problem(), **options)
    (study.folder / TARGETS).unlink()
    with pytest.raises(StoreError, match=r"lacks targets\.safetensors.* Run the command"):
        Study.open(tmp_path)
    check_same(compare(make_problem(), **options), study)
    check_same(Study.open(tmp_path), study)


def test_where_no_predictions_are_kept_single_nets_are_compared(tmp_path, monkeypatch):
    for place in (record_module, targets_module):
        monkeypatch.setattr(place, "MOST_NUMBERS", 1)
    study = compare(make_problem(), methods=["mixup"], trials=2, out=tmp_path)
    assert {row.name for row in study.comparison.rows} == {"erm", "mixup", "mean", "ridge"}
    for name in ("erm", "mixup"):
        singles = tuple(own.score("test", "rmse") for own in study.chosen[name])
        assert study.comparison.row(name).errors == singles
    assert not (study.folder / TARGETS).exists()
    check_same(Study.open(tmp_path), study)


def test_the_folder_of_an_earlier_version_is_refused_with_the_way_out(tmp_path):
    config = make_plan(make_problem(), methods=METHODS, trials=4).config.to_dict()
    older = {name: v for name, v in config.items() if name not in ("recipe", "recipes")}
    Store(tmp_path, {**older, "epochs": 200, "patience": 20})
    plan = make_plan(make_problem(), methods=METHODS, trials=4)
    with pytest.raises(StoreError, match=r"another version of regaug has written it.*--out"):
        run_plan(plan, Place(tmp_path), Workforce())
    with pytest.raises(StoreError, match=r"another version of regaug.*--out"):
        Study.open(tmp_path)


def test_a_table_and_its_problem_are_the_same_study():
    data = make_data()
    problem = Problem.from_table(data, splits=2, metric="mae", seed=4)
    options = {"methods": ["mixup"], "trials": 1, "seed": 4}
    study = compare(problem, **options)
    check_same(compare(data, splits=2, metric="mae", **options), study)
    assert study.config.metric == "mae"


def test_without_a_folder_nothing_is_kept(whole):
    study = compare(make_problem(), trials=1, methods=["erm"])
    assert study.folder is None
    assert whole.folder is not None


# What cannot be done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["fomma"]}, "Unknown method 'fomma'. Did you mean 'foma'"),
        ({"metric": "rsme"}, "`metric` must be .*'rmse'.*got 'rsme'"),
        ({"trials": 0}, "`trials` must be"),
        ({"splits": 0}, "`splits` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"jobs": 0}, "`jobs` must be"),
        ({"max_minutes": 0.0}, "`max_minutes` must be"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_done(tmp_path, options, message):
    with pytest.raises((ArgumentError, UnknownNameError), match=message):
        compare(make_data(), out=tmp_path / "runs", **options)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("data", ["houses.csv", pd.DataFrame({"a": [1.0]}), 7, make_data().split()])
def test_what_is_no_data_is_refused(data):
    with pytest.raises(
        ArgumentTypeError, match="`data` must be a table .* a list of splits, .*with"
    ):
        compare(data)


def test_a_problem_has_its_own_metric():
    with pytest.raises(
        ArgumentError, match="`metric` must be that of the problem, 'mae', got 'r2'"
    ):
        compare(make_problem(metric="mae"), metric="r2")


@pytest.mark.parametrize("data", [[], [1], ()])
def test_what_is_no_list_of_splits_is_refused(data):
    with pytest.raises(ArgumentTypeError, match="`splits` must be a list of splits"):
        compare(data)


@pytest.mark.parametrize(
    "data", [make_data(), [make_data().split()], make_problem()], ids=["table", "splits", "problem"]
)
def test_a_target_is_refused_where_the_data_know_theirs(data):
    with pytest.raises(
        ArgumentError, match="`target` must be None for data that knows its columns"
    ):
        compare(data, target="y")


def test_data_that_is_no_table_is_refused():
    info = Info(name="waves", task="series", metric="rmse", split="By time.")
    series = SeriesData(np.random.default_rng(0).random((90, 2)), info=info, window=6, horizon=1)
    with pytest.raises(ArgumentError, match="`data` must be a table, got waves, a series data set"):
        compare(series)
    with pytest.raises(ArgumentError, match=r"`splits` must have their inputs in memory"):
        compare([series.split()])


# Data of all kinds


def test_splits_may_be_given_and_are_used_as_they_are():
    splits = [make_data(seed=seed).split() for seed in range(3)]
    study = compare(splits, methods=["mixup"], trials=1, splits=7)
    assert study.comparison.n_splits == 3
    mean = study.comparison.row("mean").errors
    for error, split in zip(mean, splits, strict=True):
        expected = (split.test.y - split.train.y.mean()).square().mean().sqrt().item()
        assert error == pytest.approx(expected, rel=1e-5)


def test_independent_splits_have_narrower_intervals_of_the_same_means():
    splits = [make_data(seed=seed).split() for seed in range(3)]
    study, other = (
        compare(splits, methods=["mixup"], trials=1, independent=independent)
        for independent in (True, False)
    )
    assert study.comparison.independent
    for row in study.comparison.rows:
        overlapping = other.comparison.row(row.name)
        assert row.errors == overlapping.errors
        assert row.high - row.low < overlapping.high - overlapping.low


def make_net(split):
    return nn.Sequential(nn.Linear(split.train.x.shape[1], 6), nn.Tanh(), nn.Linear(6, 1))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A study of somebody's own network on two splits of their own."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        splits = [make_data(seed=seed).split() for seed in range(2)]
        problem = Problem(splits, model=make_net, metric="mae", name="mine")
        out = tmp_path_factory.mktemp("own")
        return compare(problem, methods=["mixup"], trials=1, epochs=6, out=out)


def test_a_network_of_ones_own_goes_through_the_same_study(own):
    assert own.config.problem == "mine"
    assert own.config.hidden == ()
    assert own.comparison.metric == "mae"
    assert {row.name for row in own.comparison.rows} == {"erm", "mixup", *BESIDE}
    assert all(row.n_failed == 0 for row in own.comparison.rows)
    record = own.chosen["mixup"][0]
    assert record.epochs == len(record.curves["validation"]) == 6
    check_same(Study.open(own.folder), own)


def test_the_folder_of_ones_own_network_has_a_report_that_speaks_of_it_and_no_model(own):
    names = {path.name for path in own.folder.iterdir() if not path.name.startswith("runs-")}
    assert names == {"study.json", "report.html", TARGETS, "about.json", "nets"}
    page = (own.folder / "report.html").read_text(encoding="utf-8")
    assert "fully connected" not in page
    assert "MLP(" not in page
    assert "problem.make_net(split, seed=0)" in page
    assert "regaug fit" not in page
    with pytest.raises(ArgumentError, match="this study is of another network"):
        own.model(make_data())


def make_skewed(n=100):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 2))
    info = Info(name="prices", task="table", metric="rmse", split="At random.")
    y = np.exp(3 + 1.5 * x[:, 0])
    return ArrayData(x, y, info=info, rule=lambda seed: random_split(n, seed=seed))


def test_the_logarithm_wins_where_the_target_is_linear_in_it(monkeypatch, shorten):
    monkeypatch.setattr(module, "draw_recipes", draw_recipes)
    shorten(monkeypatch, 60)
    study = compare(make_skewed(), trials=4, splits=2, methods=["erm"])
    # exp(3 + 1.5 x) is linear in x on the log scale: that must win, and be scored in own units.
    assert all(own.run.log for own in study.chosen["erm"])
    assert study.best["erm"].log
    plain, mean = (study.comparison.row(name).mean for name in ("erm", "mean"))
    assert plain < mean / 100


def make_frame(n=90):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 2))
    return pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "city": [f"city {i % 9}" for i in range(n)],
            "day": np.arange(n),
            "price": x.sum(axis=1) + rng.standard_normal(n),
            "rent": x[:, 0],
        }
    )


def test_a_path_and_a_frame_with_a_target_are_the_table_they_hold(tmp_path):
    frame = make_frame().drop(columns=["city", "day"])
    frame.to_csv(tmp_path / "houses.csv", index=False)
    options = {"methods": ["mixup"], "trials": 1, "splits": 2}
    expected = compare(read_table(frame, target="price"), **options)
    for source in (frame, tmp_path / "houses.csv", str(tmp_path / "houses.csv")):
        study = compare(source, target="price", **options)
        assert study.comparison == expected.comparison
        assert study.config.columns == 3
    both = compare(frame, target=["price", "rent"], **options)
    assert (both.config.columns, both.config.targets) == (2, 2)


def test_a_frame_may_have_groups_times_and_columns_to_leave_out():
    options = {"methods": ["mixup"], "trials": 1, "splits": 2}
    for columns in ({"group": "city", "drop": ["rent", "day"]}, {"time": "day", "drop": "rent"}):
        expected = compare(read_table(make_frame(), target="price", **columns), **options)
        study = compare(make_frame(), target="price", **columns, **options)
        assert study.comparison == expected.comparison
    with pytest.raises(ArgumentError, match="`group` must be None for data that knows its columns"):
        compare(make_data(), group="city")
    with pytest.raises(ArgumentError, match="`drop` must be None for data that knows its columns"):
        compare([make_data().split()], drop=["rent"])


def test_a_likely_leak_is_told_before_anything_runs_in_the_verdict_and_in_the_checks(tmp_path):
    frame, told = make_frame().assign(usd=lambda f: f["price"] * 1.1), []
    options = {"methods": ["mixup"], "trials": 1, "splits": 2, "drop": ["city", "day", "rent"]}
    study = compare(frame, target="price", out=tmp_path, progress=told.append, **options)
    leak = "Likely leak: 'usd' is, but for its unit, the target 'price'."
    assert not told[0].records
    assert leak in told[0].notes[0]
    again = Study.open(study.folder)
    for own in (study, again):
        assert own.verdict.text.startswith(leak)
        assert "--drop usd" in own.verdict.text
        assert {check.code for check in own.checks} >= {"R9"}
    assert "Likely leak" in (study.folder / "report.html").read_text()


def test_groups_are_held_out_whole_and_have_scores_of_their_own():
    data = read_table(make_frame(), target="price", group="city", drop=["rent", "day"])
    problem = make_problem(data=data, splits=2)
    study = compare(problem, methods=["mixup"], trials=1)
    for split, own in zip(problem.splits, study.chosen["mixup"], strict=True):
        scores = own.scores["test"]
        assert scores.groups.keys() == set(split.test.groups)
        assert not set(split.test.groups) & {*split.train.groups, *split.validation.groups}
        assert scores.worst("rmse")[1] > scores.rmse


def test_the_rule_of_a_split_can_be_chosen():
    data = read_table(make_frame(), target="price", group="city", drop=["rent", "day"])
    study = compare(data, split="random", methods=["erm"], trials=1, splits=2)
    groups = study.chosen["erm"][0].scores["test"].groups
    assert len(groups) > 3  # of nine cities, of which two or three would be held out whole
    with pytest.raises(ArgumentError, match="`split` must be None for data that knows how"):
        compare(make_data(), split="random")


def test_data_split_by_time_has_one_split_and_says_so():
    data = read_table(make_frame(), target="price", time="day", drop=["rent", "city"])
    study = compare(data, methods=["mixup"], trials=2)
    assert study.comparison.n_splits == 1
    assert study.verdict.recommended == "erm"
    assert "single split" in study.verdict.text


def test_several_targets_are_compared_together():
    data = read_table(make_frame(), target=["price", "rent"], drop=["city", "day"])
    study = compare(data, methods=["foma"], trials=1, splits=2)
    assert study.config.targets == 2
    sample = study.chosen["foma"][0].sample
    assert {len(row) for row in (*sample.true, *sample.predicted)} == {2}


def test_the_metric_chooses_and_is_compared():
    study = compare(make_problem(metric="r2", splits=2), methods=["mixup"], trials=3)
    assert study.comparison.metric == "r2"
    for own in study.chosen["mixup"]:
        curve, best = own.curves["validation"], own.score("validation", "r2")
        assert max(curve) == curve[own.best_epoch - 1] == pytest.approx(best, 1e-4)


# What is left in the folder


def test_a_folder_keeps_runs_facts_report_and_model(tmp_path):
    data = make_data()
    study = compare(data, methods=["mixup"], trials=1, splits=2, out=tmp_path)
    names = {path.name for path in study.folder.iterdir() if not path.name.startswith("runs-")}
    assert names == {"study.json", "about.json", "report.html", "model", "diagnosis.json", TARGETS}
    table = tmp_path / "synthetic-paraboloid"
    assert study.folder == table / "full-mixup-trials-1-splits-2"
    assert (table / "latest").resolve() == study.folder
    assert {path.name for path in table.iterdir()} == {study.folder.name, "latest"}
    assert read_facts(study.folder) == study.facts
    model = study.model(quick=True)  # which lies there
    assert isinstance(model, Ensemble)
    assert model.method == study.advised
    again = study.model(data, quick=True)
    assert torch.equal(model.predict([[0.1, 0.2]]).mean, again.predict([[0.1, 0.2]]).mean)
    assert Study.open(study.folder).model(quick=True).method == model.method
    # What rows that the model has not learned say of it is kept, and in the report.
    found = Study.open(study.folder).diagnosis
    assert found == study.diagnosis
    assert found.scores.rmse == pytest.approx(model.held_out.rmse)
    assert study.to_dict()["diagnosis"]["importances"]["rows"] == found.scores.n
    page = (study.folder / "report.html").read_text(encoding="utf-8")
    for name in ("importance", "residuals", "column-1", "coverage"):
        assert f'id="plot-model-{name}"' in page
    assert "rows that were put aside before anything was learned" in page


def test_a_damaged_diagnosis_does_not_end_a_study(tmp_path):
    arguments = {"methods": ["mixup"], "trials": 1, "splits": 2, "out": tmp_path}
    folder = compare(make_data(), **arguments).folder
    (folder / "diagnosis.json").write_text("{")
    study = compare(make_data(), **arguments)
    assert any("diagnosis.json" in note and "Delete it" in note for note in study.notes)
    assert study.diagnosis is None
    assert "model-importance" not in (folder / "report.html").read_text(encoding="utf-8")


def test_the_model_of_a_large_table_is_fitted_to_some_of_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("regaug.ensemble.entry.QUICK_ROWS", 30)
    data = make_data()
    study = compare(data, methods=["mixup"], trials=1, splits=2, out=tmp_path)
    assert len(data) > 30
    assert study.data is data
    assert study.model(quick=True).held_out.n == 9  # what 30 rows put aside


def test_the_facts_of_a_named_data_set_and_of_a_table_say_how_they_were_named(tmp_path):
    study = compare(load("diabetes"), methods=["erm"], trials=1, splits=1)
    assert study.facts.given == {"source": "diabetes"}
    make_frame().to_csv(tmp_path / "houses.csv", index=False)
    table = read_table(tmp_path / "houses.csv", target="price", group="city", drop=["day"])
    given = compare(table, methods=["erm"], trials=1, splits=1).facts.given
    assert given == {
        "source": str(tmp_path / "houses.csv"),
        "target": ["price"],
        "group": "city",
        "drop": ["day"],
    }


# Progress


def test_a_function_is_told_how_far_it_has_come(tmp_path, whole):
    seen = []
    compare(make_problem(), out=tmp_path, progress=seen.append, **SIZE)
    assert all(isinstance(event, Progress) for event in seen)
    first, *others = seen
    assert (first.records, first.done) == ((), {})
    assert first.seconds_left > 0
    kept = tmp_path / "synthetic-paraboloid" / "full-c-mixup+foma-rho-trials-4"
    assert first.notes == ["synthetic-paraboloid", f"The study is kept in {kept}."]
    assert len(first.plan.runs) == RUNS
    assert [len(event.records) for event in others] == [len(task) for task in tasks_of(whole)]
    done = [sum(event.done.values()) for event in others]
    assert done == list(np.cumsum([len(task) for task in tasks_of(whole)]))
    assert others[-1].done == {
        "erm": 24 + 12,
        "c-mixup": 12,
        "foma-rho": 12,
        "mean": 3,
        "ridge": 3,
    }
    assert others[-1].seconds_left == 0
    again = []
    compare(make_problem(), out=tmp_path, progress=again.append, **SIZE)
    assert [sum(event.done.values()) for event in again] == [RUNS]


def test_damage_is_told_at_the_beginning(tmp_path):
    study = compare(make_problem(), out=tmp_path, methods=["erm"], trials=1)
    (file,) = study.folder.glob("runs-*.jsonl")
    file.write_bytes(file.read_bytes()[:-9])
    seen = []
    compare(make_problem(), out=tmp_path, methods=["erm"], trials=1, progress=seen.append)
    assert f"Note: {file.name}, line 27 is cut; its run is done again" in seen[0].notes


def test_a_bar_counts_every_run_once(tmp_path, capsys):
    study = compare(make_problem(), out=tmp_path, methods=["erm"], trials=1, progress=True)
    *_, plan, line = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"27 runs; this takes about .*\.", plan)
    assert line.split() == ["run", "27/27", "erm"]
    (file,) = study.folder.glob("runs-*.jsonl")
    file.write_bytes(file.read_bytes()[:-9])  # one run of a task is missing: all three are done
    compare(make_problem(), out=tmp_path, methods=["erm"], trials=1, progress=True)
    *_, plan, line = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"27 runs, 26 of them done; this takes about .*\.", plan)
    assert line.split() == ["run", "27/27", "erm"]
    compare(make_problem(), methods=["erm"], trials=1, progress=False)
    assert capsys.readouterr().err == ""


# The store


class StoppedError(Exception):
    """Stands for whatever ends a process."""


def interrupt_after(count):
    """Return an observer that ends a study after so many pieces of work."""
    seen = []

    def observe(progress):
        seen.extend([progress] if progress.records else [])
        if len(seen) == count:
            raise StoppedError

    return observe


@pytest.fixture
def counted(monkeypatch):
    """The tasks that are done, as they are."""
    done = []
    real = Worker.do
    monkeypatch.setattr(Worker, "do", lambda self, t: done.append(t) or real(self, t))
    return done


def test_a_continued_study_does_only_what_is_missing(tmp_path, whole, counted):
    for count in (3, 2):
        with pytest.raises(StoppedError):
            compare(make_problem(), out=tmp_path, progress=interrupt_after(count), **SIZE)
    assert counted == tasks_of(whole)[:5]
    check_same(compare(make_problem(), out=tmp_path, **SIZE), whole)
    assert counted == tasks_of(whole)
    check_same(compare(make_problem(), out=tmp_path, **SIZE), whole)
    check_same(Study.open(tmp_path), whole)
    assert len(counted) == len(tasks_of(whole))  # a finished study is only read
    assert count_lines(tmp_path) == RUNS


def test_a_cut_last_line_is_reported_and_its_piece_of_work_done_again(tmp_path, whole, counted):
    folder = compare(make_problem(), out=tmp_path, **SIZE).folder
    (file,) = folder.glob("runs-*.jsonl")
    file.write_bytes(file.read_bytes()[:-40])
    store = Store.open(folder)
    assert len(store.done()) == RUNS - 1
    assert store.damaged == [f"{file.name}, line {RUNS} is cut; its run is done again"]
    counted.clear()
    check_same(compare(make_problem(), out=tmp_path, **SIZE), whole)
    assert len(counted) == 1
    assert count_lines(tmp_path) == RUNS  # the others of that piece are not written twice


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "it has seed 0, and you asked for seed 1"),
        ({"trials": 5}, "it has 4 settings of every method, and you asked for 5 settings of"),
        (
            {"problem": make_problem(metric="mae")},
            "it has the metric rmse, and you asked for the metric mae",
        ),
        (
            {"methods": ["erm", "c-mixup"]},
            "it has the methods erm, c-mixup, foma-rho, and you asked for the methods erm, c-mixup",
        ),
        (
            {"problem": make_problem(splits=2)},
            "it has 3 splits, and you asked for 2 splits",
        ),
        (
            {"problem": replace(make_problem(), independent=True)},
            "it has overlapping splits, and you asked for independent splits",
        ),
        ({"search": "tpe"}, "it has the search random, and you asked for the search tpe"),
        (
            {"problem": make_problem(data=make_data(seed=3))},
            "the table has changed since: as many rows, with other values",
        ),
        (
            {"problem": make_problem(data=make_data(n=70))},
            "it has 60 rows, and the table has 70 rows",
        ),
        (
            {"problem": replace(make_problem(), hidden=(9,))},
            "it has hidden layers 8, and you asked for hidden layers 9",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_another_study_differs_in_is_told_in_words(tmp_path, counted, change, message):
    plan = make_plan(make_problem(), **SIZE)
    with pytest.raises(StoppedError):
        run_plan(plan, Place(tmp_path), Workforce(), observer=interrupt_after(1))
    counted.clear()
    other = make_plan(**{"problem": make_problem(), **SIZE, **change})
    with pytest.raises(StoreError) as caught:
        run_plan(other, Place(tmp_path), Workforce())
    told = str(caught.value)
    assert told.startswith(f"The folder {tmp_path} holds another study: {message}")
    assert ";" not in told  # what follows from it is no second difference
    assert counted == []


# Ends before the end


def press(times, after):
    """Return an observer that presses Ctrl-C after so many pieces of work."""
    seen = []

    def observe(progress):
        seen.extend([progress.records] if progress.records else [])
        if len(seen) == after and progress.records:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    observe.seen = seen
    return observe


@pytest.fixture
def first_whole_trial(whole):
    """How many pieces of work it takes until all methods have a trial."""
    first = {run.key for task in tasks_of(whole, trials=1) for run in task}
    for count, task in enumerate(tasks_of(whole), start=1):
        first -= {run.key for run in task}
        if not first:
            return count
    raise AssertionError("the first trial is not among the tasks")


def test_ctrl_c_once_reports_on_what_is_finished(tmp_path, whole, first_whole_trial):
    observe = press(1, after=first_whole_trial)
    study = compare(make_problem(), out=tmp_path, progress=observe, **SIZE)
    assert len(observe.seen) == first_whole_trial
    assert 1 <= study.trials < 4
    assert {row.name for row in study.comparison.rows} == {*METHODS, *BESIDE}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    check_same(compare(make_problem(), out=tmp_path, **SIZE), whole)


@pytest.mark.serial
@pytest.mark.slow
def test_ctrl_c_once_lets_worker_processes_finish_what_they_do(tmp_path, first_whole_trial):
    observe = press(1, after=first_whole_trial)
    study = compare(make_problem(), out=tmp_path, progress=observe, jobs=2, **SIZE)
    assert first_whole_trial <= len(observe.seen) <= first_whole_trial + 1
    assert 1 <= study.trials < 4
    assert count_lines(tmp_path) == sum(map(len, observe.seen))


def study_in_processes(folder):
    """Study with two processes; say when it begins, and what is stored in the end."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        print("begun", flush=True)
        try:
            compare(make_problem(), out=folder, jobs=2, **SIZE)
        except StoreError as error:
            print(error)
        print(count_lines(folder))


@pytest.mark.serial
@pytest.mark.slow
def test_ctrl_c_on_a_terminal_does_not_end_processes_just_started(tmp_path, whole):
    code = (
        "import pathlib, runpy, sys; "
        "runpy.run_path(sys.argv[1])['study_in_processes'](pathlib.Path(sys.argv[2]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, __file__, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as study:
        assert study.stdout.readline() == "begun\n"
        time.sleep(1.0)  # they are importing now, and do not listen yet
        os.killpg(study.pid, signal.SIGINT)
        told = study.stdout.read().split("\n")
    planned = tasks_of(whole)
    assert study.returncode == 0
    assert told[0].startswith("The study has no setting yet")
    assert int(told[1]) == len(planned[0]) + len(
        planned[1]
    )  # both finished what they had been given


def test_ctrl_c_twice_interrupts(tmp_path, whole):
    with pytest.raises(KeyboardInterrupt):
        compare(make_problem(), out=tmp_path, progress=press(2, after=2), **SIZE)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    planned = tasks_of(whole)
    assert count_lines(tmp_path) == len(planned[0]) + len(planned[1])


def test_a_study_that_has_no_time_says_that_nothing_is_finished(tmp_path):
    with pytest.raises(StoreError, match=r"no setting yet .* Run the same command again"):
        compare(make_problem(), out=tmp_path, max_minutes=1e-9, **SIZE)
    assert Store.open(find_study(tmp_path)).done() == set()


def test_a_study_that_runs_out_of_time_reports_on_what_is_finished(
    tmp_path, monkeypatch, whole, first_whole_trial
):
    clock = [0.0]
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    seen = []

    def observe(progress):
        seen.extend([progress] if progress.records else [])
        clock[0] = 60.0 * len(seen) / first_whole_trial

    study = compare(make_problem(), out=tmp_path, max_minutes=0.999, progress=observe, **SIZE)
    assert len(seen) == first_whole_trial
    assert 1 <= study.trials < 4
    check_same(compare(make_problem(), out=tmp_path, max_minutes=10, **SIZE), whole)


# Kills. What follows, until the tests, runs in a process of its own with a single thread, which can
# be forked safely: a process that had to import everything would mostly be killed doing that.


def start(folder):
    """Start the study in a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        compare(make_problem(), out=folder, **SIZE)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def lines(folder):
    files = [path.read_bytes() for path in sorted(folder.rglob("runs-*.jsonl"))]
    return [line for content in files for line in content.splitlines(keepends=True)]


def kill_at(count, delay, folder):
    """Start, kill some time after so many runs are stored; return how many, None if it ended."""
    child = start(folder)
    deadline = time.monotonic() + 60
    while count_lines(folder) < count and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return count_lines(folder) if is_killed else None


def finish(*folders):
    children = [start(folder) for folder in folders]
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        sys.exit("a study that nobody killed has failed")


def drive(folder, kills):
    """Study once undisturbed, once twice at the same time, once with kills; print where."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        compare(make_problem(), methods=["erm"], trials=1)  # imports what it needs
        begin = time.monotonic()
        finish(folder / "whole")
        pause = (time.monotonic() - begin) / 20
        finish(folder / "two", folder / "two")
        rng = np.random.default_rng(kills)
        # Not in the last pieces of work: the study must not end before it is killed.
        counts = np.sort(rng.integers(0, RUNS // 2, size=kills))
        killed, before = [], set()
        for count in counts:
            killed.append(
                kill_at(count, rng.choice([0.0, rng.uniform(0.0, pause)]), folder / "killed")
            )
            after = set(lines(folder / "killed"))
            if not before <= after:
                sys.exit("a stored run was lost")
            before = {line for line in after if line.endswith(b"\n")}
        finish(folder / "killed")
    print(json.dumps(killed))


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks")
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_and_company_leave_no_trace(tmp_path, whole, kills):
    code = (
        "import pathlib, runpy, sys; "
        "runpy.run_path(sys.argv[1])['drive'](pathlib.Path(sys.argv[2]), int(sys.argv[3]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, __file__, str(tmp_path), str(kills)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    killed = json.loads(done.stdout)
    assert len(killed) == kills
    assert None not in killed  # every one of them ended a study that was under way
    assert len(set(killed)) > kills // 5
    planned = {run.key for task in tasks_of(whole) for run in task}
    for name in ("whole", "two", "killed"):
        assert Store.open(find_study(tmp_path / name)).done() == planned
        check_same(Study.open(tmp_path / name), whole)
    for name in ("whole", "killed"):  # no run is lost, none is there twice
        keys = [json.loads(line)["key"] for line in lines(tmp_path / name) if line.endswith(b"\n")]
        assert sorted(keys) == sorted(planned)
