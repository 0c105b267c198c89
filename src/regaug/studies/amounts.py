"""The size of a change in words, with its interval and its p-value."""

from regaug import formatting
from regaug.formatting import Unit
from regaug.studies.changes import Change


def amount(change: Change, unit: Unit) -> str:
    """Write the size of a change to two digits or so, and how sure it is if that is known.

    Example:
        >>> amount(Change(-5.13, -8.04, -2.0, 0.0123), "percent")
        '5.1 % (2.0 to 8.0, p = 0.012)'
        >>> amount(Change(0.03), "points")
        '0.030'
        >>> amount(Change(-99.82, -99.9, -99.7), "percent")
        '99.8 % (99.7 to 99.9)'
    """
    word, most = (" %", 2) if unit == "percent" else ("", 4)
    size = abs(change.estimate or 0.0)
    ends = sorted(abs(end) for end in (change.low, change.high) if end is not None)
    if unit == "percent" and size >= 1000:
        return "more than 1,000 %"
    if size < 0.5 * 10.0**-most:
        return f"less than {10.0**-most:g}{word}"
    # An end that is not zero should not be rounded to it: one digit of each is shown at least.
    decimals = min(most, max(_decimals(size), *(_decimals(10 * end) for end in ends), 0))
    if unit == "percent" and 95 < size < 100:  # an error can fall by no more than 100 %
        decimals = max(decimals, 1)
    span = " to ".join(f"{end:,.{decimals}f}" for end in ends)
    sure = ", ".join(filter(None, [span, probability(change.p)]))
    return f"{size:,.{decimals}f}{word}{sure and f' ({sure})'}"


def probability(p: float | None) -> str:
    """Write a p-value in a sentence; empty if there is none.

    Example:
        >>> probability(0.0412), probability(1e-9)
        ('p = 0.041', 'p < 0.001')
    """
    if p is None:
        return ""
    text = formatting.probability(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _decimals(size: float) -> int:
    """Return how many decimals show two digits of a number."""
    exponent = int(f"{size:.1e}".partition("e")[2])  # of 9.99 it is 1: two digits of it are 10
    return max(0, 1 - exponent) if size > 0 else 0
