"""What a step of a stack costs with each method against plain training.

    python -m benchmarks.costs        on a quiet machine; writes benchmarks/results/costs.json

The stacks are those of benchmarks/stacks.py: 32 runs of the default recipe on the built-in table. A
method has its defaults, so that one that anneals acts on a third of the batches, and then acts on
every batch. Times are those of one core, so that other programs hardly count.
"""

import json
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.__main__ import machine
from benchmarks.stacks import METHOD_RUNS, all_epochs
from benchmarks.timing import interleaved
from regaug import methods

FILE = Path(__file__).parent / "results" / "costs.json"
PLAIN, REPEATS = "erm", 5
ALWAYS = {"p": 1.0, "anneal": None}
# By method, with its defaults and acting on every batch: the time of a step, plain training = 1.
Costs = dict[str, dict[str, float]]


def measure() -> Costs:
    """Return the time of a step over that of plain training, with defaults and always acting."""
    cases = [(name, {}) for name in methods.names() if name != PLAIN]
    cases += [(name, ALWAYS) for name, _ in cases if ALWAYS.keys() <= methods.get(name).options]
    plain, *ours = interleaved(
        [all_epochs(*case, {}) for case in [(PLAIN, {}), *cases]], REPEATS, time.process_time
    )
    found: Costs = {}
    for (name, own), seconds in zip(cases, ours, strict=True):
        what = "always" if own else "defaults"
        found.setdefault(name, {})[what] = round(seconds / plain, 3)
    return found


def read(file: Path = FILE) -> Costs:
    """Return what was measured, by method; nothing if nothing was."""
    content: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return dict(content.get("methods", {}))


def main() -> None:
    torch.set_num_threads(1)
    found = measure()
    for name, own in found.items():
        print(f"{name:20} {own}")
    setting = machine() | {"command": "python -m benchmarks.costs", "threads": 1}
    content = {"machine": setting, "runs": METHOD_RUNS, "methods": found}
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
