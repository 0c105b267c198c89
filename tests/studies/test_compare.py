"""The study: decided by its seed, continued by the same call, honest about what it leaves out."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import read_table, standardize
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.datasets.series import SeriesData
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.splits import random_split
from regaug.exceptions import ArgumentError, ArgumentTypeError, StoreError, UnknownNameError
from regaug.metrics import Scores
from regaug.runs.store import Store
from regaug.runs.worker import make_tasks
from regaug.studies import compare as module
from regaug.studies import running
from regaug.studies.compare import compare, estimate_seconds, make_plan
from regaug.studies.study import Study

# With seed 0, trials have batches of 32, 16, 16 and 64: no method is done in one piece.
METHODS = ("erm", "c-mixup", "foma-rho")
SIZE = {"methods": METHODS, "trials": 4, "splits": 3}
RUNS = 3 * 4 * 3 + 2 * 3


def make_small(patch):
    """Make studies small: the length of a training and the nets are no arguments of theirs."""
    for name, value in (("EPOCHS", 6), ("PATIENCE", 3), ("HIDDEN", (8,))):
        patch.setattr(module, name, value)
    patch.setattr(module, "baseline_names", lambda split: ("mean", "ridge"))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    make_small(monkeypatch)


def make_data(n=60, seed=0):
    return make_manifold("paraboloid", n=n, noise=0.3, seed=seed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that nothing has disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return compare(make_data(), out=tmp_path_factory.mktemp("whole") / "runs", **SIZE)


def check_same(study, other):
    assert study.comparison == other.comparison
    assert study.verdict == other.verdict
    assert study.settings == other.settings
    assert study.trials == other.trials


def count_lines(folder):
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs-*.jsonl"))


# The seed decides.


def test_the_same_seed_gives_the_same_table_bit_for_bit(whole):
    torch.rand(7)  # whatever else a process does with the global generator
    check_same(compare(make_data(), **SIZE), whole)


@pytest.mark.serial
def test_two_processes_give_the_table_of_one(whole):
    check_same(compare(make_data(), jobs=2, **SIZE), whole)


def test_another_seed_gives_another_table(whole):
    other = compare(make_data(), seed=1, **SIZE)
    for row in other.comparison.rows:
        assert row.errors != whole.comparison.row(row.name).errors


def test_global_state_is_left_alone():
    before = torch.get_rng_state(), torch.get_num_threads(), signal.getsignal(signal.SIGINT)
    compare(make_data(), trials=1, splits=1, methods=["erm"])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), signal.getsignal(signal.SIGINT)) == before[1:]


def test_a_study_has_what_was_asked_for(whole):
    assert whole.trials == 4
    assert {row.name for row in whole.comparison.rows} == {*METHODS, "mean", "ridge"}
    assert all(len(own) == 3 for own in whole.chosen.values())
    assert all(row.n_failed == 0 for row in whole.comparison.rows)
    for method in METHODS:
        assert [run.run["split"] for run in whole.chosen[method]] == [0, 1, 2]
        assert {run.run["method"] for run in whole.chosen[method]} == {method}


# Plans


def test_the_defaults_are_those_of_the_documentation():
    plan = make_plan(make_data())
    asked = plan.configuration
    assert (len(asked["methods"]), asked["trials"], asked["splits"]) == (9, 20, 10)
    assert sum(run.trial is not None for run in plan.runs) == 1800
    quick = make_plan(make_data(), quick=True).configuration
    assert (len(quick["methods"]), quick["trials"], quick["splits"]) == (5, 8, 5)
    assert make_plan(make_data(), quick=True, trials=2).configuration["trials"] == 2


@pytest.mark.parametrize("methods", [["mixup"], ["mixup", "erm"], ["mixup", "mixup"]])
def test_plain_training_is_always_there_and_no_method_twice(methods):
    assert set(make_plan(make_data(), methods=methods).configuration["methods"]) == {"erm", "mixup"}
    runs = make_plan(make_data(), methods=methods, trials=1, splits=1).runs
    assert sorted(run.name for run in runs) == ["erm", "mean", "mixup", "ridge"]


def test_a_plan_is_the_same_for_everybody():
    plan, other = make_plan(make_data(), **SIZE), make_plan(make_data(), **SIZE)
    assert plan.configuration == other.configuration
    assert make_tasks(plan.runs) == make_tasks(other.runs)
    assert json.loads(json.dumps(plan.configuration)) == plan.configuration


def test_every_split_has_other_test_rows():
    plan = make_plan(make_data(), splits=5)
    assert len({split.test.rows.tobytes() for split in plan.splits}) == 5


def test_a_longer_study_is_estimated_to_take_longer():
    plan = make_plan(make_data(), **SIZE)
    assert 0 < estimate_seconds(plan, plan.runs[:5]) < estimate_seconds(plan, plan.runs)


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


@pytest.mark.parametrize("data", ["houses.csv", [], [1], 7, make_data().split()])
def test_what_is_no_data_is_refused(data):
    with pytest.raises(ArgumentTypeError, match="`data` must be a table .* or a list of splits"):
        compare(data)


def test_data_that_is_no_table_is_refused():
    info = Info(name="waves", task="series", metric="rmse", split="By time.")
    series = SeriesData(np.random.default_rng(0).random((90, 2)), info=info, window=6, horizon=1)
    with pytest.raises(ArgumentError, match="`data` must be a table, got waves, a series data set"):
        compare(series)
    with pytest.raises(ArgumentError, match=r"`data` must .*(in memory|own units)"):
        compare([series.split()])


def test_standardized_splits_are_refused_because_their_units_are_lost():
    with pytest.raises(ArgumentError, match="own units, got standardized ones"):
        compare([standardize(make_data().split())])


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


def test_the_test_share_counts_validation_rows_as_training_rows():
    assert make_plan(make_data(100)).configuration["test_share"] == pytest.approx(20 / 80)


def test_a_large_table_is_thinned_and_says_so(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 50)
    plan = make_plan(make_data(200), splits=2)
    assert plan.notes == ["The study looks at 50 of the 200 rows."]
    assert [len(p) for p in (plan.splits[0].train, plan.splits[0].test)] == [30, 10]
    assert plan.configuration["data"]["rows"] == 50
    assert make_plan(make_data(50), splits=2).notes == []


def make_skewed(n=100):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 2))
    info = Info(name="prices", task="table", metric="rmse", split="At random.")
    y = np.exp(3 + 1.5 * x[:, 0])
    return ArrayData(x, y, info=info, rule=lambda seed: random_split(n, seed=seed))


def test_half_the_settings_fit_the_logarithm_of_a_skewed_positive_target(monkeypatch):
    monkeypatch.setattr(module, "EPOCHS", 60)
    monkeypatch.setattr(module, "PATIENCE", 60)
    plan = make_plan(make_skewed(), trials=4, splits=2, methods=["erm"])
    assert plan.notes == ["The target is positive and skewed: half the settings fit its logarithm."]
    logs = [run.trial.log for run in plan.runs if run.trial is not None and run.split == 0]
    assert logs == [False, True, False, True]
    study = compare(make_skewed(), trials=4, splits=2, methods=["erm"])
    # exp(3 + 1.5 x) is linear in x on the log scale: that must win, and be scored in own units.
    assert all(run.run["log"] for run in study.chosen["erm"])
    assert study.settings["erm"]["log"]
    plain, mean = (study.comparison.row(name).mean for name in ("erm", "mean"))
    assert 0.01 < plain < mean / 2


@pytest.mark.parametrize("change", [lambda y: -y, lambda y: y - y.min(), np.log])
def test_no_other_target_is_fitted_by_its_logarithm(change):
    data = make_skewed()
    data.y = change(data.y)
    plan = make_plan(data, trials=2, splits=2)
    assert plan.notes == []
    assert not any(run.trial.log for run in plan.runs if run.trial is not None)


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


def test_groups_are_held_out_whole_and_have_scores_of_their_own(tmp_path):
    data = read_table(make_frame(), target="price", group="city", drop=["rent", "day"])
    study = compare(data, methods=["mixup"], trials=1, splits=2, out=tmp_path)
    for split, run in zip(make_plan(data, splits=2).splits, study.chosen["mixup"], strict=True):
        scores = Scores.from_dict(run.result["scores"]["test"])
        assert scores.groups.keys() == set(split.test.groups)
        assert not set(split.test.groups) & {*split.train.groups, *split.validation.groups}
        assert scores.worst("rmse")[1] > scores.rmse


def test_data_split_by_time_has_one_split_and_says_so():
    data = read_table(make_frame(), target="price", time="day", drop=["rent", "city"])
    assert make_plan(data).notes == [
        "This data has one split only, so nothing can be said of certainty."
    ]
    study = compare(data, methods=["mixup"], trials=2)
    assert study.comparison.n_splits == 1
    assert study.verdict.recommended == "erm"
    assert "single split" in study.verdict.text


def test_several_targets_are_compared_together():
    data = read_table(make_frame(), target=["price", "rent"], drop=["city", "day"])
    study = compare(data, methods=["foma"], trials=1, splits=2)
    assert study.configuration["data"]["targets"] == 2
    sample = study.chosen["foma"][0].result["sample"]
    assert {len(row) for row in (*sample["true"], *sample["predicted"])} == {2}


def test_the_metric_chooses_and_is_compared():
    study = compare(make_data(), metric="r2", methods=["mixup"], trials=3, splits=2)
    assert study.comparison.metric == "r2"
    for run in study.chosen["mixup"]:
        history = run.result["history"]["validation"]
        best = run.result["scores"]["validation"]["r2"]
        assert max(history) == history[run.result["best_epoch"] - 1] == pytest.approx(best, 1e-4)


# The store


class StoppedError(Exception):
    """Stands for whatever ends a process."""


def interrupt_after(count):
    """Return something to watch a study with, which ends it after so many pieces of work."""
    left = iter(range(1, count + 1))

    def watch(outcome):
        if next(left, None) in (None, count):
            raise StoppedError

    return watch


@pytest.fixture
def counted(monkeypatch):
    """The tasks that are done, as they are."""
    done = []
    real = module.Worker.do
    monkeypatch.setattr(module.Worker, "do", lambda self, t: done.append(t) or real(self, t))
    return done


def test_a_continued_study_does_only_what_is_missing(tmp_path, whole, counted):
    tasks = make_tasks(make_plan(make_data(), **SIZE).runs)
    for count in (3, 2):
        with pytest.raises(StoppedError):
            compare(make_data(), out=tmp_path, watch=interrupt_after(count), **SIZE)
    assert counted == tasks[:5]
    check_same(compare(make_data(), out=tmp_path, **SIZE), whole)
    assert counted == tasks
    check_same(compare(make_data(), out=tmp_path, **SIZE), whole)
    check_same(Study.open(tmp_path), whole)
    assert len(counted) == len(tasks)  # a finished study is only read
    assert count_lines(tmp_path) == RUNS


def test_a_cut_last_line_is_reported_and_its_piece_of_work_done_again(tmp_path, whole, counted):
    compare(make_data(), out=tmp_path, **SIZE)
    (file,) = tmp_path.glob("runs-*.jsonl")
    file.write_bytes(file.read_bytes()[:-40])
    store = Store.open(tmp_path)
    assert len(store.done()) == RUNS - 1
    assert store.damaged == [f"{file.name}, line {RUNS} is cut; its run is done again"]
    counted.clear()
    check_same(compare(make_data(), out=tmp_path, **SIZE), whole)
    assert len(counted) == 1
    assert count_lines(tmp_path) == RUNS  # the others of that piece are not written twice


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"trials": 5}, "trials was 4 and is 5"),
        ({"metric": "mae"}, 'metric was "rmse" and is "mae"'),
        ({"methods": ["erm", "c-mixup"]}, 'methods.2 was "foma-rho" and is not set'),
        ({"independent": True}, "independent was false and is true"),
        ({"data": make_data(seed=3)}, "data.checksum was"),
    ],
)
def test_another_study_is_not_mixed_with_the_one_of_a_folder(tmp_path, counted, change, message):
    with pytest.raises(StoppedError):
        compare(make_data(), out=tmp_path, watch=interrupt_after(1), **SIZE)
    counted.clear()
    options = {"data": make_data(), **SIZE, **change}
    with pytest.raises(StoreError, match=f"another study: .*{message}"):
        compare(options.pop("data"), out=tmp_path, **options)
    assert counted == []


# Ends before the end


def press(times, after):
    """Return something to watch a study with, which presses Ctrl-C after so many pieces of work."""
    seen = []

    def watch(outcome):
        seen.append(outcome)
        if len(seen) == after:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    watch.seen = seen
    return watch


def first_whole_trial():
    """How many pieces of work it takes until all methods have a trial."""
    tasks = make_tasks(make_plan(make_data(), **SIZE).runs)
    first = {run.key for run in make_plan(make_data(), **SIZE | {"trials": 1}).runs}
    for count in range(len(tasks) + 1):
        first -= {run.key for task in tasks[:count] for run in task}
        if not first:
            return count
    raise AssertionError("the first trial is not among the tasks")


def test_ctrl_c_once_reports_on_what_is_finished(tmp_path, whole):
    watch = press(1, after=first_whole_trial())
    study = compare(make_data(), out=tmp_path, watch=watch, **SIZE)
    assert len(watch.seen) == first_whole_trial()
    assert 1 <= study.trials < 4
    assert {row.name for row in study.comparison.rows} == {*METHODS, "mean", "ridge"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    check_same(compare(make_data(), out=tmp_path, **SIZE), whole)


@pytest.mark.slow
def test_ctrl_c_once_lets_worker_processes_finish_what_they_do(tmp_path):
    watch = press(1, after=first_whole_trial())
    study = compare(make_data(), out=tmp_path, watch=watch, jobs=2, **SIZE)
    assert first_whole_trial() <= len(watch.seen) <= first_whole_trial() + 1
    assert 1 <= study.trials < 4
    assert count_lines(tmp_path) == sum(len(outcome) for outcome in watch.seen)


def study_in_processes(folder):
    """Study with two processes; say when it begins, and what is stored in the end."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        print("begun", flush=True)
        try:
            compare(make_data(), out=folder, jobs=2, **SIZE)
        except StoreError as error:
            print(error)
        print(count_lines(folder))


