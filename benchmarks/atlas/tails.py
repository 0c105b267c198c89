"""Rare high targets: do methods that are meant for them help where the target has a heavy tail?

    python -m benchmarks.atlas.tails run [jobs] [tables]     resumable
    python -m benchmarks.atlas.tails show                    writes results/atlas/tails.md

The tables are the five of the atlas with the most skewed targets, whatever is found there. Each has
four studies: of nets and of boosting with new rows (``smogn`` makes rows and is for regressors),
each judged by the error of the tenth of the rows with the highest targets, and by that of all rows.
"""

import sys
from typing import Any

from benchmarks.atlas.pooling import table
from benchmarks.atlas.protocol import Cell, index, lines, measure, publish, read
from regaug import compare, formatting, methods
from regaug.methods import NO_ROWS, REPEATS, SMOGN
from regaug.problems import Problem
from regaug.studies.statistics import Row

RESULTS = "tails"
TABLES = ("injury_loss", "motor_claims", "strike_volume", "rice_farms", "lego_price")
TRIALS, SPLITS = 3, 10
METRICS = ("tail-rmse-high", "rmse")
# What is compared, by the model: plain first, then what is meant for rare targets.
MEANT = {"nets": ("erm", "rare"), "boosting": (NO_ROWS, SMOGN)}


def run(cell: Cell) -> dict[str, Any]:
    found = {
        f"{model} {metric}": {row.name: _figures(row) for row in _study(cell, model, metric)}
        for model in MEANT
        for metric in METRICS
    }
    return {"rows": index()[cell.table]["rows"], "studies": found}


def _study(cell: Cell, model: str, metric: str) -> list[Row]:
    own = None if model == "nets" else model
    problem = Problem.from_table(read(cell.table), splits=SPLITS, model=own, metric=metric)
    study = compare(problem, methods=_names(model), trials=TRIALS)
    return [row for row in study.comparison.rows if not row.is_combined]


def _names(model: str) -> list[str]:
    """Return what a study tries by itself, and what is meant for rare targets."""
    if model == "nets":
        return [*methods.usual(), "rare"]
    makers = [name for name in methods.usual() if methods.get(name).as_maker() is not None]
    return [*makers, SMOGN, REPEATS]


def _figures(row: Row) -> dict[str, Any]:
    names = ("mean", "change", "change_low", "change_high", "is_significant", "is_baseline")
    return {name: getattr(row, name) for name in names}


def show() -> None:
    """Write what was found: plain, what is meant for rare targets, and the best of the others."""
    known = {line["table"]: line for line in lines(RESULTS)}
    out = [
        "# Rare high targets",
        "",
        f"`python -m benchmarks.atlas.tails run`, then `show`. {SPLITS} splits, {TRIALS} settings",
        "of every method, changes against plain training (nets) or no new rows (boosting) with",
        "their 95 % intervals over the splits; **bold**: the study calls it significant. The tail",
        "RMSE is the error on the tenth of the rows with the highest targets, and then the metric",
        "that chooses too; RMSE is that of all rows, from a study of its own. The best of the",
        "others is chosen by what is shown, so it flatters itself.",
        "",
    ]
    head = ["table", "model", "metric", "plain", "meant for it", "the best of the others"]
    rows = [
        _told(name, study, known[name]["studies"][study])
        for name in TABLES
        if name in known
        for study in known[name]["studies"]
    ]
    out += table(head, rows)
    publish(RESULTS, out)


def _told(name: str, study: str, rows: dict[str, dict[str, Any]]) -> list[str]:
    model, metric = study.split()
    plain, meant = MEANT[model]
    others = {
        key: row
        for key, row in rows.items()
        if key not in (plain, meant) and not row["is_baseline"] and row["change"] is not None
    }
    best = min(others, key=lambda key: others[key]["change"])
    title = "tail RMSE" if metric == METRICS[0] else "RMSE"
    return [
        name,
        model,
        title,
        f"{plain} {formatting.number(rows[plain]['mean'])}",
        f"{meant} {_change(rows[meant])}",
        f"{best} {_change(rows[best])}",
    ]


def _change(row: dict[str, Any]) -> str:
    if row["change"] is None:
        return formatting.MISSING
    ends = (formatting.change(row[end], "percent") for end in ("change_low", "change_high"))
    words = f"{formatting.change(row['change'], 'percent')} ({' to '.join(ends)})"
    return f"**{words}**" if row["is_significant"] else words


if __name__ == "__main__":
    command, *others = sys.argv[1:]
    if command == "show":
        show()
    else:
        jobs, wanted = [*others, *["2", ",".join(TABLES)][len(others) :]]
        measure(RESULTS, run, [Cell(name, 0) for name in wanted.split(",")], jobs=int(jobs))
