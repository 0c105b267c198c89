"""How far beyond what training has seen a model may predict, and a number of a row may lie.

    python -m benchmarks.atlas.bounds [jobs]     measure, resumable, and show

Widths are those of the range in the training rows: 0 clamps to it, "none" does not clamp.
"""

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.atlas.protocol import Cell, cells, lines, measure, rmse, rows
from regaug import fit
from regaug.data.tabular.columns import BEYOND as BEYOND_INPUTS
from regaug.data.tabular.columns import Column, Number
from regaug.ensemble import Ensemble, leave_out
from regaug.ensemble.scale import BEYOND, Bounds

WIDTHS = {"0": 0.0, "0.25": 0.25, "0.5": 0.5, "1": 1.0, "2": 2.0, "none": 1e6}
KINDS = ("targets", "inputs")


def with_targets(model: Ensemble, width: float) -> Ensemble:
    own = (model.bounds.high - model.bounds.low) / (1.0 + 2.0 * BEYOND)
    more = (width - BEYOND) * own
    return replace(model, bounds=Bounds(model.bounds.low - more, model.bounds.high + more))


def with_inputs(model: Ensemble, width: float) -> Ensemble:
    def changed(column: Column) -> Column:
        if type(column) is not Number:
            return column
        more = (width - BEYOND_INPUTS) * (column.high - column.low) / (1.0 + 2.0 * BEYOND_INPUTS)
        return replace(column, low=column.low - more, high=column.high + more)

    encoder = model.preparation.encoder
    assert encoder is not None  # they are tables
    encoder = replace(encoder, columns=tuple(map(changed, encoder.columns)))
    return replace(model, preparation=replace(model.preparation, encoder=encoder))


def run(cell: Cell) -> dict[str, Any]:
    """Fit plain training once, and predict with every width."""
    table, _, test = rows(cell)
    model = fit(leave_out(table, test), method="erm", seed=cell.split)

    def error(model: Ensemble) -> float:
        return rmse(model.predict(table.frame.iloc[test]).mean.numpy(), table.y[test])

    return {
        "targets": {name: error(with_targets(model, own)) for name, own in WIDTHS.items()},
        "inputs": {name: error(with_inputs(model, own)) for name, own in WIDTHS.items()},
    }


def show() -> None:
    """Print the error of every width against that of no clamp: geometric means over the tables."""
    found = lines("bounds")
    for kind in KINDS:
        for name in WIDTHS:
            change = [np.log(line[kind][name] / line[kind]["none"]) for line in found]
            mean, worst = np.exp(np.mean(change)), np.exp(np.max(change))
            print(f"{kind:8} {name:5} {mean:.4f}, worst {worst:.2f}")


if __name__ == "__main__":
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    measure("bounds", run, cells(), jobs=jobs)
    show()
