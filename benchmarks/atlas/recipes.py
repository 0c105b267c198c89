"""Which recipe trains the table net well: one change at a time, and a portfolio of several.

python -m benchmarks.atlas.recipes run [jobs] [splits]   all candidates, resumable
python -m benchmarks.atlas.recipes show                  writes results/atlas/recipes.md
"""

import sys
from typing import Any

import numpy as np

from benchmarks.atlas.candidates import (
    HEAD,
    Tried,
    changes,
    known_predictions,
    portfolio,
    relative_times,
    row,
    train,
)
from benchmarks.atlas.protocol import Cell, cells, lines, measure, publish
from regaug.training.recipe import HIDDEN

WAVES = {"schedule": "waves", "patience": 60}
COSINE = {"schedule": "cosine", "patience": 60}
# What is changed of the default recipe. "hidden" are the widths of the net, the others settings.
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "as it is, other seeds": {"seed": 1},
    "no periodic features": {"frequencies": 0},
    "no linear part": {"linear": False},
    "columns alike": {"relevance": False},
    "no mean of the weights": {"average": 0.0},
    "none of these four": {"frequencies": 0, "linear": False, "relevance": False, "average": 0.0},
    "half the frequencies": {"frequencies": 4},
    "twice the frequencies": {"frequencies": 16},
    "lower frequencies": {"spread": 0.03},
    "higher frequencies": {"spread": 0.3},
    "rate 1e-3": {"learning_rate": 1e-3},
    "rate 5e-3": {"learning_rate": 5e-3},
    "cosine from 5e-3": {**COSINE, "learning_rate": 5e-3},
    "cosine from 1e-2": {**COSINE, "learning_rate": 1e-2},
    "waves of 1e-2": {**WAVES, "learning_rate": 1e-2},
    "no decay": {"weight_decay": 0.0},
    "decay 0.1": {"weight_decay": 0.1},
    "decay 1": {"weight_decay": 1.0},
    "batches of 16": {"batch_size": 16},
    "batches of 64": {"batch_size": 64},
    "twice as patient": {"patience": 30},
    "no early end": {"patience": None},
    "mean of more epochs": {"average": 0.9},
    "wider": {"hidden": (128, 128)},
    "narrower": {"hidden": (32, 32)},
    "deeper": {"hidden": (64, 64, 64)},
    # Two changes at once, for the portfolio.
    "no linear part, rate 5e-3": {"linear": False, "learning_rate": 5e-3},
    "no linear part, higher frequencies": {"linear": False, "spread": 0.3},
    "no linear part, decay 0.3": {"linear": False, "weight_decay": 0.3},
    "waves of 1e-2, higher frequencies": {**WAVES, "learning_rate": 1e-2, "spread": 0.3},
    "waves of 2e-2, decay 0.1": {**WAVES, "learning_rate": 2e-2, "weight_decay": 0.1},
    "cosine from 5e-3, decay 0.3": {**COSINE, "learning_rate": 5e-3, "weight_decay": 0.3},
    "columns alike, higher frequencies": {"relevance": False, "spread": 0.3},
    "columns alike, no linear part": {"relevance": False, "linear": False},
    "rate 1e-3, decay 1": {"learning_rate": 1e-3, "weight_decay": 1.0},
}
# What a study cannot put into stacks with the others, as the net has one form and the batches one
# size; what takes longer and brings nothing; what is no change.
LEFT_OUT = {"hidden", "batch_size", "frequencies", "average", "seed"}


def is_for_studies(change: dict[str, Any]) -> bool:
    """Tell whether a change may be in the portfolio: patience belongs to a schedule."""
    return not LEFT_OUT & set(change) and ("schedule" in change or "patience" not in change)


def candidates() -> dict[str, Tried]:
    found = {}
    for name, change in CHANGES.items():
        own = dict(change)
        hidden, seed = own.pop("hidden", HIDDEN), own.pop("seed", 0)
        found[name] = Tried("erm", own, hidden, seed)
    return found


def run(cell: Cell) -> dict[str, Any]:
    return train("recipes", cell, lambda _: candidates())


def show() -> None:
    """Write the ablation and the portfolio."""
    known, names = lines("recipes"), list(CHANGES)
    own = changes(known, names)
    times = np.median(relative_times(known), axis=0)
    among = [number for number, name in enumerate(names) if is_for_studies(CHANGES[name])]
    found = known_predictions("recipes", known)
    out = [
        "# The recipe, taken apart",
        "",
        "`python -m benchmarks.atlas.recipes run`, then `show`: plain training of eight nets on",
        f"{len(own)} tables ({len(known)} splits), each line one change of the default recipe.",
        "Changes of the test RMSE are geometric means over tables; time: the median.",
        "",
        *HEAD,
        *(row(name, own[:, i], times[i]) for i, name in enumerate(names)),
        "",
        "## The portfolio",
        "",
        "Recipes whose ensemble is the best.",
        *(portfolio(found, names, among, [0]) if found else []),
    ]
    publish("recipes", out)


if __name__ == "__main__":
    command, *others = sys.argv[1:]
    if command == "show":
        show()
    else:
        jobs, splits = [*others, *["2", "0,1"][len(others) :]]
        wanted = [cell for cell in cells() if str(cell.split) in splits.split(",")]
        measure("recipes", run, wanted, jobs=int(jobs))
