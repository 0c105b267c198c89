"""Which runs are done together, in which order, until when, and how long that takes."""

import os
import signal
import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regaug import methods
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError
from regaug.problems import Cost, Problem
from regaug.runs import tasks as module
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.runs.tasks import Workforce, do_runs, estimate_baseline, estimate_seconds, make_tasks
from regaug.runs.worker import Worker
from regaug.training import Settings
from regaug.training.stacked import most_runs

METHODS = ("erm", "c-mixup", "foma-rho")
SIZES = (32, 16, 64)


def make_net(split):
    return nn.Linear(split.train.x.shape[1], 1)


SPLITS = [make_manifold("line", n=40).split()]
TABLE = {"p": Problem(SPLITS, name="p")}
OWN = {"p": Problem(SPLITS, make_net, name="p")}


def make_runs(names=METHODS, trials=4, splits=3, seed=0, baselines=("mean", "ridge")):
    """Baselines, then the first trial of every method on every split, and so on."""
    runs = [Run("p", name, i, seed) for name in baselines for i in range(splits)]
    for trial in range(trials):
        for name in names:
            own = methods.get(name).settings(**({"place": "layer"} if trial == 3 else {}))
            settings = Settings(
                epochs=9, patience=2, batch_size=SIZES[trial % 3], method_settings=own
            )
            runs += [
                Run("p", name, i, seed + 99 * trial + i, settings, trial) for i in range(splits)
            ]
    return runs


@given(
    st.lists(st.sampled_from(METHODS), min_size=1, unique=True),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(0, 99),
    st.sampled_from([TABLE, OWN]),
)
def test_tasks_hold_every_run_once_in_stacks_that_fit(names, trials, splits, seed, problems):
    runs = make_runs(names, trials, splits, seed)
    tasks = make_tasks(runs, problems)
    keys = [run.key for task in tasks for run in task]
    assert sorted(keys) == sorted(run.key for run in runs)
    for task in tasks:
        assert len({(run.problem, run.method, run.is_baseline) for run in task}) == 1
        if task[0].settings is not None:
            own = [run.settings for run in task]
            assert len(task) <= most_runs(own[0].batch_size)
            assert len({(each.batch_size, each.method_settings["place"]) for each in own}) == 1
            assert problems is TABLE or len(task) == 1


def test_what_a_task_contains_depends_on_the_runs_alone():
    runs = make_runs()
    again = [Run.from_dict(run.to_dict()) for run in runs]
    assert make_tasks(runs, TABLE) == make_tasks(iter(again), TABLE)
    # Nor on runs that are no part of it.
    few = [task for task in make_tasks(runs, TABLE) if task[0].method == "erm"]
    assert few == make_tasks([run for run in runs if run.method == "erm"], TABLE)


@pytest.mark.parametrize("problems", [TABLE, OWN], ids=["table", "own net"])
def test_tasks_are_in_the_order_of_their_first_runs(problems):
    runs = make_runs(trials=20, splits=10)
    place = {run.key: number for number, run in enumerate(runs)}
    firsts = [place[task[0].key] for task in make_tasks(runs, problems)]
    assert firsts == sorted(firsts)
    assert firsts[:21] == list(range(21))  # two baselines on ten splits, then the first method


def test_runs_that_act_at_two_places_are_tasks_of_their_own():
    settings = Settings(method_settings=methods.get("mixup").settings(place=methods.BOTH))
    runs = [Run("p", "mixup", 0, seed, settings) for seed in range(3)]
    assert make_tasks(runs, TABLE) == [(run,) for run in runs]


def test_recipes_of_a_split_are_rivals_in_one_stack():
    recipe = Settings(batch_size=32, halve=True)
    runs = [
        Run("p", "erm", split, 0, replace(recipe, learning_rate=rate), stage="recipe")
        for rate in (1e-3, 2e-3, 3e-3, 4e-3, 5e-3)
        for split in range(7)
    ]
    tasks = make_tasks(runs, TABLE)
    assert [{run.split for run in task} for task in tasks] == [{0, 1, 2}, {3, 4, 5, 6}]
    assert [len(task) for task in tasks] == [15, 20]


def test_large_tables_are_cut_into_many_tasks():
    for size, tasks in ((32, 7), (256, 50)):
        runs = [Run("p", "erm", i, 0, Settings(batch_size=size), trial=0) for i in range(200)]
        found = [len(task) for task in make_tasks(runs, TABLE)]
        assert len(found) == tasks
        assert max(found) - min(found) <= 1


def test_runs_of_two_problems_are_not_mixed():
    runs = make_runs(("erm",), 1, 2)
    others = [replace(run, problem="q") for run in runs]
    problems = {**TABLE, "q": TABLE["p"]}
    tasks = make_tasks([*runs, *others], problems)
    assert [{run.problem for run in task} for task in tasks] == [{"p"}] * 5 + [{"q"}] * 5


