"""Who does the work: every task once, in order, none that is done, none after the end."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError, RegaugError
from regaug.problems import Problem
from regaug.runs import entrance
from regaug.runs.executors import pending, run_here, run_in_processes
from regaug.runs.run import Run
from regaug.runs.tasks import make_tasks
from regaug.runs.worker import Worker
from regaug.training import Settings


class Echo:
    """Does a task by giving it back."""

    def do(self, task):
        return [(task, torch.get_num_threads())]


class Deadly:
    """Is a task that ends the process that is given it."""

    def __reduce__(self):
        return signal.raise_signal, (signal.SIGKILL,)


def never(task=None):
    return False


def run(tasks, *, is_done=never, is_over=never):
    found = run_here(Echo(), pending(tasks, is_done=is_done, is_over=is_over))
    return [task for records in found for task, _ in records]


def make_worker(splits):
    data = make_manifold("sine", n=40)
    problem = Problem([data.split(seed) for seed in range(splits)], name="sine", hidden=(8,))
    return Worker([problem], details=True)


def make_work(splits=2):
    """A worker with a baseline on each split and three stacks, of another batch size each."""
    runs = [Run("sine", "mean", i, 0) for i in range(splits)]
    for size in (8, 12, 16):
        settings = Settings(epochs=3, batch_size=size)
        runs += [Run("sine", "erm", i, i, settings, size) for i in range(splits)]
    worker = make_worker(splits)
    return worker, make_tasks(runs, worker.problems)


def test_tasks_are_done_in_order_with_one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = list(run_here(Echo(), "abc"))
        assert found == [[("a", 1)], [("b", 1)], [("c", 1)]]
        assert torch.get_num_threads() == 2
        work = run_here(Echo(), "abc")
        next(work)
        work.close()  # as when whoever asked was interrupted
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_what_others_have_done_is_left_out_when_its_turn_comes():
    done = set("b")

    def is_done(task):
        done.add("d")  # by somebody else, meanwhile
        return task in done

    assert run("abcde", is_done=is_done) == ["a", "c", "e"]


def test_nothing_is_started_after_the_end():
    asked = iter([False, False, True])
    assert run("abcde", is_over=lambda: next(asked)) == ["a", "b"]
    assert run("abc", is_over=lambda: True) == []


@pytest.mark.serial
def test_processes_do_what_one_does_and_stop_when_asked():
    worker, tasks = make_work()
    expected = {own.run.key: own for task in tasks for own in worker.do(task)}
    skipped, started = tasks[1], []

    def is_over():
        started.append(None)
        return len(started) > 4

    left = pending(tasks, is_done=lambda task: task == skipped, is_over=is_over)
    found = {
        own.run.key: own for records in run_in_processes(worker, left, jobs=2) for own in records
    }
    assert len(tasks) == 5
    assert found.keys() == expected.keys() - {run.key for run in skipped}
    for key, own in found.items():
        assert own.scores == expected[key].scores
        assert own.sample == expected[key].sample


@pytest.mark.serial
@pytest.mark.slow
def test_an_error_in_a_process_arrives_here():
    _, tasks = make_work()
    wrong = make_worker(splits=1)  # without the second split
    work = run_in_processes(wrong, tasks, jobs=2)
    with pytest.raises((LookupError, ArgumentError)):
        list(work)


@pytest.mark.serial
@pytest.mark.slow
def test_a_process_that_is_killed_is_an_error_that_says_what_to_do():
    worker, _ = make_work()
    work = run_in_processes(worker, [Deadly()], jobs=2)
    with pytest.raises(RegaugError, match=r"ended from outside.*continue .* fewer jobs"):
        list(work)


def test_what_cannot_be_sent_to_a_process_is_told_with_the_way_out():
    problem = Problem(make_worker(1).problems["sine"].splits, lambda split: None, name="sine")
    work = run_in_processes(Worker([problem]), ["a"], jobs=1)
    with pytest.raises(ArgumentError, match=r"sent to another process, got: .* Define `model` in"):
        list(work)


def test_a_process_that_was_not_started_for_this_says_so(monkeypatch):
    monkeypatch.setattr(entrance, "_worker", None)
    with pytest.raises(RegaugError, match="has not been started by run_in_processes"):
        entrance.do(b"")


# What a limit does to one library of many, in workers alone.
BROKEN = """
import sys

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise {error}

