"""Decoded values in the manner of the column they are for: its range, its steps, its type."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.columns import DAY, Boolean, Category, Column, Date, Number
from regaug.data.tabular.texts import Floats
from regaug.data.tabular.values import read_dates, read_levels, read_numbers

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_WHOLE = 2**53  # beyond, a float does not tell whole numbers apart
_STEPS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000)  # day to second, in microseconds


def restore(
    column: Column, values: "pd.Series", series: "pd.Series", rng: np.random.Generator
) -> "pd.Series":
    """Return decoded values in the manner of a column of the table.

    Numbers and dates stay within the column's range and keep to its steps: whole numbers, days,
    hours, minutes or seconds, where all values are such. Levels are written as in the column; one
    that stands for several rare ones is one of these; ``rng`` draws among them, and among the ways
    a level is written. The type is that of the column.
    """
    if isinstance(column, Date):
        return _restore_dates(values, series)
    if isinstance(column, Number) and not isinstance(column, Boolean):
        return _restore_numbers(values.to_numpy(), series)
    return _restore_levels(column, values, series, rng)


def _restore_numbers(values: Floats, series: "pd.Series") -> "pd.Series":
    import pandas as pd

    known, gaps, kind = read_numbers(series).present, np.isnan(values), series.dtype.kind
    if kind == "m":
        spans = _keep_steps(np.where(gaps, 0.0, values) * DAY, known * DAY)[0]
        return pd.Series(spans.astype("timedelta64[us]")).mask(gaps).astype(series.dtype)
    values = np.clip(values, known.min(), known.max())
    is_whole = bool((known == np.rint(known)).all() and np.abs(known).max() < _LARGEST_WHOLE)
    values = np.rint(values) if is_whole else values
    if kind == "f" or (kind in "iu" and is_whole):
        return pd.Series(values).astype(series.dtype)
    if kind in "iu":
        return pd.Series(values)
    texts = [str(int(value)) if value.is_integer() else str(value) for value in values.tolist()]
    return _as_texts(texts, gaps, series)


def _restore_dates(values: "pd.Series", series: "pd.Series") -> "pd.Series":
    import pandas as pd

    known, gaps = read_dates(series).present * DAY, values.isna().to_numpy()
    new = values.to_numpy().astype("datetime64[us]").astype(np.int64)
    new, step = _keep_steps(new, known)
    dates = pd.Series(new.astype("datetime64[us]")).mask(gaps)
    if series.dtype.kind == "M":
        zone = getattr(series.dt, "tz", None)
        dates = dates if zone is None else dates.dt.tz_localize("UTC").dt.tz_convert(zone)
        return dates.astype(series.dtype)
    is_midnight = not (np.rint(known).astype(np.int64) % _STEPS[0]).any()
    second = "%Y-%m-%d %H:%M:%S" if step > 1 else "%Y-%m-%d %H:%M:%S.%f"
    return _as_texts(dates.dt.strftime("%Y-%m-%d" if is_midnight else second), gaps, series)


def _keep_steps(
    values: NDArray[np.float64] | NDArray[np.int64], known: Floats
) -> tuple[NDArray[np.int64], int]:
    """Move times, in microseconds, into the range and to the steps of the known ones."""
    times = np.rint(known).astype(np.int64)
    first, low, high = int(times[0]), int(times.min()), int(times.max())
    step = next((step for step in _STEPS if not ((times - first) % step).any()), 1)
    apart = np.rint((np.clip(values, low, high) - first) / step).astype(np.int64)
    return first + apart * step, step


def _as_texts(
    texts: "pd.Series | list[str]", gaps: NDArray[np.bool_], series: "pd.Series"
) -> "pd.Series":
    import pandas as pd

    column = pd.Series(texts, dtype=object).mask(gaps, None)
    return column.astype(series.dtype) if isinstance(series.dtype, pd.StringDtype) else column


def _restore_levels(
    column: Category | Boolean, values: "pd.Series", series: "pd.Series", rng: np.random.Generator
) -> "pd.Series":
    """Take every value from a row of the table that has the level, however it is written there."""
    codes, texts = read_levels(series)
    levels = column.levels if isinstance(column, Category) else texts
    rows_of = {text: np.flatnonzero(codes == code) for code, text in enumerate(texts)}
    is_rare = np.append(~np.isin(texts.astype(str), levels), False)[codes]
    found = np.empty(len(values), dtype=np.int64)
    for text in [None, *values.dropna().unique()]:
        places = np.flatnonzero(values.isna() if text is None else values == text)
        rows = np.flatnonzero(codes < 0 if text is None else is_rare)
        rows = rows if text is None else rows_of.get(str(text), rows)
        # No such row: a gap that decoding made up in a column without any.
        found[places] = rng.choice(rows if len(rows) else len(codes), len(places))
    return series.take(found)
