"""Work beside two busy processes: threads that spin while they wait would bring it to a halt."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.timing import Row, interleaved

_BUSY = "while True: pass"
_HEAD = """
import time, numpy as np
from regaug.cli.waiting import wait_asleep
wait_asleep()
import torch
torch.set_num_threads(2)
rng = np.random.default_rng(0)
x = rng.normal(size=(20_000, 8)).astype(np.float32)
y = x @ rng.normal(size=8) + rng.normal(size=20_000)
"""
_WORKS = {
    "the estimator": """
from regaug.integrations.sklearn import AugmentedMLPRegressor
fit = lambda n: AugmentedMLPRegressor(max_iter=2, early_stopping=False).fit(x[:n], y[:n])
""",
    "fit_many": """
from regaug.data import ArrayData, Info
from regaug.training import Settings
from regaug.training.stacked import fit_many
def fit(n):
    info = Info("rows", task="table", metric="rmse", split="At random.")
    split = ArrayData(x[:n], y[:n], info=info).split(seed=0)
    fit_many(split, "mixup", [Settings(epochs=1, seed=seed) for seed in range(4)])
""",
    "compare -j 2": """
from regaug import compare
from regaug.data import ArrayData, Info
def fit(n):
    info = Info("rows", task="table", metric="rmse", split="At random.")
    rows = ArrayData(x[: max(n // 20, 60)], y[: max(n // 20, 60)], info=info)
    compare(rows, methods=["erm", "mixup"], trials=2, splits=2, jobs=2)
""",
}
_END = """
fit(500)
start = time.perf_counter()
fit(20_000)
print(time.perf_counter() - start)
"""


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure() -> Iterator[Row]:
    hidden = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    for name, work in _WORKS.items():
        seconds: list[float] = []

        def run(busy: int, code: str = _HEAD + work + _END, seconds: list[float] = seconds) -> None:
            with _busy(busy):
                words = [sys.executable, "-c", code]
                found = subprocess.run(
                    words, check=True, capture_output=True, text=True, env=environment
                )
            seconds.append(float(found.stdout))

        # The clock of the work alone: imports take their time beside busy processes too.
        calm, busy = interleaved(
            [lambda run=run: run(0), lambda run=run: run(2)], 3, clock=lambda own=seconds: sum(own)
        )
        yield Row(f"{name} beside two busy processes", calm, busy, faster=False, budget=3.0)
