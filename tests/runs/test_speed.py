"""How fast this machine is: found out once, by what is the same everywhere."""

import time

import torch

from regaug.runs import speed
from regaug.runs.speed import slowness


def test_a_clock_that_runs_faster_tells_of_a_slower_machine(monkeypatch):
    found = []
    for factor in (1e-9, 1.0, 1e9):
        slowness.cache_clear()
        monkeypatch.setattr(speed.time, "perf_counter", lambda by=factor: by * time.monotonic())
        found.append(slowness())
    slowness.cache_clear()
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0.25, 8.0)  # however odd the clock is


def test_it_takes_a_moment_and_changes_nothing():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    slowness.cache_clear()
    start = time.process_time()
    first = slowness()
    assert time.process_time() - start < 1.0
    assert slowness() is first
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