# How long


def test_more_runs_epochs_rows_and_smaller_batches_are_estimated_to_take_longer():
    run = Run("p", "erm", 0, 0, Settings(epochs=40, batch_size=8))
    once = estimate_seconds([run], TABLE)

    def of(**changes):
        return estimate_seconds([replace(run, settings=replace(run.settings, **changes))], TABLE)

    assert estimate_seconds([], TABLE) < once < estimate_seconds([run, run], TABLE)
    assert of(batch_size=16) < once < of(epochs=80)
    assert of(patience=5, epochs=80) < of(epochs=80)  # most runs stop early
    assert of(stop_after=20) < once == of(stop_after=99)
    larger = {"p": Problem([make_manifold("line", n=400).split()], name="p")}
    assert estimate_seconds([run], larger) > once
    dear = {"p": replace(TABLE["p"], cost=Cost(step=1e-2, sample=1e-3))}
    assert estimate_seconds([run], dear) > 1.0 + once
    assert estimate_seconds([Run("p", "ridge", 0, 0)], TABLE) > estimate_seconds([], TABLE)


def test_an_estimate_is_what_it_says(monkeypatch):
    monkeypatch.setattr("regaug.runs.tasks.slowness", lambda: 1.0)
    runs = [Run("p", "erm", 0, i, Settings(epochs=40, batch_size=8)) for i in range(3)]
    cost = Cost(step=0.5, sample=0.25)
    found = estimate_seconds(runs, {"p": replace(TABLE["p"], cost=cost)})
    steps = 24 // 8
    epochs = 3 * 40 * (steps * 0.5 + 24 * 0.25)
    assert found - estimate_seconds([], TABLE) == pytest.approx(epochs, rel=0.01)


def test_a_slower_machine_is_estimated_to_take_longer(monkeypatch):
    run = Run("p", "erm", 0, 0, Settings(epochs=40, batch_size=8))
    found = []
    for slowness in (1.0, 2.0):
        monkeypatch.setattr("regaug.runs.tasks.slowness", lambda times=slowness: times)
        train = TABLE["p"].splits[0].train
        found.append((estimate_seconds([run], TABLE), estimate_baseline("ridge", train)))
    assert found[1] == tuple(2 * seconds for seconds in found[0])


def test_augmentations_and_slow_baselines_are_estimated_to_take_longer():
    settings = Settings(epochs=40, batch_size=8)
    plain, other, foma = (
        estimate_seconds([Run("p", name, 0, 0, settings)], TABLE)
        for name in ("erm", "mixup", "foma-rho")
    )
    assert plain < other < 1.5 * plain
    assert other < foma < 2.5 * plain
    names = ("mean", "ridge", "gp", "boosting", "trees")  # on few rows
    times = [estimate_seconds([Run("p", name, 0, 0)], TABLE) for name in names]
    assert times == sorted(times)
    assert times[0] == estimate_seconds([], TABLE)
    train = TABLE["p"].splits[0].train
    assert [estimate_baseline(name, train) + times[0] for name in names] == pytest.approx(times)


# Who does them


class Recorder(Worker):
    """Does a task at once, and knows which it has done; each when it is asked so many times."""

    def __init__(self, problems=TABLE, *, times=1, folder=None):
        super().__init__(list(problems.values()), folder=folder)
        self.done, self.asked, self.times = [], Counter(), times

    def do(self, task):
        self.asked[task[0].key] += 1
        if self.asked[task[0].key] < self.times:
            return []
        self.done.append(task)
        return [RunRecord(run, {}, "finished", 0, 0, 0.0, (1, 1, 1), {}) for run in task]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, {})


def do(worker, store, runs, report=None, **who):
    return do_runs(
        worker, [runs], store, total=len(runs), workforce=Workforce(**who), report=report
    )


def test_every_run_is_stored_once_and_told(store):
    runs, told = make_runs(), []
    assert do(Recorder(), store, runs, told.append)
    assert store.done() == {run.key for run in runs}
    assert [record.run for records in told for record in records] == [
        run for task in make_tasks(runs, TABLE) for run in task
    ]
    worker = Recorder()
    assert do(worker, store, runs)
    assert worker.done == []


def test_of_a_task_that_is_done_in_part_the_rest_is_stored(store):
    runs = make_runs(("erm",), 1, 3, baselines=())
    store.add(Recorder().do(runs[:1])[0])
    worker = Recorder()
    assert do(worker, store, runs)
    assert worker.done == [tuple(runs)]
    lines = [path.read_bytes().count(b"\n") for path in store.folder.glob("runs-*")]
    assert sum(lines) == 3


