"""Numbers as a reader of the report sees them."""

import math

from regaug.studies.statistics import Comparison, Row
from regaug.studies.verdict import BASELINE_NAMES, METRIC_NAMES

MISSING = "\N{EN DASH}"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many digits that count; a dash if there is none.

    Example:
        >>> number(54.3219), number(1234567.0), number(0.00002)
        ('54.32', '1,234,567', '2e-05')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value != 0 and not 1e-3 <= abs(value) < 1e9:
        return _minus(f"{value:.{digits}g}")
    size = 0 if value == 0 else math.floor(math.log10(abs(value)))
    return _minus(f"{value:,.{max(0, digits - 1 - size)}f}")


def change(value: float | None, comparison: Comparison) -> str:
    """Return a change with its sign and its unit."""
    if value is None:
        return MISSING
    if comparison.unit == "points":
        return _minus(f"{value:+.3f}")
    # A method whose training diverged on a split may be millions of per cent worse.
    form = "+.1f" if abs(value) < 99.95 else "+,.0f" if abs(value) < 1e5 else "+.0e"
    return _minus(f"{value:{form}} %")


def between(low: float | None, high: float | None, comparison: Comparison) -> str:
    """Return the interval of a change; its unit stands beside it."""
    if low is None or high is None:
        return ""
    return f"{change(low, comparison)} to {change(high, comparison)}".replace(" %", "")


def probability(value: float | None) -> str:
    """Return a p-value.

    Example:
        >>> probability(0.00001), probability(0.0412), probability(1.0)
        ('< 0.001', '0.041', '1.000')
    """
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds(value: float) -> str:
    """Return a short time.

    Example:
        >>> seconds(0.001), seconds(0.456), seconds(83.2)
        ('< 0.01 s', '0.46 s', '83 s')
    """
    return "< 0.01 s" if value < 0.01 else f"{number(value, 2)} s"


def metric_name(metric: str) -> str:
    """Return the usual name of a metric."""
    return METRIC_NAMES.get(metric, metric)


def full_name(row: Row, reference: str) -> str:
    """Return what a row is, for those who do not know its short name."""
    if row.name == reference:
        return "plain training"
    known = BASELINE_NAMES.get(row.name, row.name) if row.is_baseline else row.name
    return known[:1].lower() + known[1:]


def _minus(text: str) -> str:
    return text if "e" in text else text.replace("-", "\N{MINUS SIGN}")
