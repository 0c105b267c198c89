"""What to use, at the end of a verdict."""

from regaug.methods import NO_ROWS, REPEATS, ROWS
from regaug.metrics import METRICS
from regaug.studies.amounts import amount
from regaug.studies.changes import Change
from regaug.studies.names import full_name
from regaug.studies.statistics import Comparison, Row


def advise(comparison: Comparison, recommended: str) -> tuple[str, str]:
    """Return the name of the row to use, and a sentence that says so.

    It is the best mean of the recommended net, the baselines and the combinations. An augmentation
    whose mean is better than that of the reference, but not surely so, is not among them.
    """
    usable = [
        row
        for row in comparison.rows
        if row.mean is not None and (not row.is_net or row.name == recommended)
    ]
    if not usable:
        words = f"Nothing worked on every {comparison.case}: look for wrong values in the data."
        return recommended, words
    use = usable[0]
    if comparison.n_splits == 1:
        return use.name, f"Run it with more splits; until then, {_short(comparison, use)}."
    if use.is_combined:
        return use.name, _about_combined(comparison, use)
    text = _short(comparison, use)
    text = text[:1].upper() + text[1:]
    combined = next((row for row in usable if row.is_combined), None)
    if combined is not None:
        return use.name, f"{text}: {_about_rest(comparison, combined, use)}."
    if use.is_baseline and any(row.is_net for row in usable):
        net = _short(comparison, comparison.row(recommended))
        of = "with the regressor" if comparison.reference == NO_ROWS else "of the nets"
        return use.name, f"{text}; {of}, {net}."
    return use.name, f"{text}."


def _short(comparison: Comparison, row: Row) -> str:
    if comparison.reference == NO_ROWS and row.is_net:
        return _about_rows(row)
    if row.name != comparison.reference:
        return f"use {row.name}"
    return "keep it plain" if row.name == "erm" else f"keep {row.name}"


def _about_rows(row: Row) -> str:
    if row.name == NO_ROWS:
        return "add no rows"
    named = {ROWS: "the rows from elsewhere", REPEATS: "training rows once more"}
    return f"add {named.get(row.name, f'rows of {row.name}')}"


def _about_combined(comparison: Comparison, use: Row) -> str:
    """Say how far a combination is ahead of the best single row."""
    text = f"Use {_with_name(comparison, use)}"
    single = (row for row in comparison.rows if not row.is_combined and row.mean is not None)
    best = next(single, None)
    if best is None:
        return f"{text}."
    sign, change = METRICS[comparison.metric].sign, comparison.paired(use.name, best.name)
    size, lead = Change(change.estimate), -sign * (change.estimate or 0.0)
    if comparison.rows.index(best) < comparison.rows.index(use):
        # Only an augmentation that may be no better than the reference can be ahead of it.
        ahead = "level with it" if lead >= 0 else f"{amount(size, comparison.unit)} ahead of it"
        return f"{text}; {best.name} is {ahead}, but may be no better than the rest."
    if lead <= 0:
        return f"{text}: it is level with {best.name}, the best single row."
    is_sure = all(end is not None and sign * end < 0 for end in (change.low, change.high))
    ahead = amount(change if is_sure else size, comparison.unit)
    chance = "" if is_sure else ", which may be chance"
    return f"{text}: it is {ahead} ahead of {best.name}, the best single row{chance}."


def _about_rest(comparison: Comparison, combined: Row, use: Row) -> str:
    """Say how far a combination is behind the row to use."""
    estimate = comparison.paired(combined.name, use.name).estimate or 0.0
    behind = METRICS[comparison.metric].sign * estimate
    name = _with_name(comparison, combined)
    if behind <= 0:
        return f"{name} is no better"
    return f"{name} is {amount(Change(estimate), comparison.unit)} behind"


def _with_name(comparison: Comparison, row: Row) -> str:
    name = full_name(row, comparison.reference)
    return row.name if name == row.name else f"{row.name} ({name})"
