"""Scores as a terminal shows them: in a line, or in a table where there are several of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from regaug.cli.options import print_table
from regaug.ensemble import Prediction
from regaug.formatting import TextTable, count, number, percent
from regaug.metrics import METRICS, Scores

# What is shown of every target and every group.
SHOWN = ("rmse", "mae", "r2")
# Groups that are shown: the worst ones.
MOST_GROUPS = 10


def show_scores(prediction: Prediction, level: float | None, *, group: str | None) -> None:
    """Print how good predictions are; nothing if nobody knows.

    Args:
        prediction: What was predicted, of a table that has the targets.
        level: Share of rows that the intervals should hold; None without intervals.
        group: Name of the column of groups.
    """
    scores, names = prediction.scores, prediction.targets
    if scores is None:
        return
    inside = [] if prediction.coverage is None else [percent(own) for own in prediction.coverage]
    title = "" if level is None else f"in their {percent(level)} intervals"
    begin = f"On the {count(scores.n, 'row')} with {', '.join(names)}"
    if len(names) == 1:
        typer.echo(f"{begin}: {in_words(scores)}{f'; {inside[0]} {title}' if inside else ''}.")
    else:
        typer.echo(f"{begin}:")
        print_table(target_table(scores, names, more={title: inside} if inside else {}))
    if scores.groups:
        print_table(group_table(scores, group or "group", targets=len(names)))


def as_plain(prediction: Prediction) -> dict[str, Any]:
    """Return the same as plain values, for JSON."""
    scores, coverage = prediction.scores, prediction.coverage
    shares = None if coverage is None else dict(zip(prediction.targets, coverage, strict=True))
    return {"scores": None if scores is None else scores.to_dict(), "coverage": shares}


def in_words(scores: Scores) -> str:
    """Return the scores of one target in a line.

    Example:
        >>> in_words(Scores(9, rmse=54.321, mae=40.0, mape=None, n_zero=0, r2=0.51, pearson=0.7))
        'RMSE 54.32, MAE 40.00, R2 0.510'
    """
    values = {name: scores.value(name) for name in SHOWN}
    return ", ".join(
        f"{METRICS[name].title} {number(value, 3 if name == 'r2' else 4)}"
        for name, value in values.items()
        if value is not None
    )


def target_table(
    scores: Scores, names: Sequence[str], *, more: Mapping[str, Sequence[str]] | None = None
) -> TextTable:
    """Return a line for every target, in its own units, with further columns of text."""
    table = _table("target", dict(zip(names, scores.by_target, strict=True)), targets=1)
    more = more or {}
    rows = [
        [*row, *(column[place] for column in more.values())] for place, row in enumerate(table.rows)
    ]
    return TextTable("", [*table.header, *more], rows)


def group_table(scores: Scores, name: str, *, targets: int) -> TextTable:
    """Return a line for every group, the worst first; of very many only these."""
    sign = METRICS["rmse"].sign
    ranked = sorted(scores.groups.items(), key=lambda item: -sign * item[1].rmse)
    table = _table(name, dict(ranked[:MOST_GROUPS]), targets=targets)
    left = len(ranked) - MOST_GROUPS
    notes = [f"and {count(left, 'group')} with smaller errors"] if left > 0 else []
    return TextTable("", table.header, table.rows, notes)


def _table(what: str, rows: Mapping[str, Scores], *, targets: int) -> TextTable:
    header = [what, "rows", *(METRICS[name].title_for(targets) for name in SHOWN)]
    lines = [
        [name, f"{own.n:,}", *(number(own.value(metric)) for metric in SHOWN)]
        for name, own in rows.items()
    ]
    return TextTable("", header, lines)
