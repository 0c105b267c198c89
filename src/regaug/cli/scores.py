"""Scores as a terminal shows them: in a line, or in a table where there are several of them."""

from collections.abc import Mapping, Sequence

from regaug.formatting import TextTable, number
from regaug.metrics import METRICS, Scores

# What is shown of every target and every group.
SHOWN = ("rmse", "mae", "r2")


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


def target_table(scores: Scores, names: Sequence[str]) -> TextTable:
    """Return a line for every target, in its own units."""
    return _table("target", dict(zip(names, scores.by_target, strict=True)), targets=1)


def group_table(scores: Scores, *, targets: int) -> TextTable:
    """Return a line for every group, the worst first."""
    sign = METRICS["rmse"].sign
    ranked = sorted(scores.groups.items(), key=lambda item: -sign * item[1].rmse)
    return _table("group", dict(ranked), targets=targets)


def _table(what: str, rows: Mapping[str, Scores], *, targets: int) -> TextTable:
    header = [what, "rows", *(METRICS[name].title_for(targets) for name in SHOWN)]
    lines = [
        [name, f"{own.n:,}", *(number(own.value(metric)) for metric in SHOWN)]
        for name, own in rows.items()
    ]
    return TextTable("", header, lines)
