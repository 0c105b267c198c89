"""How far beyond the training targets a model may predict, on the first split of the atlas.

    python -m benchmarks.atlas.bounds [jobs]     measure, resumable, and show

Widths are those of the range of the training targets: 0 clamps to it, "none" does not clamp.
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.atlas.protocol import Cell, cells, lines, measure, rmse, rows
from regaug import fit
from regaug.ensemble import leave_out
from regaug.ensemble.scale import BEYOND, Bounds

WIDTHS = {"0": 0.0, "0.25": 0.25, "0.5": 0.5, "1": 1.0, "2": 2.0, "none": 1e6}


def run(cell: Cell) -> dict[str, Any]:
    """Fit plain training once, and predict with every width."""
    table, _, test = rows(cell)
    model = fit(leave_out(table, test), method="erm", seed=cell.split)
    width = (model.bounds.high - model.bounds.low) / (1.0 + 2.0 * BEYOND)
    found = {}
    for name, own in WIDTHS.items():
        more = (own - BEYOND) * width
        bounds = Bounds(model.bounds.low - more, model.bounds.high + more)
        prediction = replace(model, bounds=bounds).predict(table.frame.iloc[test])
        found[name] = rmse(prediction.mean.numpy(), table.y[test])
    return found


def show() -> None:
    """Print the error of every width against that of no clamp: geometric means over the tables."""
    found = lines("bounds")
    for name in WIDTHS:
        change = [np.log(line[name] / line["none"]) for line in found]
        print(f"{name:5} {np.exp(np.mean(change)):.4f}, worst {np.exp(np.max(change)):.2f}")


if __name__ == "__main__":
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    measure("bounds", run, [cell for cell in cells() if cell.split == 0], jobs=jobs)
    show()
