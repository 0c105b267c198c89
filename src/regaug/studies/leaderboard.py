"""The leaderboard of a study as text: the one that the terminal, the pages and Python show."""

from collections.abc import Sequence
from dataclasses import dataclass

from regaug import formatting
from regaug.formatting import TextTable
from regaug.metrics import METRICS
from regaug.studies.statistics import Comparison, Row

BASELINE_NAMES = {
    "mean": "The mean",
    "last-value": "The last value",
    "ridge": "Ridge regression",
    "boosting": "Gradient boosting",
}


@dataclass(frozen=True)
class BoardRow:
    """One row of a leaderboard, every cell as it is shown; empty where there is nothing to show.

    ``full`` says what it is for those who do not know its short name, ``failed`` on how many splits
    it failed; the others are as in :class:`regaug.studies.statistics.Row`.
    """

    name: str
    full: str
    is_baseline: bool
    is_significant: bool
    mean: str
    interval: str
    failed: str
    change: str
    change_interval: str
    p: str
    rank: str
    won: str


def board_rows(comparison: Comparison) -> list[BoardRow]:
    """Return the rows of the leaderboard, the best mean first."""
    return [_board_row(comparison, row) for row in comparison.rows]


def leaderboard(comparison: Comparison, title: str = "", notes: Sequence[str] = ()) -> TextTable:
    """Return the leaderboard as a table of text.

    Example:
        >>> from regaug.studies.statistics import analyze
        >>> errors = {"erm": [1.0, 1.2, 0.9], "mixup": [0.9, 1.1, 0.8]}
        >>> leaderboard(analyze(errors, test_share=0.25)).header[:2]
        ('method', 'RMSE')
    """
    level = formatting.percent(comparison.level)
    header = (
        "method",
        METRICS[comparison.metric].title,
        f"{level} interval",
        f"against {comparison.reference}",
        f"{level} interval",
        "p (Holm)",
        "won",
    )
    rows = [
        (
            row.name + (" *" if row.is_significant else ""),
            row.failed or row.mean,
            row.interval,
            row.change,
            row.change_interval,
            row.p,
            row.won,
        )
        for row in board_rows(comparison)
    ]
    star = "* differs from plain training, all comparisons taken together"
    below = [star] if any(row.is_significant for row in comparison.rows) else []
    return TextTable(title, header, rows, [*below, *notes])


def full_name(row: Row, reference: str) -> str:
    """Return what a row is, for those who do not know its short name."""
    if row.name == reference:
        return "plain training"
    known = BASELINE_NAMES.get(row.name, row.name) if row.is_baseline else row.name
    return known[:1].lower() + known[1:]


def _board_row(comparison: Comparison, row: Row) -> BoardRow:
    failed = f"failed on {row.n_failed} of {comparison.n_splits} splits" if row.n_failed else ""
    return BoardRow(
        name=row.name,
        full=full_name(row, comparison.reference),
        is_baseline=row.is_baseline,
        is_significant=row.is_significant,
        mean=formatting.number(row.mean),
        interval=formatting.between(row.low, row.high),
        failed=failed,
        change="" if row.change is None else formatting.change(row.change, comparison.unit),
        change_interval=formatting.between(row.change_low, row.change_high, comparison.unit),
        p="" if row.p_holm is None else formatting.probability(row.p_holm),
        rank="" if row.rank is None else f"{row.rank:.1f}",
        won="" if row.won is None else formatting.percent(row.won),
    )
