"""The leaderboard of a study as text: the one that the terminal, the pages and Python show."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from regaug import formatting
from regaug.formatting import TextTable
from regaug.metrics import METRICS
from regaug.studies.details import Details
from regaug.studies.names import reference_name
from regaug.studies.statistics import Comparison, Row

# Other metrics that a terminal has room for, beside the one that decides; and where a method is
# meant for rare targets, or the metric is.
SHOWN, SHOWN_OF_RARE = ("mae", "r2", "rmse"), ("rmse", "balanced-rmse", "tail-rmse")
# Rows of a leaderboard that is to be short.
BEST = 3


def leaderboard(
    comparison: Comparison,
    title: str = "",
    notes: Sequence[str] = (),
    *,
    details: Mapping[str, Details] | None = None,
) -> TextTable:
    """Return the leaderboard as a table of text.

    Args:
        comparison: The statistics.
        title: Stands above the table.
        notes: Sentences that stand below it.
        details: What else is known of the rows, in columns of their own; None leaves these out.

    Example:
        >>> from regaug.studies.statistics import analyze
        >>> errors = {"erm": [1.0, 1.2, 0.9], "mixup": [0.9, 1.1, 0.8]}
        >>> leaderboard(analyze(errors, test_share=0.25)).header[:3]
        ['method', 'tier', 'RMSE']
    """
    known = SHOWN_OF_RARE if comparison.is_about_rare else SHOWN
    metrics = [name for name in known if name != comparison.metric][:2]
    header = [
        "method",
        "tier",
        comparison.title,
        f"against {comparison.reference}",
        f"{formatting.percent(comparison.level)} interval",
        "p (Holm)",
        "won",
    ]
    if details is not None:
        titles = [METRICS[name].title_for(comparison.targets) for name in metrics]
        header += [*titles, "fit", "predict a row"]
    rows = []
    for row in comparison.rows:
        own = show_cells(comparison, row)
        shown = [own[name] for name in ("change", "change_interval", "p", "won")]
        cells = [marked_name(row), own["tier"], own["failed"] or own["mean"], *shown]
        if details is not None:
            other = show_details(details.get(row.name, Details()))
            cells += [other.get(name, "") for name in (*metrics, "fit", "predict")]
        rows.append(cells)
    plain = reference_name(comparison.reference)
    below = f"* differs from {plain}, all comparisons taken together"
    is_starred = any(row.is_significant for row in comparison.rows)
    said = [below if is_starred else "", comparison.explanation, about_cases(comparison), *notes]
    return TextTable(title, header, rows, [note for note in said if note])


def about_cases(comparison: Comparison) -> str:
    """Say what the intervals are about where a single split is repeated; else nothing."""
    if not comparison.repeated:
        return ""
    cases = formatting.count(comparison.n_splits, comparison.case)
    return f"one split, {cases} with other seeds: intervals say how much seeds vary"


def best_rows(text: TextTable, comparison: Comparison, names: Sequence[str]) -> TextTable:
    """Return a leaderboard with a few rows of it: the best ones, and those of some names.

    Example:
        >>> from regaug.studies.statistics import analyze
        >>> found = analyze({"erm": [1.0, 1.2], "mixup": [0.9, 1.1]}, test_share=0.25)
        >>> len(best_rows(leaderboard(found), found, ["erm"]).rows)
        2
    """
    ranked = [row.name for row in comparison.rows]
    kept = [
        own
        for place, (name, own) in enumerate(zip(ranked, text.rows, strict=True))
        if place < BEST or name in names
    ]
    return replace(text, rows=kept)


def marked_name(row: Row) -> str:
    """Return the name of a row with what it is if it is no net, and a star if it differs."""
    what = " (baseline)" if row.is_baseline else " (combined)" if row.is_combined else ""
    return f"{row.name}{what}{' *' if row.is_significant else ''}"


def show_cells(comparison: Comparison, row: Row) -> dict[str, str]:
    """Return the cells of a row as they are shown; empty where there is nothing to show.

    ``failed`` says on how many splits it failed; the others are as in the row.
    """
    cases = formatting.count(comparison.n_splits, comparison.case)
    failed = f"failed on {row.n_failed} of {cases}" if row.n_failed else ""
    return {
        "tier": "" if row.tier is None else str(row.tier),
        "mean": formatting.number(row.mean),
        "interval": formatting.between(row.low, row.high),
        "failed": failed,
        "change": "" if row.change is None else formatting.change(row.change, comparison.unit),
        "change_interval": formatting.between(row.change_low, row.change_high, comparison.unit),
        "p": "" if row.p_holm is None else formatting.probability(row.p_holm),
        "won": "" if row.won is None else formatting.percent(row.won),
    }


def show_details(details: Details) -> dict[str, str]:
    """Return the cells of what is known beside the metric that decides.

    Other metrics by name, ``single``, ``fit``, ``predict``, ``epochs``.
    """
    cells = {name: formatting.number(value) for name, value in details.scores.items()}
    if details.fit_seconds is not None:
        cells["fit"] = formatting.seconds(details.fit_seconds)
    if details.predict_seconds is not None:
        cells["predict"] = formatting.short_time(details.predict_seconds)
    if details.single is not None:
        cells["single"] = formatting.number(details.single)
    if details.epochs is not None:
        cells["epochs"] = f"{details.epochs:,}"
    return cells
