"""The field: studies of real tables with every method that acts in the training of a net.

    python -m benchmarks.atlas.field [jobs] [tables]     resumable

The tables are those of the atlas and the paper's four, the smallest first; ``tables`` names others,
with commas between them. A line of ``results/atlas/field.jsonl`` is a table: the test error of
every row of the study on each of the four splits, that of single nets, which methods the study says
help or hurt, and what the table is like. ``python -m benchmarks.atlas.field_page`` tells it.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.atlas.pooling import Line
from benchmarks.atlas.protocol import (
    MOST_ROWS,
    Cell,
    index,
    load_named,
    measure,
    problem,
    read,
    unexplained,
)
from regaug import compare, methods
from regaug.data.tabular.table import Table
from regaug.studies.study import Study

RESULTS = "field"
PAPER = ("airfoil", "no2", "crimes", "skillcraft")
ALL = 53 + len(PAPER)  # tables
# Settings of every method on every split, and of plain training as of any other.
TRIALS = 3
# Tables from which on it tells enough for other pages to speak of it.
ENOUGH = 20
# Columns from which on a table is one of the widest, which come last: they take the longest.
WIDE = 400


def tables() -> list[str]:
    """Return all tables, the smallest first."""
    sizes = {name: (entry["rows"], entry["inputs"]) for name, entry in index().items()}
    sizes |= {name: load_named(name).x.shape for name in PAPER}

    def work(name: str) -> tuple[bool, int]:
        rows, columns = sizes[name]
        return columns >= WIDE, min(rows, MOST_ROWS) * columns

    return sorted(sizes, key=work)


def unfinished(known: Sequence[Line]) -> list[str]:
    """Say of how many tables there is a line, if not of all: the smallest ones come first."""
    if len(known) >= ALL:
        return []
    return [f"So far these are {len(known)} of {ALL}, the smallest ones: the others are missing."]


def run(cell: Cell) -> dict[str, Any]:
    study = compare(problem(cell.table), methods=methods.names(), trials=TRIALS)
    errors = {**_single(study), **{row.name: list(row.errors) for row in study.comparison.rows}}
    return {
        **describe(read(cell.table), study),
        "unexplained": unexplained(errors),
        "errors": errors,
        "helps": study.verdict.helps,
        "hurts": study.verdict.hurts,
        "use": study.verdict.use,
    }


def _single(study: Study) -> dict[str, list[float | None]]:
    """Return the errors of the default recipe's net, and of the net that each split chooses."""
    first = [
        record.score("test", "rmse")
        for record in sorted(study.records, key=lambda own: own.run.split)
        if record.run.stage == "recipe" and record.run.trial == 0
    ]
    chosen = [own.score("test", "rmse") for own in study.chosen["erm"]]
    return {"default net": first, "single erm": chosen}


def describe(table: Table, study: Study) -> dict[str, Any]:
    """Return what a table is like: its size, its kinds of columns, how its rows and targets lie."""
    columns = table.split(0).encoder.columns
    fit = None if study.facts is None else study.facts.two_nn
    target = table.y[:, 0] - table.y.mean()
    return {
        "rows": study.config.rows,
        "columns": study.config.columns,
        "categories": round(sum(own.kind == "category" for own in columns) / len(columns), 4),
        "skew": round(float(np.mean(target**3) / np.mean(target**2) ** 1.5), 4),
        "dimension": None if fit is None else fit.dimension,
    }


if __name__ == "__main__":
    jobs, named = [*sys.argv[1:], *["2", ""][len(sys.argv) - 1 :]]
    wanted = [name for name in named.split(",") if name] or tables()
    measure(RESULTS, run, [Cell(name, 0) for name in wanted], jobs=int(jobs))
