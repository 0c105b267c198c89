"""Studies of a network that somebody ends in the middle: nothing is lost, nothing is done twice."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from regaug import _random, methods
from regaug.data.datasets.synthetic import make_manifold
from regaug.problems import Problem
from regaug.runs import tasks, unfinished
from regaug.runs.processes import begin_early
from regaug.runs.store import Store
from regaug.runs.tasks import Workforce
from regaug.studies.compare import run_plan
from regaug.studies.folders import Place
from regaug.studies.plan import make_plan
from regaug.studies.study import Study
from regaug.training import Settings

EPOCHS, METHODS, SPLITS = 8, ("erm", "mixup"), 3
RUNS = len(METHODS) * SPLITS
LOG, PAUSE = "REGAUG_TEST_LOG", "REGAUG_TEST_PAUSE"


class Slow(nn.Module):
    """A net whose epoch is one step; it takes its time, and a line of a file says when it ends."""

    def __init__(self, seed):
        super().__init__()
        with _random.seeded(seed):
            self.layers = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        found = self.layers(x)
        if self.training and len(x) > 2:  # before a study two samples are a rehearsal
            time.sleep(float(os.environ.get(PAUSE, 0)))
            if LOG in os.environ:
                # The state that an epoch begins with is no other one's.
                line = f"{self.layers[0].weight.double().sum().item():.17g}\n"
                with open(os.environ[LOG], "a", buffering=1) as file:
                    file.write(line)
        return found


def make_net(split, seed):
    return Slow(seed)


def make_study():
    data = make_manifold("paraboloid", n=80, noise=0.2)
    problem = Problem([data.split(seed) for seed in range(SPLITS)], make_net, name="bowl")
    own = {
        name: Settings(
            epochs=EPOCHS,
            batch_size=48,
            learning_rate=0.05,
            method_settings=methods.get(name).settings(),
        )
        for name in METHODS
    }
    return make_plan(problem, methods=METHODS, settings=own, baselines=False)


def run(folder, jobs=1, executor="process", observer=None, **more):
    return run_plan(
        make_study(), Place(Path(folder)), Workforce(jobs, executor, **more), observer=observer
    )


def scores(folder):
    records = Store.open(folder).records().values()
    return {own.run.key: (own.scores, own.best_epoch, own.curves["loss"]) for own in records}


def epochs(log):
    """Return how often every epoch of every run was done."""
    return Counter(Path(log).read_text().splitlines() if Path(log).exists() else [])


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a study that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder)
    return folder


def check_same(folder, whole):
    assert scores(folder) == scores(whole)
    assert Study.open(folder).comparison == Study.open(whole).comparison
    lines = [line for file in folder.glob("runs-*") for line in file.read_bytes().splitlines()]
    assert len(lines) == RUNS  # no run is there twice
    nets = [name for name in files(folder) if name.startswith("nets")]
    assert nets == [name for name in files(whole) if name.startswith("nets")]
    assert not (folder / "checkpoints").exists()


def test_a_finished_study_has_the_weights_of_its_nets_and_no_checkpoint(whole):
    keys = sorted(Store.open(whole).done())
    assert [f"nets/{key}.safetensors" for key in keys] == [
        name for name in files(whole) if name.startswith("nets/")
    ]
    assert not (whole / "checkpoints").exists()


def test_ctrl_c_finishes_the_epoch_and_the_next_call_goes_on(tmp_path, monkeypatch, whole):
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setenv(PAUSE, "0.05")
    folder = tmp_path / "study"

    def press():
        while sum(epochs(tmp_path / "log").values()) < 3:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(Exception, match="Run the same command again"):  # nothing is finished
        run(folder)
    thread.join()
    before = sum(epochs(tmp_path / "log").values())
    assert 3 <= before < EPOCHS
    assert len(list(folder.glob("checkpoints/*/epoch-*"))) >= 1
    monkeypatch.setenv(PAUSE, "0")
    run(folder)
    assert set(epochs(tmp_path / "log").values()) == {1}
    check_same(folder, whole)


def test_a_study_whose_time_is_up_goes_on_in_the_middle_of_a_run(tmp_path, monkeypatch, whole):
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setenv(PAUSE, "0.1")
    folder = tmp_path / "study"
    with pytest.raises(Exception, match="Run the same command again"):
        run(folder, max_minutes=0.25 / 60)
    assert 1 <= sum(epochs(tmp_path / "log").values()) < EPOCHS
    monkeypatch.setenv(PAUSE, "0")
    run(folder, max_minutes=10)
    assert set(epochs(tmp_path / "log").values()) == {1}
    check_same(folder, whole)


# Kills. What follows, until the test, runs in a process of its own with a single thread, which can
# be forked safely: a process that had to import everything would mostly be killed doing that.


def start(folder):
    """Start the study in a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        run(folder)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def finish(*children):
    statuses = [os.waitpid(child, 0)[1] for child in children]  # of all of them
    if any(statuses):
        sys.exit("a study that nobody killed has failed")


