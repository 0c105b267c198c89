"""Four processes that write a hundred thousand runs and are killed time and again lose none."""

import multiprocessing
import os
import random
import time

import pytest

from regaug.metrics import Scores
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store

WRITERS, EACH, KILLS = 4, 25_000, 60
STUDY = {"data": "houses.csv"}


def make_run(number):
    return Run("houses", "ridge", number, 0)


def write(folder, acknowledged, first, last):
    """Add runs, and say after each that it is on the disk."""
    store = Store(folder, STUDY)
    scores = {"test": Scores(9, 1.0, 0.5, None, 0, 0.25, None)}
    with open(acknowledged, "ab", buffering=0) as told:
        for number in range(first, last):
            run = make_run(number)
            store.add(RunRecord(run, scores, "finished", 0, 0, 0.5, (6, 2, 2), {}))
            told.write(b"%d\n" % number)


def last_told(path, first):
    """Return the number after the last one that was told whole."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return int(lines[-1]) + 1 if lines else first


@pytest.mark.slow
@pytest.mark.serial
def test_no_announced_run_is_lost_in_a_hundred_thousand_writes_with_kills(tmp_path):
    context, rng = multiprocessing.get_context("fork"), random.Random(0)
    folder, told = tmp_path / "study", [tmp_path / f"told-{i}" for i in range(WRITERS)]
    Store(folder, STUDY)

    def begin(i):
        start = last_told(told[i], i * EACH)
        process = context.Process(target=write, args=(folder, told[i], start, (i + 1) * EACH))
        process.start()
        return process

    processes, kills = [begin(i) for i in range(WRITERS)], 0
    while any(process.is_alive() for process in processes):
        time.sleep(rng.uniform(0.05, 0.5))
        i = rng.randrange(WRITERS)
        if kills < KILLS and processes[i].is_alive():
            os.kill(processes[i].pid, 9)
            processes[i].join()
            processes[i], kills = begin(i), kills + 1
    assert [process.exitcode for process in processes] == [0] * WRITERS
    store = Store.open(folder)
    found = store.done()
    lost = [n for n in range(WRITERS * EACH) if make_run(n).key not in found]
    print(f"{WRITERS * EACH:,} writes, {kills} kills, {len(lost)} lost, {len(store.damaged)} cut")
    assert lost == []
    assert kills >= KILLS // 2
    assert all("is cut" in message for message in store.damaged)
    assert len(store.damaged) <= kills
