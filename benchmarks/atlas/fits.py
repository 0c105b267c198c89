"""Models of ``regaug.fit`` on the atlas.

    python -m benchmarks.atlas.fits auto|nets|erm|ridge|boosting|trees|gp [jobs] [results] [splits]

``results`` is the name of the results file, that of the method by default: give another one to a
measurement of an older revision. ``splits`` are numbers such as 0,1; all by default.
"""

import sys
from functools import partial
from typing import Any

from benchmarks.atlas.protocol import Cell, cells, measure, rmse, rows
from regaug import fit
from regaug.ensemble import leave_out


def run(cell: Cell, method: str) -> dict[str, Any]:
    """Fit a model to the rows to learn from; some of them it puts aside for its intervals."""
    table, _, test = rows(cell)
    model = fit(leave_out(table, test), method=method, seed=cell.split)
    prediction = model.predict(table.frame.iloc[test], interval=0.9)
    target = table.y[test]
    is_covered = (prediction.low.numpy() <= target) & (target <= prediction.high.numpy())
    found = {"rmse": rmse(prediction.mean.numpy(), target), "covered": float(is_covered.mean())}
    return found | ({"model": model.describe()} if hasattr(model, "describe") else {})


if __name__ == "__main__":
    method, *others = sys.argv[1:]
    jobs, name, splits = [*others, *["2", method, "0,1,2,3"][len(others) :]]
    wanted = [cell for cell in cells() if str(cell.split) in splits.split(",")]
    measure(name, partial(run, method=method), wanted, jobs=int(jobs))
