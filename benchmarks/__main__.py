"""Measure every budget, print a table, write it to benchmarks/results/, and a line of its history.

    python -m benchmarks [part ...]

Parts: kernel, step, stacks, samplers, recurrence, estimator, network, busy, imports.

Exit code 1 if a budget does not hold.
"""

import importlib
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

import numpy
import torch

import regaug
from benchmarks.timing import Row

PARTS = (
    "kernel",
    "step",
    "stacks",
    "samplers",
    "recurrence",
    "estimator",
    "network",
    "busy",
    "imports",
)
THREADS = 2
RESULTS = Path(__file__).parent / "results" / "budgets.json"
# A line for every time that all of it was measured.
HISTORY = RESULTS.with_name("history.jsonl")


def machine() -> dict[str, object]:
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return {
        "date": date.today().isoformat(),
        "command": "make bench",
        "processor": model,
        "cores": os.cpu_count(),
        "threads": THREADS,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "regaug": regaug.__version__,
    }


def show(row: Row) -> None:
    bar = "" if row.budget is None else f"{'>=' if row.faster else '<='} {row.budget:g}x"
    verdict = "" if row.budget is None else "holds" if row.holds else "MISSED"
    print(f"{row.name:72} {row.ratio:8.2f}x  {bar:>9}  {verdict}", flush=True)


def remember(setting: Mapping[str, object], rows: Sequence[Row], file: Path = HISTORY) -> None:
    """Add a line to the history: when, on what, and the ratios."""
    kept = {name: setting[name] for name in ("date", "processor", "cores", "torch")}
    line = kept | {"ratios": {row.name: round(row.ratio, 3) for row in rows}}
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")


def main(parts: list[str]) -> int:
    torch.set_num_threads(THREADS)
    setting = machine()
    print(", ".join(f"{key} {value}" for key, value in setting.items()))
    print(f"{'':72} {'ratio':>9}  {'budget':>9}")
    rows: list[Row] = []
    for part in parts or PARTS:
        for row in importlib.import_module(f"benchmarks.{part}").measure():
            show(row)
            rows.append(row)
    if not parts:
        lines = [asdict(row) | {"ratio": row.ratio, "holds": row.holds} for row in rows]
        RESULTS.write_text(json.dumps({"machine": setting, "rows": lines}, indent=1) + "\n")
        remember(setting, rows)
        print(f"written to {RESULTS.relative_to(Path.cwd())}")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
