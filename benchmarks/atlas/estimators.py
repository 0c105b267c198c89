"""Do new rows help regressors that are no nets? Studies of them on real tables.

    python -m benchmarks.atlas.estimators run [jobs] [models] [tables]   resumable
    python -m benchmarks.atlas.estimators show       writes results/atlas/estimators.md

``models`` and ``tables`` have commas between them; by default boosting and trees, with settings
that the validation rows choose, and scikit-learn's own boosting as it comes (``plain-boosting``),
on the built-in table and every fifth one of the atlas; ``all`` is every table of the field. Beside
the methods stand ``repeats``, training rows once more: where they help as much, it was not what is
new in the rows. A line of a results file is a table: the test error of every row of the study on
each of the four splits. One that lacks a method is older than that; delete the line to have it
measured again.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.atlas.field import tables as every_table
from benchmarks.atlas.pooling import FEWEST, Line, Pooled, pool, table
from benchmarks.atlas.protocol import SPLITS, Cell, index, lines, measure, publish, read
from regaug import compare, methods
from regaug.data import load
from regaug.formatting import count
from regaug.methods import NO_ROWS, REPEATS, SMOGN
from regaug.problems import Problem

MODELS: dict[str, Any] = {
    "boosting": "boosting",
    "trees": "trees",
    "plain-boosting": HistGradientBoostingRegressor(),
}
BUILT_IN = "diabetes"
# Settings of every method on every split.
TRIALS, EVERY = 3, 5


def tables() -> list[str]:
    """Return the tables that are looked at, whatever is found there."""
    return [BUILT_IN, *sorted(index())[::EVERY][:10]]


def makers() -> list[str]:
    """Return every method that makes rows, and what training rows once more do."""
    own = [name for name in methods.names() if methods.get(name).as_maker() is not None]
    return [*own, SMOGN, REPEATS]


def run(model: str, cell: Cell) -> dict[str, Any]:
    data = load(BUILT_IN) if cell.table == BUILT_IN else read(cell.table)
    problem = Problem.from_table(data, splits=SPLITS, model=MODELS[model])
    study = compare(problem, methods=makers(), trials=TRIALS)
    found = {row["name"]: row["errors"] for row in study.to_dict()["rows"]}
    sizes = {"rows": study.config.rows, "columns": study.config.columns}
    return {**sizes, "errors": found, "helps": study.verdict.helps, "hurts": study.verdict.hurts}


def beside_repeats(known: Sequence[Line]) -> list[Pooled]:
    """Return what each method changes against training rows once more."""
    return pool(known, [name for name in makers() if name != REPEATS], REPEATS)


def rows_of(found: Sequence[Pooled]) -> list[list[str]]:
    """Return a line for every method: its change over all tables, and how sure that is."""
    return [
        [
            own.name,
            *own.words,
            f"{own.p:.3f}",
            f"{own.better} of {own.tables}",
            str(own.helps),
            str(own.hurts),
        ]
        for own in found
    ]


def show() -> None:
    """Write the pooled answer, for every model."""
    head = ["rows of", "change of the RMSE", "95 % interval over tables", "p (Holm)"]
    head += ["better on", "said to help", "said to hurt"]
    out = [
        "# New rows for regressors",
        "",
        "`python -m benchmarks.atlas.estimators run`, then `show`. Each regressor is fitted on the",
        f"training rows and on new ones, with {TRIALS} settings of every method (share and",
        f"strength) on {SPLITS} splits of each table; the validation rows of a split choose one.",
        "Changes are against the same regressor without new rows, geometric means over tables;",
        "p-values are corrected for the number of methods. `repeats` are training rows once more.",
        "",
    ]
    for model in MODELS:
        known = lines(f"estimators-{model}")
        if len(known) < FEWEST:
            continue
        names = ", ".join(sorted(line["table"] for line in known))
        found = pool(known, makers(), NO_ROWS)
        sure = [own.name for own in found if own.is_sure]
        more = [own.name for own in beside_repeats(known) if own.is_sure]
        out += [f"## {model}: {count(len(known), 'table')}", ""]
        out += table(head, rows_of(found))
        out += [f"Told apart from no new rows: {', '.join(sure) or 'none'}."]
        out += [f"Told apart from repeats: {', '.join(more) or 'none'}. Tables: {names}.", ""]
    publish("estimators", out)


if __name__ == "__main__":
    command, *others = sys.argv[1:]
    if command == "show":
        show()
    else:
        jobs, models, wanted = [*others, *["2", ",".join(MODELS), ""][len(others) :]]
        named = every_table() if wanted == "all" else wanted.split(",")
        chosen = [name for name in named if name] or tables()
        for model in models.split(","):
            todo = [Cell(name, 0) for name in chosen]
            measure(f"estimators-{model}", partial(run, model), todo, jobs=int(jobs))
