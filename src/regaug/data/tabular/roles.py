"""What the columns of a table are for: targets, groups, times, and all others inputs."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regaug._registry import unknown
from regaug.data.tabular.texts import Floats, quoted
from regaug.data.tabular.values import Levels, read_dates, read_levels, read_numbers
from regaug.exceptions import ArgumentError, DataError
from regaug.formatting import count

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 20


def as_names(names: object) -> list[str]:
    """Return one name or several as a list of texts, as the columns' own names are."""
    several = names if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    return [str(name) for name in several]


def check_columns(
    names: list[str],
    targets: tuple[str, ...],
    group: str | None,
    time: str | None,
    drop: Sequence[str],
    relevance: str | None = None,
) -> tuple[str, ...]:
    """Check the names the user gave, and return those of the inputs."""
    if not targets:
        raise ArgumentError("`target` must name at least one column, got none.")
    given = {"target": targets, "group": (group,), "time": (time,), "drop": drop}
    given["relevance"] = (relevance,)
    known, aims = set(names), set(targets)
    for argument, chosen in given.items():
        for name in chosen:
            if name is not None and name not in known:
                raise ArgumentError(f"`{argument}`: {_unknown_column(name, names)}")
            if argument != "target" and name in aims:
                raise ArgumentError(f"`target` and `{argument}` must differ, got {name!r} in both.")
    if len(set(targets)) < len(targets):
        raise ArgumentError(f"`target` must name different columns, got {list(targets)}.")
    used = {*targets, group, time, *drop, relevance}
    inputs = tuple(name for name in names if name not in used)
    if not inputs:
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        raise DataError(
            f"No input column is left: all of {quoted(names[:10])}{more} are named otherwise."
        )
    return inputs


def _unknown_column(name: str, names: list[str]) -> str:
    near = get_close_matches(str(name), names, n=5)
    shown = names if len(names) <= 30 else (near or names[:30])
    message = unknown("column", str(name), shown)
    if len(shown) < len(names):
        message = f"{message[:-1]}, ... ({len(names):,} columns)."
    if all(text.replace(".", "").replace("-", "").isdigit() for text in names):
        message += " The first line holds numbers: does the file lack a header line?"
    return message


def read_target(frame: "pd.DataFrame", name: str) -> Floats:
    """Return a target as numbers, NaN where it is missing."""
    series = frame[name]
    if series.dtype.kind == "b":
        raise DataError(
            f"Target {name!r} has two values, true and false: this is classification, and regaug "
            "is for regression."
        )
    read = read_numbers(series)
    if read.unreadable:
        levels, texts = read_levels(series)
        example = next(iter(read.words))
        row = int((levels == texts.tolist().index(example)).argmax())
        more = "" if len(texts) > 2 else " It has two values: this is classification."
        raise DataError(
            f"Target {name!r} must hold numbers, got {example!r} in row {row + 1} "
            f"of {len(series):,} ({read.unreadable:,} such values; the header is no row).{more} "
            "Correct them, or leave them empty to drop the rows."
        )
    return read.values


def read_times(frame: "pd.DataFrame", name: str) -> Floats:
    """Return a column of times as numbers that sort by time, NaN where it is missing."""
    series = frame[name]
    read = read_numbers(series) if series.dtype.kind != "M" else None
    if read is None or read.unreadable:
        read = read_dates(series)
    if read.unreadable:
        raise DataError(
            f"Time column {name!r} must hold numbers or dates such as 2024-01-31 12:30, got "
            f"{next(iter(read.words))!r}."
        )
    return read.values


def read_relevance(series: "pd.Series") -> Floats:
    """Return a column that says how much the target of every row matters, from 0 to 1.

    Example:
        >>> import pandas as pd
        >>> read_relevance(pd.Series([0.0, 1.0, 0.5]))
        array([0. , 1. , 0.5])
    """
    read = read_numbers(series)
    must = f"Column {series.name!r} must hold the relevance of every row, a number from 0 to 1"
    if read.unreadable:
        raise DataError(f"{must}, got {next(iter(read.words))!r}.")
    values = read.values
    is_gap = np.isnan(values)
    if is_gap.any():
        raise DataError(
            f"{must}, got none in {count(int(is_gap.sum()), 'row')}. Put 0 where nothing matters."
        )
    wrong = values[(values < 0.0) | (values > 1.0)]
    if len(wrong):
        raise DataError(f"{must}, got {wrong[0]:g} ({count(len(wrong), 'such value')}).")
    return values


def usable_rows(
    y: Floats, groups: Levels | None, times: Floats | None
) -> tuple[NDArray[np.bool_], list[str]]:
    """Say which rows have all they need, and how many have not."""
    has = {"a finite target": np.isfinite(y).all(axis=1)}
    if groups is not None:
        has["a group"] = groups[0] >= 0
    if times is not None:
        has["a time"] = np.isfinite(times)
    counts = {what: int((~rows).sum()) for what, rows in has.items()}
    left_out = [f"{count(n, 'row')} without {what} left out." for what, n in counts.items() if n]
    return np.logical_and.reduce(list(has.values())), left_out


def check_targets(names: tuple[str, ...], y: NDArray[np.float32], left_out: list[str]) -> None:
    """Refuse targets of too few rows, and those that are no regression."""
    if len(y) < MIN_ROWS:
        because = f" ({' '.join(left_out)})" if left_out else ""
        raise DataError(f"A table must have at least {MIN_ROWS} rows, got {len(y)}{because}.")
    for name, values in zip(names, y.T, strict=True):
        low, high = values.min(), values.max()
        if low == high:
            raise DataError(f"Target {name!r} is constant ({low:g}): there is nothing to predict.")
        if ((values == low) | (values == high)).all():
            raise DataError(
                f"Target {name!r} has two values, {low:g} and {high:g}: this is classification, "
                "and regaug is for regression."
            )
