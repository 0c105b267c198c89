"""A worker: the same records whoever does the runs, side by side or one by one."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regaug import methods
from regaug.data import standardize
from regaug.data.base import Part, Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.models import MLP
from regaug.problems import LoadedSplits, Problem
from regaug.runs import worker as module
from regaug.runs.nets import net_file
from regaug.runs.record import Sample
from regaug.runs.run import Run
from regaug.runs.tasks import make_tasks
from regaug.runs.worker import Worker, look_every
from regaug.training import Machine, Settings, fit, fit_many
from regaug.training.baselines import PREDICTORS, fit_baseline


def make_splits(n=60, splits=2):
    data = make_manifold("paraboloid", n=n, noise=0.1)
    return [data.split(seed) for seed in range(splits)]


def make_problem(splits=None, **options):
    return Problem(splits or make_splits(), name="bowl", **({"hidden": (8,)} | options))


def make_net(split):
    return nn.Sequential(nn.Flatten(), nn.Linear(split.train.x.shape[1], 4), nn.Linear(4, 1))


def make_own(**options):
    """The same splits with a network that does not stack."""
    return make_problem(model=make_net, **options)


def make_runs(method="erm", *, splits=2, epochs=3, log=False, own=(), **changes):
    own = methods.get(method).settings(**dict(own))
    settings = Settings(epochs=epochs, **changes, method_settings=own)
    return tuple(Run("bowl", method, i, 10 + i, settings, 0, log) for i in range(splits))


def baselines(name="ridge", splits=2, *, log=False):
    return tuple(Run("bowl", name, i, 0, log=log) for i in range(splits))


def without_time(records):
    return [repr(replace(record, seconds=0.0)) for record in records]


@pytest.fixture(scope="module")
def worker():
    return Worker([make_problem()], details=True)


@pytest.mark.parametrize("task", [make_runs("c-mixup"), baselines()], ids=["stack", "baseline"])
def test_a_worker_gives_a_record_of_every_run_in_order(worker, task):
    records = worker.do(task)
    assert [record.run for record in records] == list(task)
    assert all(record.scores.keys() == {"validation", "test"} for record in records)
    assert all(record.sizes == (36, 12, 12) for record in records)
    json.dumps([record.to_dict() for record in records], allow_nan=False)


@pytest.mark.parametrize("method", ["erm", "foma-rho"])
def test_a_stack_has_the_results_of_fit_many(worker, method):
    task = make_runs(method)
    splits = [standardize(split) for split in make_splits()]
    results = fit_many(
        splits,
        method,
        [run.settings for run in task],
        hidden=(8,),
        record=("train", "validation", "test"),
    )
    for record, result in zip(worker.do(task), results, strict=True):
        assert record.scores == result.scores
        assert record.best_epoch == result.best_epoch
        # Curves of other rows than the validation rows have a point after every ten epochs.
        first = pytest.approx(result.history[0].test, rel=1e-4)
        assert record.curves["test"] == [first, *[None] * (len(result.history) - 1)]
        errors = [epoch.validation for epoch in result.history]
        assert record.curves["validation"] == pytest.approx(errors, rel=1e-4)


def test_a_run_that_cannot_stack_is_trained_by_itself():
    own = {"place": methods.BOTH}
    (record,) = Worker([make_problem()]).do(make_runs("mixup", splits=1, own=own))
    split = standardize(make_splits()[0])
    settings = record.run.settings
    expected = fit(
        MLP(2, 1, hidden=(8,), seed=10), split, "mixup", settings, machine=Machine("cpu")
    )
    assert record.scores == expected.scores
    assert record.ending == "finished"


def test_runs_one_by_one_and_side_by_side_agree():
    # The net for tables as a network of the user's own: the same weights, the other way to train.
    def make_mlp(split, seed):
        return MLP(2, 1, hidden=(8,), seed=seed)

    task = make_runs("erm")
    stacked, single = (Worker([make_problem(model=model)]).do(task) for model in (None, make_mlp))
    for one, other in zip(stacked, single, strict=True):
        assert one.score("test", "rmse") == pytest.approx(other.score("test", "rmse"), rel=1e-4)
        assert one.epochs == other.epochs


@pytest.mark.parametrize("problem", [make_problem(), make_own()], ids=["stack", "own net"])
def test_the_same_task_gives_the_same_bits_also_with_a_worker_sent_elsewhere(problem):
    worker = Worker([problem], details=True)
    sent = pickle.loads(pickle.dumps(worker))
    assert sent.details
    for task in (make_runs("mixup"), baselines("mean")):
        expected = without_time(worker.do(task))
        torch.rand(3)  # whatever else a process does with the global generator
        assert without_time(worker.do(task)) == expected
        assert without_time(sent.do(task)) == expected


def test_details_are_kept_only_if_they_are_asked_for(worker):
    short = Worker([make_problem()]).do(make_runs())
    for record, other in zip(worker.do(make_runs()), short, strict=True):
        assert record.scores == other.scores
        assert (other.curves, other.sample) == ({}, Sample())
        assert {name: len(values) for name, values in record.curves.items()} == dict.fromkeys(
            ("loss", "train", "validation", "test"), 3
        )
        assert len(record.sample.true) == len(record.sample.predicted) == 12


def test_groups_arrive_where_a_worker_is_sent():
    def grouped(part):
        return Part(part.x, part.y, part.rows, np.where(part.rows % 2, "odd", "even"))

    splits = [Split(*map(grouped, (s.train, s.validation, s.test))) for s in make_splits()]
    sent = pickle.loads(pickle.dumps(Worker([make_problem(splits)])))
    scores = sent.do(make_runs())[0].scores["test"]
    assert scores.groups.keys() == {"odd", "even"}
    assert scores.worst("rmse")[1] >= scores.rmse


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_baseline_has_the_scores_of_fit_baseline(worker, name):
    for record in worker.do(baselines(name)):
        expected = fit_baseline(name, make_splits()[record.run.split])
        assert record.scores == expected.scores
        assert record.chosen == expected.settings.method_settings
        assert (record.best_epoch, record.epochs, record.curves) == (0, 0, {})


def test_the_metric_of_the_problem_chooses_a_baselines_penalty():
    expected = fit_baseline("ridge", make_splits()[0], metric="mae")
    (record,) = Worker([make_problem(metric="mae")]).do(baselines("ridge", splits=1))
    assert record.chosen == expected.settings.method_settings


def test_a_baseline_may_fit_the_logarithm_and_overflow_far_outside():
    def positive(part):
        return Part(part.x, part.y.exp(), part.rows)

    plain = make_splits()
    near, far = (Split(*map(positive, (s.train, s.validation, s.test))) for s in plain)
    far.test.x[:2] = torch.tensor([[1e6], [-1e6]])  # a line goes up on one side
    records = Worker([make_problem([near, far])]).do(baselines("ridge", log=True))
    assert records[0].scores == fit_baseline("ridge", standardize(near, log=True)).scores
    assert (records[1].ending, records[1].scores) == ("diverged", {})


@pytest.mark.parametrize("own", [False, True], ids=["stack", "own net"])
def test_errors_of_a_fit_of_the_logarithm_are_in_the_targets_own_units(own):
    def exponential(part):
        return Part(part.x, 1000 * (2 * part.y).exp(), part.rows)

    splits = [Split(*map(exponential, (s.train, s.validation, s.test))) for s in make_splits(200)]
    problem = make_own(splits=splits) if own else make_problem(splits, hidden=(32,))
    task = make_runs(epochs=60, log=True, learning_rate=0.01)
    for record in Worker([problem], details=True).do(task):
        true, predicted = (
            torch.tensor(values, dtype=torch.float64)
            for values in (record.sample.true, record.sample.predicted)
        )
        test = splits[record.run.split].test.y
        torch.testing.assert_close(true, test.double(), rtol=1e-4, atol=0)  # all 40 rows
        rmse = (predicted - true).square().mean().sqrt().item()
        assert record.score("test", "rmse") == pytest.approx(rmse, rel=1e-3)
        assert own or rmse < test.std().item()
        assert predicted.min() > 0


@pytest.mark.parametrize("problem", [make_problem(), make_own()], ids=["stack", "own net"])
def test_a_run_that_diverges_is_a_finding_and_does_not_end_the_others(problem):
    wild, tame = make_runs(learning_rate=1e30), make_runs(learning_rate=1e-3)
    task = (wild[0], tame[1])
    diverged, finished = Worker([problem], details=True).do(task)
    assert (diverged.ending, diverged.scores) == ("diverged", {})
    assert diverged.validation_error("rmse") == diverged.validation_error("r2") == math.inf
    assert diverged.sizes == finished.sizes
    assert finished.ending == "finished"
    assert math.isfinite(finished.validation_error("rmse"))


def test_runs_of_several_problems_are_done_by_one_worker():
    lines = [make_manifold("line", n=40).split()]
    worker = Worker([make_problem(), Problem(lines, name="line", hidden=(4,))])
    other = (replace(make_runs()[0], problem="line"),)
    assert worker.do(other)[0].sizes == (24, 8, 8)
    assert worker.do(make_runs())[0].sizes == (36, 12, 12)


MADE = []


def make_and_note(number):
    MADE.append(number)
    return make_manifold("line", n=4000).split(number)


def test_splits_that_are_made_on_demand_travel_as_their_recipe():
    splits = LoadedSplits(make_and_note, 3)
    worker = Worker([Problem(splits, make_net, name="bowl")])
    rows = splits[0].train.x.numel() * 4
    sent = pickle.dumps(worker)
    assert len(sent) < 2000 < rows
    MADE.clear()
    again = pickle.loads(sent)
    assert MADE == []
    (record,) = again.do(make_runs(splits=1, epochs=1))
    assert MADE == [0]
    assert record.sizes == (2400, 800, 800)


def test_the_tasks_of_a_worker_hold_its_runs():
    runs = [*baselines(), *make_runs("erm"), *make_runs("mixup")]
    worker = Worker([make_problem()])
    done = [record for task in make_tasks(runs, worker.problems) for record in worker.do(task)]
    assert {record.run.key for record in done} == {run.key for run in runs}


def count_steps(monkeypatch):
    """Return a list that grows with every step of an optimizer."""
    steps, real = [], torch.optim.AdamW.step

    def step(self, *args, **options):
        steps.append(1)
        return real(self, *args, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    return steps


def test_a_paused_run_goes_on_and_leaves_nothing(tmp_path, monkeypatch):
    (run,) = make_runs(splits=1, epochs=6)
    steps = count_steps(monkeypatch)
    expected = Worker([make_own()], details=True).do((run,))
    whole = len(steps)
    worker = Worker([make_own()], details=True, folder=tmp_path)
    for stop, done in ((2, 2), (4, 4), (None, 6)):
        own = replace(run, settings=replace(run.settings, stop_after=stop))
        (record,) = worker.do((own,))
        assert record.epochs == done
        assert record.run.key != run.key or stop is None
    assert len(steps) == 2 * whole  # no epoch was done twice
    assert without_time([record]) == without_time(expected)
    worker.forget(run)
    assert list(tmp_path.rglob("*.safetensors")) == [net_file(tmp_path, run)]


def test_a_baseline_is_fitted_once_for_all_repetitions(monkeypatch):
    calls, real = [], module.fit_baseline

    def fit_baseline(*given, **options):
        calls.append(given)
        return real(*given, **options)

    monkeypatch.setattr(module, "fit_baseline", fit_baseline)
    repeated = make_own(splits=make_splits(splits=1)).with_splits(3)
    records = Worker([repeated], details=True).do(baselines(splits=3))
    assert len(calls) == 1
    assert [record.run.split for record in records] == [0, 1, 2]
    assert len({record.score("test", "rmse") for record in records}) == 1
    Worker([make_own()]).do(baselines())
    assert len(calls) == 3


def test_repetitions_share_one_split_and_differ_in_their_seeds():
    repeated = make_own(splits=make_splits(splits=1)).with_splits(3)
    worker = Worker([repeated])
    records = [worker.do((run,))[0] for run in make_runs(splits=3)]
    assert len({record.score("test", "rmse") for record in records}) == 3
    assert worker._prepare("bowl", 2, False) is worker._prepare("bowl", 0, False)
    assert pickle.loads(pickle.dumps(worker)).problems["bowl"].is_repeated


def test_learning_curves_cost_little(monkeypatch):
    split = make_manifold("paraboloid", n=2000).split(0)
    every = look_every(split)
    looked_at, trained_on = 500 + 400, every * (3 * 1200 + 400)
    assert looked_at <= 0.025 * trained_on
    assert every < look_every(split.subsample(500))  # of which all training rows are looked at
    (record,) = Worker([make_own()], details=True).do(make_runs(splits=1, epochs=25))
    known = [n for n, value in enumerate(record.curves["test"], 1) if value is not None]
    own = look_every(make_splits()[0])
    assert known == sorted({*range(own, 26, own), 25})
    assert None not in record.curves["validation"]
