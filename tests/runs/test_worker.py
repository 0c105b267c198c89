"""Pieces of work: what they contain, what a worker makes of them, and thinned splits."""

import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.base import Part, Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.metrics import Scores
from regaug.runs.worker import Worker, make_tasks, plan_runs
from regaug.studies.search import draw_trials
from regaug.training.baselines import fit_baseline
from regaug.training.stacked import MOST_RUNS

METHODS = ("erm", "c-mixup", "foma-rho")


def make_runs(
    methods=METHODS, trials=7, splits=5, seed=0, epochs=3, baselines=("mean",), may_log=False
):
    length = {"epochs": epochs, "patience": 3}
    own = {m: draw_trials(m, trials, seed=seed, may_log=may_log, **length) for m in methods}
    return plan_runs(own, baselines, splits=splits, seed=seed, metric="rmse")


def make_splits(n=60, splits=2):
    data = make_manifold("paraboloid", n=n, noise=0.1)
    return [data.split(seed) for seed in range(splits)]


def without_time(outcome):
    return [
        (key, run, {name: value for name, value in result.items() if name != "seconds"})
        for key, run, result in outcome
    ]


# Plans


def test_a_plan_has_every_trial_of_every_method_on_every_split():
    runs = make_runs()
    assert len(runs) == 3 * 7 * 5 + 5
    places = {(run.name, run.split, run.trial and run.trial.number) for run in runs}
    assert len(places) == len(runs)
    assert len({run.key for run in runs}) == len(runs)


def test_the_settings_of_a_trial_are_the_same_on_every_split_and_the_seeds_differ():
    runs = [run for run in make_runs() if run.trial is not None]
    described = {}
    for run in runs:
        settings = {**run.describe()["settings"], "seed": None}
        described.setdefault((run.name, run.trial.number), []).append(settings)
    assert all(settings == own[0] for own in described.values() for settings in own)
    assert len({run.seed for run in runs}) == len(runs)
    assert all(run.describe()["settings"]["seed"] == run.seed for run in runs)


def test_a_plan_with_more_methods_trials_and_splits_contains_the_smaller_one():
    small = {run.key for run in make_runs(("erm", "foma-rho"), trials=3, splits=2)}
    assert small < {run.key for run in make_runs(trials=5, splits=3)}
    assert not small & {run.key for run in make_runs(seed=1) if run.trial is not None}


# Tasks


@given(
    st.lists(st.sampled_from(METHODS), min_size=1, unique=True),
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_tasks_hold_every_run_once_in_stacks_that_fit(methods, trials, splits, seed):
    runs = make_runs(methods, trials, splits, seed)
    tasks = make_tasks(runs)
    keys = [run.key for task in tasks for run in task]
    assert sorted(keys) == sorted(run.key for run in runs)
    for task in tasks:
        assert len(task) <= MOST_RUNS
        assert len({run.name for run in task}) == 1
        assert len({run.trial is None for run in task}) == 1
        if task[0].trial is not None:
            settings = [run.trial.settings for run in task]
            assert len({(own.batch_size, own.method["place"]) for own in settings}) == 1


def test_tasks_depend_on_the_plan_alone():
    assert make_tasks(make_runs()) == make_tasks(make_runs())


def test_baselines_and_early_trials_come_first():
    tasks = make_tasks(make_runs(trials=20, splits=10))
    firsts = [task[0].trial.number if task[0].trial else -1 for task in tasks]
    assert firsts == sorted(firsts)
    assert [task[0].name for task in tasks[1:4]] == list(METHODS)
    assert all(task[0].trial.number == 0 for task in tasks[1:4])


# Workers


@pytest.fixture(scope="module")
def worker():
    return Worker(make_splits(), hidden=(8,))


def test_a_worker_gives_key_description_and_result_of_every_run_in_order(worker):
    for task in make_tasks(make_runs(trials=2, splits=2)):
        outcome = worker.do(task)
        assert [(key, run) for key, run, _ in outcome] == [(r.key, r.describe()) for r in task]
        assert {"scores", "seconds", "sample"} <= outcome[0][2].keys()
        json.dumps(outcome, allow_nan=False)


def test_the_same_task_gives_the_same_bits_also_with_a_worker_sent_elsewhere(worker):
    sent = pickle.loads(pickle.dumps(worker))
    for task in make_tasks(make_runs(trials=2, splits=2)):
        expected = without_time(worker.do(task))
        assert without_time(worker.do(task)) == expected
        assert without_time(sent.do(task)) == expected


def test_groups_arrive_where_a_worker_is_sent():
    def grouped(part):
        return Part(part.x, part.y, part.rows, np.where(part.rows % 2, "odd", "even"))

    splits = [Split(*map(grouped, (s.train, s.validation, s.test))) for s in make_splits()]
    sent = pickle.loads(pickle.dumps(Worker(splits, hidden=(8,))))
    (_, _, result), *_ = sent.do(make_tasks(make_runs(("erm",), 1, 1))[1])
    scores = Scores.from_dict(result["scores"]["test"])
    assert scores.groups.keys() == {"odd", "even"}
    assert scores.worst("rmse")[1] >= scores.rmse


def test_a_baseline_has_the_scores_of_fit_baseline(worker):
    task = make_tasks(make_runs(("erm",), 1, 2, baselines=("ridge",)))[0]
    for run, (_, described, result) in zip(task, worker.do(task), strict=True):
        expected = fit_baseline("ridge", make_splits()[run.split])
        assert described == {"method": "ridge", "split": run.split, "seed": 0}
        assert result["scores"]["test"] == expected.scores["test"].to_dict()
        assert result["chosen"] == expected.settings.method


def test_errors_of_a_fit_of_the_logarithm_are_in_the_targets_own_units():
    def exponential(part):
        return Part(part.x, 1000 * (2 * part.y).exp(), part.rows)

    splits = [Split(*map(exponential, (s.train, s.validation, s.test))) for s in make_splits(200)]
    runs = make_runs(("erm",), 2, 2, epochs=60, baselines=(), may_log=True)
    for task in make_tasks(run for run in runs if run.trial.log):
        for _, run, result in Worker(splits, hidden=(32,)).do(task):
            assert run["log"]
            true, predicted = (
                torch.tensor(result["sample"][name], dtype=torch.float64)
                for name in ("true", "predicted")
            )
            test = splits[run["split"]].test.y
            torch.testing.assert_close(true, test.double(), rtol=1e-4, atol=0)  # all 40 rows
            rmse = (predicted - true).square().mean().sqrt().item()
            assert result["scores"]["test"]["rmse"] == pytest.approx(rmse, rel=1e-3)
            assert rmse < test.std().item()
            assert predicted.min() > 0


def test_a_few_predictions_of_a_large_test_part_are_kept():
    outcome = Worker(make_splits(2000, 1), (8,)).do(make_tasks(make_runs(("erm",), 1, 1))[0])
    sample = outcome[0][2]["sample"]
    assert len(sample["true"]) == len(sample["predicted"]) == 200


# Thinned splits
