"""Cells that spreadsheets take for formulas: a text that begins with ``=`` is run when opened."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FIRST = ("=", "+", "-", "@", "\t", "\r")


def as_text(value: Any) -> Any:
    """Return a cell as it is, or a text that would be a formula with ``'`` before it.

    Example:
        >>> [as_text(value) for value in ("=1+1", "-x", "-1.5", "a=b", -2.0)]
        ["'=1+1", "'-x", '-1.5', 'a=b', -2.0]
    """
    if not isinstance(value, str) or not value.lstrip(" ").startswith(_FIRST):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame whose texts, and names of columns, are no formulas."""
    texts = [
        name for name in frame.columns if frame[name].dtype.kind == "O" or _is_text(frame[name])
    ]
    frame = frame.assign(**{name: frame[name].map(as_text, na_action="ignore") for name in texts})
    return frame.rename(columns=as_text)


def _is_text(series: "pd.Series") -> bool:
    return str(series.dtype) in ("str", "string", "category")
