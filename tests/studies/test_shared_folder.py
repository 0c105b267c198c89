"""Several commands on one folder share its work: nothing is done twice, all have the same table."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regaug.cli.main import app
from regaug.runs import claims, tasks
from regaug.runs.store import Store
from regaug.runs.worker import Worker
from regaug.studies import eligibility, plan
from regaug.studies.study import Study

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="starts processes by forking"),
]
COMMAND = ["compare", "line.py:problem", "-m", "mixup,foma-rho", "--trials", "2", "-j", "1"]
PAUSE = "REGAUG_TEST_PAUSE"  # seconds that a task takes beside its arithmetic
SCRIPT = """
from regaug.data.datasets.synthetic import make_manifold
from regaug.problems import Problem

def problem():
    return Problem.from_table(make_manifold("paraboloid", n=60, noise=0.3), splits=2)
"""


# What follows, until the tests, runs in a process of its own with a single thread, which can be
# forked safely: a process that had to import everything would mostly be killed doing that.


def prepare(folder):
    """Make everything small, and let every task say when it begins."""
    torch.set_num_threads(1)
    eligibility.baseline_names = lambda split: ("mean", "ridge")
    real = Worker.do

    def do(self, task):
        line = f"{os.getpid()} {task[0].key}\n"
        with open("begun.log", "a", buffering=1) as file:
            file.write(line)
        time.sleep(float(os.environ[PAUSE]))
        return real(self, task)

    Worker.do = do
    draw = plan.draw_recipes
    plan.draw_recipes = lambda *args, **more: [replace(o, epochs=3) for o in draw(*args, **more)]
    tasks.most_runs = lambda batch_size: 3
    tasks._LOOK = claims._LOOK = 0.02
    Study.report = lambda self, path, force=False: path  # plots take long
    os.chdir(folder)
    Path("line.py").write_text(SCRIPT)


def study(out):
    with open(f"{out}-{os.getpid()}.json", "w") as file, open(os.devnull, "w") as nothing:
        with redirect_stdout(file), redirect_stderr(nothing):
            app([*COMMAND, "--out", out, "--json"], standalone_mode=False)


def start(out):
    """Begin the command in a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        study(out)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def finish(children):
    """Wait for processes; return the tables that they have printed."""
    statuses = {child: os.waitpid(child, 0)[1] for child in children}
    if any(statuses.values()):
        sys.exit("a command that nobody killed has failed")


def drive(folder, kills, processes):
    """Study with one process, then with several of which some are killed; tell what came out."""
    prepare(folder)
    study("warm")  # imports what it needs
    Path("begun.log").unlink()
    clock = time.monotonic()
    finish([start("one")])
    one = time.monotonic() - clock
    os.rename("begun.log", "one.log")
    rng, clock, killed = np.random.default_rng(kills), time.monotonic(), []
    running = [start("many") for _ in range(processes)]
    for _ in range(kills):
        time.sleep(rng.uniform(0.0, 0.6))
        place = int(rng.integers(processes))
        os.kill(running[place], signal.SIGKILL)
        if os.WIFSIGNALED(os.waitpid(running[place], 0)[1]):
            killed.append(running[place])
        running[place] = start("many")
    finish(running)
    print(json.dumps({"killed": killed, "one": one, "many": time.monotonic() - clock}))


# Tests


def run(folder, kills, *, pause=0.1, processes=3):
    code = (
        "import runpy, sys; "
        "runpy.run_path(sys.argv[1])['drive'](sys.argv[2], *map(int, sys.argv[3:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, __file__, str(folder), str(kills), str(processes)],
        env=os.environ | {"OMP_NUM_THREADS": "1", PAUSE: str(pause)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SAME = ("configuration", "trials", "rows", "pairs", "best", "verdict", "steps", "checks")


def tables(folder, name):
    """Return what the commands have printed that came to their end, without times."""
    texts = [own.read_text() for own in folder.glob(f"{name}-*.json")]
    return [{key: json.loads(text)[0][key] for key in SAME} for text in texts if text]


def folder_of(folder, name):
    (study,) = (own.parent for own in folder.glob(f"{name}/*/full-*/study.json"))
    return study


def scores_in(study):
    """Return what came out of every run; there must be a single line for each."""
    lines = [line for own in study.glob("runs-*") for line in own.read_bytes().splitlines()]
    records = Store.open(study).records()
    assert len(lines) == len(records)
    return {key: (own.scores, own.epochs, own.ending) for key, own in records.items()}


def begun(log):
    """Return who has begun each task, in turn."""
    found = defaultdict(list)
    for line in log.read_text().splitlines():
        process, task = line.split()
        found[task].append(int(process))
    return found


def check(folder, told, processes):
    (one,) = tables(folder, "one")
    many = tables(folder, "many")
    assert len(many) >= processes  # one may be killed after its end
    assert all(table == one for table in many)
    study = folder_of(folder, "many")
    assert scores_in(study) == scores_in(folder_of(folder, "one"))
    left = {own.name for own in study.iterdir() if not own.name.startswith("runs-")}
    # What a killed one was about to write, or had claimed at the very end, goes with time.
    cut = {name for name in left if name.endswith(".tmp") or name == "turn.json"}
    assert left - cut == {"study.json", "about.json", "targets.safetensors"}
    assert told["killed"] or not cut
    assert {own.name for own in (folder / "many").iterdir()} == {study.parent.name}
    found = begun(folder / "begun.log")
    assert found.keys() == begun(folder / "one.log").keys()
    for owners in found.values():  # again only if whoever had begun was killed
        assert set(owners[:-1]) <= set(told["killed"])
        assert len(set(owners)) == len(owners)
    return found


def test_three_commands_share_the_work_and_two_kills_change_nothing(tmp_path):
    told = run(tmp_path, kills=2)
    found = check(tmp_path, told, 3)
    assert len({owner for owners in found.values() for owner in owners}) >= 3


@pytest.mark.slow
def test_three_commands_share_the_work_and_take_less_time(tmp_path):
    told = run(tmp_path, kills=0, pause=1.0)
    found = check(tmp_path, told, 3)
    assert {len(owners) for owners in found.values()} == {1}
    assert told["many"] < told["one"]
    print(f"{len(found)} tasks: {told['one']:.1f} s, by three {told['many']:.1f} s")


@pytest.mark.slow
def test_thirty_kills_at_random_moments_change_nothing(tmp_path):
    told = run(tmp_path, kills=30, pause=2.0)
    found = check(tmp_path, told, 3)
    assert len(told["killed"]) > 15
    again = sum(len(owners) - 1 for owners in found.values())
    assert again > 0
    print(f"{len(told['killed'])} kills: {len(found)} tasks were begun {again} times again")
