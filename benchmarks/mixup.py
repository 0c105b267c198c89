"""What the mixup family costs: stacks against erm, and assigned pairs by the size of the batch.

    python -m benchmarks.mixup

It writes benchmarks/results/mixup.json. The stacks are those of benchmarks/stacks.py, also with a
method that acts on every batch of the training: where it anneals it acts on a third of them. Times
are those of one core, so that other programs do not count.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict

import torch

from benchmarks.__main__ import RESULTS, machine, show
from benchmarks.baseline import make_step
from benchmarks.stacks import METHOD_RUNS, all_epochs
from benchmarks.step import on_inputs
from benchmarks.timing import Row, interleaved
from regaug import Mixup

METHODS = ("mixup", "k-mixup", "neighbor-mixup", "epbeta-mixup", "sk-mixup")
ALWAYS = {"anneal": None}
STACK_REPEATS = 3
BATCHES = {32: 600, 128: 300, 512: 50}  # and how often each is measured


def measure() -> Iterator[Row]:
    cases = [(name, own) for own in ({}, ALWAYS) for name in METHODS]
    cases += [("sk-mixup", {**ALWAYS, "alpha_y": 2.0})]
    plain, *ours = interleaved(
        [all_epochs(*case, {}) for case in [("erm", {}), *cases]], STACK_REPEATS, time.process_time
    )
    for (name, own), seconds in zip(cases, ours, strict=True):
        words = name + (", on every batch" if own else "")
        words += ", two warps" if "alpha_y" in own else ""
        budget = None if own else 1.5
        yield Row(f"{METHOD_RUNS} runs, {words} against erm", plain, seconds, False, budget)
    for batch_size, repeats in BATCHES.items():
        plain, random, assigned = interleaved(
            [
                make_step(batch_size),
                make_step(batch_size, loss=on_inputs(Mixup())),
                make_step(batch_size, loss=on_inputs(Mixup(pairs="assignment"))),
            ],
            repeats,
            time.process_time,
        )
        words = f"step, batch {batch_size}: mixup on inputs"
        yield Row(f"{words}, random pairs", plain, random, False)
        yield Row(f"{words}, assigned pairs", plain, assigned, False)


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for row in measure():
        show(row)
        rows.append(asdict(row) | {"ratio": row.ratio, "holds": row.holds})
    setting = machine() | {"command": "python -m benchmarks.mixup", "threads": 1}
    path = RESULTS.with_name("mixup.json")
    path.write_text(json.dumps({"machine": setting, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