def test_a_round_is_asked_for_when_the_one_before_is_stored(store):
    first, second = make_runs(("erm",), 1), make_runs(("mixup",), 1, baselines=())
    seen = []

    def rounds():
        yield first
        seen.append(store.done())
        yield second

    total = len(first) + len(second)
    assert do_runs(Recorder(), rounds(), store, total=total, workforce=Workforce())
    assert seen == [{run.key for run in first}]


def test_nothing_is_started_when_the_time_is_up(store, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    worker, runs = Recorder(), make_runs()

    def pass_a_minute(records):
        clock[0] += 60.0

    assert not do(worker, store, runs, pass_a_minute, max_minutes=2.5)
    assert len(worker.done) == 3
    assert do(worker, store, runs, max_minutes=2.5)


def test_the_time_may_be_up_just_when_all_is_done(store, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    runs = make_runs(("erm",), 1, 1, baselines=())

    def pass_an_hour(records):
        clock[0] += 3600.0

    assert do(Recorder(), store, runs, pass_an_hour, max_minutes=1)


def test_ctrl_c_finishes_the_task_and_twice_interrupts(store):
    worker, runs = Recorder(), make_runs()
    before = signal.getsignal(signal.SIGINT)

    def press(times):
        return lambda records: [os.kill(os.getpid(), signal.SIGINT) for _ in range(times)]

    assert not do(worker, store, runs, press(1))
    assert len(worker.done) == 1
    with pytest.raises(KeyboardInterrupt):
        do(worker, store, runs, press(2))
    assert signal.getsignal(signal.SIGINT) is before
    assert len(store.done()) == sum(len(task) for task in worker.done)


def test_what_others_do_is_asked_for_again_until_somebody_has_done_it(store, monkeypatch):
    monkeypatch.setattr(module, "_LOOK", 0.01)
    runs, told = make_runs(("erm",), 1, 3, baselines=()), []
    worker = Recorder(OWN, times=3)
    assert do(worker, store, runs, told.append)
    assert store.done() == {run.key for run in runs}
    assert set(worker.asked.values()) == {3}
    assert [len(records) for records in told] == [1, 1, 1]  # nothing is told of nothing


def test_what_another_process_has_finished_meanwhile_is_not_asked_for_again(store, monkeypatch):
    monkeypatch.setattr(module, "_LOOK", 0.01)
    runs = make_runs(("erm",), 1, 2, baselines=())

    class Late(Recorder):
        def do(self, task):
            if self.asked[task[0].key]:  # the other one has stored it by now
                raise AssertionError("asked again")
            other = Store(store.folder, {})
            for record in Recorder().do(task):
                other.add(record)
            self.asked[task[0].key] += 1
            return []

    assert do(Late(OWN), store, runs)


def test_waiting_for_others_ends_with_the_time_and_with_ctrl_c(store, monkeypatch):
    runs = make_runs(("erm",), 1, 1, baselines=())
    assert not do(Recorder(OWN, times=10**9), store, runs, max_minutes=0.02 / 60)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    assert not do(Recorder(OWN, times=10**9), store, runs)
    timer.join()
    assert store.done() == set()


def test_ctrl_c_and_errors_ask_networks_to_pause_and_the_next_call_goes_on(store):
    runs, seen = make_runs(("erm",), 1, 2, baselines=()), []
    worker = Recorder(OWN, folder=store.folder)

    def flags():
        return [path.name for path in store.folder.glob("checkpoints/pause-*")]

    def press(records):
        os.kill(os.getpid(), signal.SIGINT)
        seen.append(flags())

    assert not do(worker, store, runs, press)
    assert [len(found) for found in seen] == [1]
    assert not (store.folder / "checkpoints").exists()

    def fail(records):
        raise ValueError("of the user")

    with pytest.raises(ValueError, match="of the user"):
        do(worker, store, runs, fail)
    assert len(flags()) == 1  # what other processes still do is for nobody
    assert do(worker, store, [*runs, *make_runs(("mixup",), 1, 1, baselines=())])
    assert flags() == []


def test_any_thread_may_do_runs(store):
    runs = make_runs(("erm",), 1)
    thread = threading.Thread(target=do, args=(Recorder(), store, runs))
    thread.start()
    thread.join()
    assert store.done() == {run.key for run in runs}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "`jobs` must be"),
        ({"executor": "dask"}, "`executor` must be one of 'process', 'ray', got 'dask'"),
        ({"ray_address": "auto"}, "`ray_address` needs executor=\"ray\", got 'process'"),
        ({"max_minutes": 0.0}, "`max_minutes` must be"),
        ({"gpus_per_run": -1.0, "executor": "ray"}, "`gpus_per_run` must be"),
        ({"gpus_per_run": 1.5, "executor": "ray"}, "`gpus_per_run` must be a part of one or a who"),
        ({"gpus_per_run": 1.0}, "`gpus_per_run` needs executor=\"ray\", got 'process'"),
    ],
)
def test_a_workforce_that_cannot_be_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        Workforce(**options)