@pytest.mark.slow
def test_ctrl_c_on_a_terminal_does_not_end_processes_that_have_just_been_started(tmp_path):
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
    tasks = make_tasks(make_plan(make_data(), **SIZE).runs)
    assert study.returncode == 0
    assert told[0].startswith("The study has no setting yet")
    assert int(told[1]) == len(tasks[0]) + len(tasks[1])  # both finished what they had been given


def test_ctrl_c_twice_interrupts(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        compare(make_data(), out=tmp_path, watch=press(2, after=2), **SIZE)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    tasks = make_tasks(make_plan(make_data(), **SIZE).runs)
    assert count_lines(tmp_path) == len(tasks[0]) + len(tasks[1])


def test_a_study_that_has_no_time_says_that_nothing_is_finished(tmp_path):
    with pytest.raises(StoreError, match=r"no setting yet .* Run the same command again"):
        compare(make_data(), out=tmp_path, max_minutes=1e-9, **SIZE)
    assert Store.open(tmp_path).done() == set()


def test_a_study_that_runs_out_of_time_reports_on_what_is_finished(tmp_path, monkeypatch, whole):
    clock = [0.0]
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    seen = []

    def watch(outcome):
        seen.append(outcome)
        clock[0] = 60.0 * len(seen) / first_whole_trial()

    study = compare(make_data(), out=tmp_path, max_minutes=0.999, watch=watch, **SIZE)
    assert len(seen) == first_whole_trial()
    assert 1 <= study.trials < 4
    check_same(compare(make_data(), out=tmp_path, max_minutes=10, **SIZE), whole)


# Kills. What follows, until the tests, runs in a process of its own with a single thread, which can
# be forked safely: a process that had to import everything would mostly be killed doing that.


def start(folder):
    """Start the study in a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        compare(make_data(), out=folder, **SIZE)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def lines(folder):
    files = [path.read_bytes() for path in sorted(folder.glob("runs-*.jsonl"))]
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
        compare(make_data(), methods=["erm"], trials=1, splits=1)  # imports what it needs
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
    planned = {run.key for run in make_plan(make_data(), **SIZE).runs}
    for name in ("whole", "two", "killed"):
        assert Store.open(tmp_path / name).done() == planned
        check_same(Study.open(tmp_path / name), whole)
    for name in ("whole", "killed"):  # no run is lost, none is there twice
        keys = [json.loads(line)["key"] for line in lines(tmp_path / name) if line.endswith(b"\n")]
        assert sorted(keys) == sorted(planned)