if any("multiprocessing" in word for word in sys.orig_argv):
    sys.meta_path.insert(0, Broken())
"""


@pytest.mark.serial
@pytest.mark.parametrize(
    ("module", "error", "words"),
    [
        ("torch", 'ImportError("no")', "A worker process could not be started (ImportError: no)."),
        ("torch", "MemoryError()", "A worker process could not be started (MemoryError). If that"),
        (
            "scipy.linalg",  # when there is something to do
            'ImportError("libx.so: failed to map segment from shared object")',
            "There is not enough memory, or a limit forbids it (ulimit -v). Use fewer jobs (-j)",
        ),
    ],
)
def test_a_worker_that_cannot_import_what_it_needs_says_so_in_a_sentence(
    tmp_path, module, error, words
):
    (tmp_path / "sitecustomize.py").write_text(BROKEN.format(module=module, error=error))
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    study = ["compare", "synthetic-sine", "--quick", "--methods", "mixup", "-j", "2", "--out"]
    done = subprocess.run(
        [sys.executable, "-m", "regaug", *study, str(tmp_path / "runs")],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"Error: {words}")


HEARTBEAT = """
import sys, time
from pathlib import Path
from regaug.runs.executors import run_in_processes
from regaug.runs.processes import begin_early

class Beats:
    def do(self, task):
        while True:
            Path(task).write_text(str(time.time()))
            time.sleep(0.05)

if __name__ == "__main__":
    if sys.argv[2] == "early":
        begin_early()
    list(run_in_processes(Beats(), [sys.argv[1]], jobs=1))
"""


@pytest.mark.serial
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL.")
@pytest.mark.parametrize("when", ["late", "early"])
def test_a_process_ends_with_the_one_that_has_started_it(when, tmp_path):
    script, beats = tmp_path / "script.py", tmp_path / "beats"
    script.write_text(HEARTBEAT)
    parent = subprocess.Popen([sys.executable, script, beats, when])
    wait_until(beats.exists)
    parent.kill()  # no chance to tidy up
    parent.wait()

    def is_still():
        before = beats.read_text()
        time.sleep(0.5)
        return beats.read_text() == before

    wait_until(is_still)


UNGUARDED = """
import torch
from regaug.data.datasets.synthetic import make_manifold
from regaug.problems import Problem
from regaug.runs.executors import run_in_processes
from regaug.runs.run import Run
from regaug.runs.worker import Worker

def model(split):
    return torch.nn.Linear(1, 1)

data = make_manifold("sine", n=20_000)  # more than a pipe takes at once
problem = Problem([data.split(0)], {model}, name="sine")
for records in run_in_processes(Worker([problem]), [(Run("sine", "mean", 0, 0),)], jobs=2):
    print("done", records[0].run.method)
"""


def run_unguarded(tmp_path, model):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.replace("{model}", model))
    command = [sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.serial
def test_a_script_that_works_when_it_is_imported_is_not_run_again(tmp_path):
    ran = run_unguarded(tmp_path, "None")
    assert ran.stdout == "done mean\n", ran.stderr
    assert not ran.returncode


@pytest.mark.serial
@pytest.mark.slow
def test_a_script_that_has_to_be_run_again_is_told_how_and_waits_for_nobody(tmp_path):
    ran = run_unguarded(tmp_path, "model")
    assert ran.returncode
    assert not ran.stdout
    assert 'put all that it does below if __name__ == "__main__":' in ran.stderr


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
