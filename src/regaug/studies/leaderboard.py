"""The leaderboard of a study as text: the one that the terminal, the pages and Python show."""

from collections.abc import Sequence

from regaug import formatting
from regaug.formatting import TextTable
from regaug.metrics import METRICS
from regaug.studies.statistics import Comparison, Row

BASELINE_NAMES = {
    "mean": "The mean",
    "last-value": "The last value",
    "ridge": "Ridge regression",
    "boosting": "Gradient boosting",
    "trees": "Extremely randomized trees",
    "gp": "A Gaussian process",
}


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
    rows = []
    for row in comparison.rows:
        own, star = show_cells(comparison, row), " *" if row.is_significant else ""
        shown = [own[name] for name in ("interval", "change", "change_interval", "p", "won")]
        rows.append((row.name + star, own["failed"] or own["mean"], *shown))
    below = ["* differs from plain training, all comparisons taken together"]
    is_starred = any(row.is_significant for row in comparison.rows)
    return TextTable(title, header, rows, [*(below if is_starred else []), *notes])


def full_name(row: Row, reference: str) -> str:
    """Return what a row is, for those who do not know its short name."""
    if row.name == reference:
        return "plain training"
    known = BASELINE_NAMES.get(row.name, row.name) if row.is_baseline else row.name
    return known[:1].lower() + known[1:]


def show_cells(comparison: Comparison, row: Row) -> dict[str, str]:
    """Return the cells of a row as they are shown; empty where there is nothing to show.

    ``failed`` says on how many splits it failed; the others are as in the row.
    """
    failed = f"failed on {row.n_failed} of {comparison.n_splits} splits" if row.n_failed else ""
    return {
        "mean": formatting.number(row.mean),
        "interval": formatting.between(row.low, row.high),
        "failed": failed,
        "change": "" if row.change is None else formatting.change(row.change, comparison.unit),
        "change_interval": formatting.between(row.change_low, row.change_high, comparison.unit),
        "p": "" if row.p_holm is None else formatting.probability(row.p_holm),
        "rank": "" if row.rank is None else f"{row.rank:.1f}",
        "won": "" if row.won is None else formatting.percent(row.won),
    }
