"""A large table: what ``regaug fit`` and ``regaug predict`` need of time and memory.

    python -m benchmarks.large        # writes benchmarks/results/large.json; 2 GB of disk

A million rows of 20 columns, from Parquet and from CSV, each command in a process of its own with
one thread; beside, what a row takes in an epoch of two nets at once, and in a plain loop over both.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from benchmarks.__main__ import machine
from regaug.data import Part, Split
from regaug.training import Settings, fit_many

FILE = Path(__file__).parent / "results" / "large.json"
ROWS, NUMBERS = 1_000_000, 18
LEARNED, BATCH, HIDDEN = 200_000, 512, (128, 128)
FIT = ("--target", "y", "--method", "erm", "--members", "2", "--max-minutes", "1", "-j", "1")


def write_tables(folder: Path) -> None:
    """Write a table of 18 columns of numbers, one of texts, one of dates and a target."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, NUMBERS)).round(4)
    columns: dict[str, Any] = {f"x{place}": x[:, place] for place in range(NUMBERS)}
    columns["city"] = rng.choice(["Oslo", "Rome", "Paris", "Bern", "Wien"], ROWS)
    days = rng.integers(0, 1500, ROWS).astype("timedelta64[D]")
    columns["day"] = np.datetime64("2020-01-01") + days
    y = x[:, 0] + np.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3] + 0.3 * rng.normal(size=ROWS)
    table = pa.table({**columns, "y": y.round(4)})
    pq.write_table(table, folder / "rows.parquet")
    arrow_csv.write_csv(table, folder / "rows.csv")


def run(*words: str) -> dict[str, Any]:
    """Run a command; return what it took."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "regaug", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return {
        "command": " ".join(("regaug", words[0])),
        "file": Path(words[1 if words[0] == "fit" else 2]).suffix[1:],
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gb": round(usage.ru_maxrss * 2**10 / 1e9, 2),
    }


def per_row() -> dict[str, float]:
    """Return the microseconds that a row takes in an epoch of two nets, ours and the plain way."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(LEARNED, 20, generator=generator)
    y = x[:, :1] + x[:, 1:2].sin()
    part, few = Part(x, y, np.arange(len(x))), Part(x[:200], y[:200], np.arange(200))
    settings = [Settings(epochs=1, batch_size=BATCH, seed=seed) for seed in range(2)]

    def ours() -> None:
        fit_many(Split(part, few, few), "erm", settings, hidden=HIDDEN, record=())

    def plain() -> None:
        for _ in settings:
            net = nn.Sequential(
                *(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()), nn.Linear(128, 1)
            )
            optimizer = torch.optim.Adam(net.parameters())
            for batch in torch.randperm(len(x)).split(BATCH):
                optimizer.zero_grad()
                F.mse_loss(net(x[batch]), y[batch]).backward()
                optimizer.step()

    taken: dict[str, list[float]] = {"ours": [], "plain": []}
    for repeat in range(4):  # in turns; the first one warms up
        for name, work in (("ours", ours), ("plain", plain)):
            start = time.process_time()
            work()
            if repeat:
                taken[name].append(time.process_time() - start)
    scale = 1e6 / LEARNED
    return {name: round(float(np.median(own)) * scale, 2) for name, own in taken.items()}


def measure() -> dict[str, Any]:
    """Measure all of it."""
    torch.set_num_threads(1)
    busy = os.getloadavg()[0] > 0.5  # other programs were running
    found = []
    row = per_row()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        for ending in ("parquet", "csv"):
            source, model = str(folder / f"rows.{ending}"), str(folder / f"model-{ending}")
            found.append(run("fit", source, *FIT, "--out", model))
            found.append(run("predict", model, source, "-o", str(folder / f"out.{ending}")))
    return {
        "machine": machine() | {"command": "python -m benchmarks.large", "threads": 1},
        "busy": busy,
        "rows": ROWS,
        "columns": NUMBERS + 2,
        "fit": " ".join(FIT),
        "commands": found,
        "microseconds_a_row_and_epoch_of_two_nets": row,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(), indent=1) + "\n")
