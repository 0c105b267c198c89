"""What the library makes of ten batches, for the figure to try on the page of FOMA.

    python -m docs.foma_cases        writes tests/browser/foma_cases.json

A browser then finds out whether the figure's own arithmetic gives the same numbers.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regaug import FOMA, NearestBatchSampler
from regaug.augment.foma import FOMAParams

FILE = Path(__file__).parents[1] / "tests" / "browser" / "foma_cases.json"
# Rows, columns, the factor, how the cut is found, and whether about the mean.
CASES: tuple[tuple[int, int, float, dict[str, Any]], ...] = (
    (18, 2, 0.2, {"rho": 0.9}),
    (18, 2, 0.2, {"rho": 0.55}),
    (18, 2, 0.0, {"k": 1}),
    (18, 2, 1.5, {"k": 0}),
    (18, 2, 0.7, {"k": 2}),
    (18, 2, 0.3, {"k": 1, "center": True}),
    (40, 3, 0.35, {"rho": 0.8}),
    (40, 3, 0.35, {"k": 2, "center": True}),
    (2, 3, 0.5, {"k": 1}),  # fewer rows than columns
    (30, 3, 0.1, {"rho": 0.99, "center": True}),
)


def make_cases() -> list[dict[str, Any]]:
    """Return batches ``[inputs, target]``, the settings, and what the library makes of them."""
    made = []
    for number, (n, columns, lam, settings) in enumerate(CASES):
        rng = np.random.default_rng(number)
        rows = torch.from_numpy(rng.normal(size=(n, columns)) * [3, 1, 0.4][:columns] + 0.3)
        augment = FOMA(lam_range=(lam, lam), **settings)
        x, y = rows[:, :-1], rows[:, -1]
        new_x, new_y = augment(x, y)
        params: FOMAParams = augment.params
        new = torch.column_stack([new_x, new_y])
        case = {"rows": rows.tolist(), "settings": {"lam": lam, **settings}}
        made.append({**case, "k": params.k, "new": new.tolist()})
    return made


def make_batches() -> dict[str, Any]:
    """Return targets, and two batches of the sampler: one of them is the nearest to a sample."""
    y = np.random.default_rng(0).normal(size=24)
    return {"targets": y.tolist(), "batches": list(NearestBatchSampler(y, 12))}


if __name__ == "__main__":
    found = {"cases": make_cases(), "nearest": make_batches()}
    FILE.write_text(json.dumps(found, indent=None, separators=(",", ":")) + "\n")