def drive(folder, kills):
    """Study with kills, then in two processes at once; print how many epochs were done when."""
    torch.set_num_threads(1)
    folder = Path(folder)
    unfinished.PACE = 0.0  # the disk may be slow; how often to save is tested elsewhere
    tasks._LOOK = 0.05
    run(folder / "warm")  # imports what it needs
    os.environ |= {LOG: str(folder / "killed.log"), PAUSE: "0.02"}
    rng, done = np.random.default_rng(kills), []
    for epoch in np.sort(rng.choice(EPOCHS * RUNS - 12, size=kills, replace=False)):
        child = start(folder / "killed")
        while sum(epochs(folder / "killed.log").values()) < epoch:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        done.append(sum(epochs(folder / "killed.log").values()))
    finish(start(folder / "killed"))
    os.environ[LOG] = str(folder / "two.log")
    finish(*[start(folder / "two") for _ in range(2)])
    print(json.dumps(done))


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks")
def test_kills_cost_the_epoch_that_was_under_way_and_two_processes_share_the_runs(tmp_path, whole):
    code = "import runpy, sys; runpy.run_path(sys.argv[1])['drive'](sys.argv[2], int(sys.argv[3]))"
    kills = 5
    done = subprocess.run(
        [sys.executable, "-c", code, __file__, str(tmp_path), str(kills)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(set(json.loads(done.stdout))) > 2  # they were killed in the middle
    for name in ("killed", "two"):
        check_same(tmp_path / name, whole)
        counted = epochs(tmp_path / f"{name}.log")
        assert len(counted) == EPOCHS * RUNS
        # An epoch that was under way, or ended before its state was saved.
        again = sum(counted.values()) - len(counted)
        assert again <= (kills if name == "killed" else 0)


# Two workers, and real kills: each study imports everything anew.


def begin(folder, jobs, executor):
    """Study with workers, as a command does."""
    begin_early()
    run(folder, jobs=jobs, executor=executor)


def start_anew(folder, executor="process"):
    # Workers import the net from there, too.
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    code = "import sys, test_survival; test_survival.begin(sys.argv[1], 2, sys.argv[2])"
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), executor],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(folders)},
        stderr=subprocess.PIPE,
        text=True,
    )


def children_of(parent):
    """Return the processes below another one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            own = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(own[1]) == parent and own[0] != "Z":
            found += [int(folder.name), *children_of(int(folder.name))]
    return found


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kills", [3, 10])
def test_kills_of_a_study_with_two_workers_leave_no_trace(tmp_path, monkeypatch, whole, kills):
    log, folder = tmp_path / "log", tmp_path / "study"
    monkeypatch.setenv(LOG, str(log))
    monkeypatch.setenv(PAUSE, "0.5")
    rng = np.random.default_rng(0)
    for number, count in enumerate(np.sort(rng.integers(1, EPOCHS * RUNS - 14, size=kills))):
        study = start_anew(folder)
        deadline = time.monotonic() + 120
        wanted = max(int(count), sum(epochs(log).values()) + 2)
        while sum(epochs(log).values()) < wanted and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.5))
        # The study itself, or one of the processes that train for it.
        owners = [json.loads(own.read_bytes()) for own in folder.glob("checkpoints/*/claim.json")]
        below = {own["process"] for own in owners} & set(children_of(study.pid))
        os.kill(min(below) if below and number % 3 == 0 else study.pid, signal.SIGKILL)
        study.communicate(timeout=60)
        assert study.returncode != 0
    study = start_anew(folder)
    _, told = study.communicate(timeout=300)
    assert (study.returncode, told) == (0, "")
    check_same(folder, whole)
    counted = epochs(log)
    assert len(counted) == EPOCHS * RUNS
    assert sum(counted.values()) - len(counted) <= 2 * kills


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_killed_worker_of_ray_goes_on_from_its_last_epoch(tmp_path, monkeypatch, whole):
    pytest.importorskip("ray", reason='needs Ray: pip install "regaug[ray]"')
    log, folder = tmp_path / "log", tmp_path / "study"
    monkeypatch.setenv(LOG, str(log))
    monkeypatch.setenv(PAUSE, "0.5")
    study = start_anew(folder, executor="ray")
    deadline = time.monotonic() + 240
    while sum(epochs(log).values()) < 9 and time.monotonic() < deadline:
        time.sleep(0.01)
    titles = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children_of(study.pid)}
    os.kill(next(pid for pid, title in titles.items() if b"ray::begin" in title), signal.SIGKILL)
    study.communicate(timeout=300)
    assert study.returncode == 0
    check_same(folder, whole)
    counted = epochs(log)
    assert len(counted) == EPOCHS * RUNS
    assert sum(counted.values()) - len(counted) <= 1
