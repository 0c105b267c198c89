"""The columns of a table read as numbers, as dates or as levels."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular import dates
from regaug.data.tabular.readings import read_plain
from regaug.data.tabular.texts import Floats, factorize, text_of, tidied
from regaug.exceptions import ArgumentTypeError, DataError

if TYPE_CHECKING:
    import pandas as pd

Levels = tuple[NDArray[np.int64], NDArray[np.object_]]

LARGEST = float(np.finfo(np.float32).max)
_NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[iI]nf(?:inity)?)"
_WORDS: dict[str, str | None] = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}
_WORDS |= {"": None, "?": None}


@dataclass(frozen=True)
class Values:
    """A column read as numbers: NaN stands for a gap, for text and for infinity, all counted.

    ``words`` are the texts that could not be read, with their rows, the most frequent first.
    """

    values: Floats
    missing: int = 0
    unreadable: int = 0
    infinite: int = 0
    words: Mapping[str, int] = field(default_factory=dict)

    @property
    def readable_share(self) -> float:
        """Share of the values that are there which could be read."""
        there = len(self.values) - self.missing
        return 1.0 - self.unreadable / there if there else 1.0

    @property
    def present(self) -> Floats:
        """The values that are there and could be read."""
        return self.values[~np.isnan(self.values)] if self.gaps else self.values

    @property
    def gaps(self) -> int:
        """How many are not."""
        return self.missing + self.unreadable + self.infinite


def column_names(frame: "pd.DataFrame", *, only: set[str] | None = None) -> list[str]:
    """Return the names of a pandas frame's columns as text, and refuse a name used twice."""
    if not hasattr(frame, "iloc") or not hasattr(frame, "columns"):
        raise ArgumentTypeError(
            f"`frame` must be a pandas DataFrame, got {type(frame).__name__}. "
            "Convert it: frame.to_pandas(), or pandas.DataFrame(frame)."
        )
    names = [str(name) for name in frame.columns]
    check_unique(names if only is None else [name for name in names if name in only])
    return names


def check_unique(names: list[str]) -> None:
    """Refuse column names that are used twice."""
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        listed = ", ".join(repr(name) for name in twice[:10])
        raise DataError(f"Column names must be unique, got {listed} more than once. Rename them.")


def read_numbers(series: "pd.Series", *, clip: bool = False) -> Values:
    """Read a column as numbers: text such as ``"1.5"`` or ``"true"`` too, time spans as days.

    With ``clip`` a finite number that is too large for float32 is the largest one there, or the
    smallest; otherwise it counts as infinite.
    """
    import pandas as pd

    dtype = series.dtype
    if dtype.kind == "m":
        return _finite(series.dt.total_seconds().to_numpy(dtype=np.float64) / 86_400, clip=clip)
    if dtype.kind not in "biuf":
        plain = read_plain(series) if isinstance(dtype, pd.StringDtype) else None
        if plain is None:
            return numbers_of(read_levels(series), clip=clip)
        return read_numbers(plain, clip=clip)
    if isinstance(dtype, np.dtype):
        return _finite(series.to_numpy(dtype=np.float64), clip=clip)
    return _finite(series.to_numpy(dtype=np.float64, na_value=np.nan), clip=clip)


def read_dates(series: "pd.Series") -> Values:
    """Read a column as days since 1970: dates, or text such as ``"2024-01-31 12:30"``."""
    import pandas as pd

    if series.dtype.kind != "M":
        return dates_of(read_levels(series))
    days = _days(pd.to_datetime(series, utc=True))
    return Values(days, missing=int(np.isnan(days).sum()))


def read_levels(series: "pd.Series") -> Levels:
    """Return every value's place in the list of different texts (-1: a gap), and that list.

    A number has one text (``"1"`` for 1, 1.0, ``"1.0"`` and ``"01"``), as have true and false: a
    file in which a column happens to hold numbers only must give the same levels. Spaces around a
    text do not count; no text at all and ``"?"`` are gaps.
    """
    import pandas as pd

    codes, uniques = factorize(series)
    if isinstance(uniques.dtype, pd.StringDtype):
        written = pd.Series(uniques).str.strip().astype(object)
    else:
        written = pd.Series([text_of(value) for value in uniques], dtype=object)
    numbers = _to_numbers(written)
    is_number = np.abs(numbers) < 2**53  # beyond, two whole numbers may be one float
    written[is_number] = [text_of(number) for number in numbers[is_number]]
    is_word = written.isin(list(_WORDS))
    written[is_word] = written[is_word].map(_WORDS)
    # Two values may now be one text: number the texts again.
    places, texts = pd.factorize(written)
    return np.append(places, -1)[codes], np.asarray(texts, dtype=object)


def _to_numbers(written: "pd.Series") -> Floats:
    import pandas as pd

    numbers = np.full(len(written), np.nan)
    is_number = written.str.fullmatch(_NUMBER).to_numpy(dtype=bool)
    numbers[is_number] = np.asarray(
        pd.to_numeric(written[is_number], errors="coerce"), dtype=np.float64
    )
    return numbers


def numbers_of(levels: Levels, *, clip: bool = False) -> Values:
    """Read levels as numbers."""
    import pandas as pd

    plain = pd.Series(levels[1], dtype=object).replace({"True": "1", "False": "0"})
    return _from_levels(levels, _to_numbers(plain), clip=clip)


def dates_of(levels: Levels) -> Values:
    """Read levels as dates, in days since 1970: those that can be read in one way only."""
    import pyarrow as pa

    return _from_levels(
        levels, dates.parse(tidied(pa.array(levels[1], pa.large_string()))).days("ymd")
    )


def _from_levels(levels: Levels, numbers: Floats, *, clip: bool = False) -> Values:
    """Spread what was read from each text over the rows."""
    codes, texts = levels
    read = _finite(np.append(numbers, np.nan)[codes], clip=clip)
    bad = np.isnan(numbers) & (texts != "nan")
    rows = np.append(bad, False)[codes]
    unreadable = int(rows.sum())
    if not unreadable:
        return Values(read.values, read.missing, 0, read.infinite)
    found = np.bincount(codes[rows], minlength=len(texts))
    places = np.argsort(-found, kind="stable")[: np.count_nonzero(found)]
    words = {str(texts[place]): int(found[place]) for place in places}
    return Values(read.values, read.missing - unreadable, unreadable, read.infinite, words)


def _finite(values: Floats, *, clip: bool = False) -> Values:
    """Count the gaps, and make gaps of what is infinite in float32, or only of what is infinite."""
    if clip:
        values = np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), values)
    with np.errstate(invalid="ignore"):
        usable = np.abs(values) <= LARGEST
    lost = len(values) - int(usable.sum())
    if not lost:
        return Values(values)
    missing = int(np.isnan(values).sum())
    if lost > missing:
        values = np.where(usable, values, np.nan)
    return Values(values, missing=missing, infinite=lost - missing)


def _days(stamps: "pd.Series") -> Floats:
    micros = stamps.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    days = micros.astype(np.int64) / 86_400e6
    days[np.isnat(micros)] = np.nan
    return np.asarray(days, dtype=np.float64)
