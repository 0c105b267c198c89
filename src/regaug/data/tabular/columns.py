"""What becomes of a column, learned on training rows: a number, a flag, a date, a category."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.findings import is_mostly
from regaug.data.tabular.readings import Code, Reading
from regaug.data.tabular.remarks import words_note
from regaug.data.tabular.texts import GAP_WORDS, Floats
from regaug.data.tabular.values import (
    LARGEST,
    Levels,
    Values,
    dates_of,
    numbers_of,
    read_dates,
    read_levels,
    read_numbers,
)
from regaug.exceptions import DataError
from regaug.formatting import count

if TYPE_CHECKING:
    import pandas as pd

MISSING_SHARE = 0.01  # from this share of training rows on, a gap has a column of its own
RARE_SHARE, RARE_ROWS, MAX_LEVELS = 0.01, 5, 50
OTHER = "(other)"  # what decoding writes for the pooled levels
UNIQUE_SHARE = 0.9  # text with more levels than this share of its rows tells the rows apart
FAR = 4e6  # days from 1970 to beyond the years -9999 and 9999
DAY = 86_400e6  # microseconds
# How far beyond the numbers of the training rows one may lie, in widths of their range: of those
# that were tried, the best on the atlas (``python -m benchmarks.atlas.bounds``).
BEYOND = 0.5


@dataclass(frozen=True)
class Number:
    """Numbers stay as they are; a gap becomes the median of the training rows.

    One that lies far beyond those of the training rows counts as ``low`` or ``high``: a model knows
    nothing of what is there, and a column that hardly varies would decide alone.
    """

    kind: ClassVar[str] = "number"
    name: str
    fill: float
    indicator: bool
    low: float = -LARGEST
    high: float = LARGEST

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it is encoded to."""
        return (self.name, f"{self.name}=(missing)") if self.indicator else (self.name,)

    def encode(self, series: "pd.Series", out: NDArray[np.float32]) -> None:
        """Write the encoded values of ``series`` to ``out``, a row per feature."""
        values = _check_readable(self.name, read_numbers(series, clip=True), "number").values
        gaps = np.isnan(values)
        out[0] = np.clip(values, self.low, self.high)
        out[0, gaps] = self.fill
        if self.indicator:
            out[1] = gaps

    def decode(self, values: Floats) -> NDArray[np.generic]:
        """Return the column whose features, a row each, are ``values``; NaN is a gap."""
        return np.where(_gaps(self, values), np.nan, _shortest(values[0]))


@dataclass(frozen=True)
class Boolean(Number):
    """True and false, as 1 and 0."""

    kind: ClassVar[str] = "boolean"

    def decode(self, values: Floats) -> NDArray[np.generic]:
        """Return the column whose features, a row each, are ``values``; None is a gap."""
        flags, gaps = np.asarray(values[0] > 0.5), _gaps(self, values)
        return np.where(gaps, np.array(None), flags) if gaps.any() else flags


@dataclass(frozen=True)
class Date:
    """Days since the mean of the training rows; the time of year and of day as sine and cosine.

    Times with an offset are taken in UTC. ``mean`` and ``fill`` are days since 1970.
    """

    kind: ClassVar[str] = "date"
    name: str
    mean: float
    fill: float
    year: bool
    hour: bool
    indicator: bool

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it is encoded to."""
        parts = ["days"]
        parts += ["year sine", "year cosine"] * self.year + ["hour sine", "hour cosine"] * self.hour
        gap = [f"{self.name}=(missing)"] * self.indicator
        return (*(f"{self.name} {part}" for part in parts), *gap)

    def encode(self, series: "pd.Series", out: NDArray[np.float32]) -> None:
        """Write the encoded values of ``series`` to ``out``, a row per feature."""
        days = _check_readable(self.name, read_dates(series), "date").values
        gaps = np.isnan(days)
        days = np.where(gaps, self.fill, days)
        out[0] = days - self.mean
        turns = [_of_year(days)] * self.year + [days % 1.0] * self.hour
        for place, turn in enumerate(turns):
            out[1 + 2 * place] = np.sin(2 * np.pi * turn)
            out[2 + 2 * place] = np.cos(2 * np.pi * turn)
        if self.indicator:
            out[-1] = gaps

    def decode(self, values: Floats) -> NDArray[np.generic]:
        """Return the column whose features, a row each, are ``values``; NaT is a gap.

        The days say it all; the time of year and of day follow from them.
        """
        days = np.clip(values[0] + self.mean, -FAR, FAR)
        dates = np.round(days * DAY).astype(np.int64).astype("datetime64[us]")
        return np.where(_gaps(self, values), np.datetime64("NaT", "us"), dates)


@dataclass(frozen=True)
class Category:
    """One column of 0 and 1 per level.

    A level that was rare or unseen in training is "other" if there is such a column, else all
    columns are 0; so is a gap, where gaps were too few in training to have a column.
    """

    kind: ClassVar[str] = "category"
    name: str
    levels: tuple[str, ...]
    other: bool
    missing: bool

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it is encoded to."""
        more = [OTHER] * self.other + ["(missing)"] * self.missing
        return tuple(f"{self.name}={level}" for level in (*self.levels, *more))

    def encode(self, series: "pd.Series", out: NDArray[np.float32]) -> None:
        """Write the encoded values of ``series`` to ``out``, a row per feature."""
        import pandas as pd

        codes, texts = read_levels(series)
        unseen = len(self.levels) if self.other else -1
        place = pd.Index(self.levels, dtype=object).get_indexer(texts)
        place[place < 0] = unseen
        gap = len(self.levels) + self.other if self.missing else unseen
        feature = np.append(place, gap)[codes]  # the code of a gap is -1: the last one
        rows = np.flatnonzero(feature >= 0)
        out[:] = 0.0
        out[feature[rows], rows] = 1.0

    def decode(self, values: Floats) -> NDArray[np.generic]:
        """Return the column whose features, a row each, are ``values``; None is a gap.

        The level is the one with the largest value. A row whose values sum to less than one half
        is nearer to having no level than to having one.
        """
        more = [OTHER] * self.other + [None] * self.missing
        texts = np.array([*self.levels, *more, None], dtype=object)
        place = np.where(values.sum(axis=0) < 0.5, -1, values.argmax(axis=0))
        return texts[place]


Column = Number | Date | Category


def _of_year(days: Floats) -> Floats:
    """Return how much of its year has passed at each day, from 0 to 1."""
    first = np.floor(days).astype("datetime64[D]").astype("datetime64[Y]").astype("datetime64[D]")
    return (days - first.astype(np.int64)) / 365.25


def _gaps(column: Number | Date, values: Floats) -> NDArray[np.bool_]:
    """Return where the features of a column say that its value is missing."""
    return np.asarray((values[-1] > 0.5) & column.indicator)


def _shortest(values: Floats) -> Floats:
    """Return the shortest decimal numbers that are these in float32: 50.1 again, not 50.0999985."""
    return values.astype(np.float32).astype("U").astype(np.float64)


def _check_readable(name: str, read: Values, what: str) -> Values:
    if read.unreadable and read.readable_share == 0.0:
        raise DataError(
            f"Column {name!r} must hold {what}s as in training, got {next(iter(read.words))!r} "
            f"and not one {what}."
        )
    return read


def fit_column(
    name: str, series: "pd.Series", places: NDArray[np.int64], reading: Reading | None = None
) -> tuple[Column | None, list[str]]:
    """Return what a column becomes (None: nothing) and what there is to say about it.

    A column of codes is a category, whatever they look like.
    """
    import pandas as pd

    if series.dtype.kind == "M":
        return _fit_date(name, read_dates(series))
    if series.dtype.kind in "biufm":
        read, is_boolean = read_numbers(series), series.dtype.kind == "b"
        return _fit_number(name, series, read, places, is_boolean=is_boolean)
    levels = read_levels(series)
    if isinstance(series.dtype, pd.CategoricalDtype) or isinstance(reading, Code):
        return _fit_category(name, levels)
    # What a column is must not depend on its type: another row of the table may have changed it.
    read = numbers_of(levels)
    if _is_mostly(read):
        is_boolean = set(levels[1]) <= {"True", "False"}
        return _fit_number(name, series, read, places, is_boolean=is_boolean)
    dates = dates_of(levels)
    if _is_mostly(dates):
        return _fit_date(name, dates)
    return _fit_category(name, levels)


def _is_mostly(read: Values) -> bool:
    """Whether a column holds what was read from it; so does one without any value."""
    gaps = sum(rows for word, rows in read.words.items() if word.lower() in GAP_WORDS)
    there = len(read.values) - read.missing - read.infinite - gaps
    if not there:
        return not read.words
    return is_mostly(read.values, np.ones(len(read.values), dtype=np.int64), there)


def _fit_number(
    name: str, series: "pd.Series", read: Values, places: NDArray[np.int64], *, is_boolean: bool
) -> tuple[Column | None, list[str]]:
    present = read.present
    if not len(present):
        return None, ["left out: it holds no value"]
    huge = read.infinite
    if huge:  # what is finite is used, as far beyond the others as anything may lie
        read = replace(read, infinite=read_numbers(series, clip=True).infinite)
        huge -= read.infinite
    low, high, has_gaps = (
        present.min(),
        present.max(),
        read.gaps / len(read.values) >= MISSING_SHARE,
    )
    if np.float32(low) == np.float32(high):
        if has_gaps:  # whether it is there is all it can tell
            return _fit_category(name, read_levels(series))
        return None, [f"left out: constant ({low:g})"]
    if len(present) == len(places) and np.ptp(present - places) == 0:
        return None, ["left out: row numbers"]
    column: Number = Boolean(name, _median(present), has_gaps)
    if not is_boolean:
        beyond = BEYOND * high - BEYOND * low
        ends = max(low - beyond, -LARGEST), min(high + beyond, LARGEST)
        column = Number(name, _median(present), has_gaps, *map(float, ends))
    too_large = f"has {count(huge, 'number')} too large for float32, taken as the end of its range"
    return column, [
        *([too_large] if huge else []),
        *_gap_notes(read, column, f"the median {column.fill:g}"),
    ]


def _fit_date(name: str, read: Values) -> tuple[Column | None, list[str]]:
    present = read.present
    if not len(present):
        return None, ["left out: it holds no value"]
    if np.ptp(present) == 0:
        return None, ["left out: one date only"]
    column = Date(
        name,
        mean=float(present.mean()),
        fill=_median(present),
        year=bool(np.ptp(np.floor(present)) > 0),
        hour=bool(np.ptp(present % 1.0) > 1e-9),
        indicator=read.gaps / len(read.values) >= MISSING_SHARE,
    )
    return column, _gap_notes(read, column, "the median date")


def _fit_category(name: str, levels: Levels) -> tuple[Column | None, list[str]]:
    codes, texts = levels
    rows, gaps = len(codes), int((codes < 0).sum())
    if not len(texts):
        return None, ["left out: it holds no value"]
    if len(texts) > max(UNIQUE_SHARE * (rows - gaps), 2):
        return None, [
            f"left out: {len(texts):,} different texts in {rows - gaps:,} rows tell rows apart"
        ]
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    is_frequent = (counts >= RARE_SHARE * rows) & (counts >= RARE_ROWS)
    kept = sorted(np.flatnonzero(is_frequent), key=lambda i: (-counts[i], texts[i]))[:MAX_LEVELS]
    pooled, has_gaps = len(texts) - len(kept), gaps >= MISSING_SHARE * rows and gaps > 0
    if len(kept) + (pooled > 0) + has_gaps < 2:
        if kept:
            return None, [f"left out: constant ({texts[kept[0]]!r})"]
        return None, [f"left out: none of its {pooled:,} levels is frequent enough"]
    notes = [f"pooled: {pooled:,} of {len(texts):,} levels into (other)"] if pooled else []
    if gaps:
        level = "a level of their own" if has_gaps else OTHER if pooled else "no level"
        notes.append(f"has {count(gaps, 'gap')}: {level}")
    names = tuple(sorted(texts[i] for i in kept))
    return Category(name, names, other=pooled > 0, missing=has_gaps), notes


def _median(values: Floats) -> float:
    """Return the median; several times as fast as NumPy's, which looks for NaN by sorting more."""
    half = len(values) // 2
    parted = np.partition(values, half)
    if len(values) % 2:
        return float(parted[half])
    return float(parted[:half].max() / 2 + parted[half] / 2)


def _gap_notes(read: Values, column: Number | Date, fill: str) -> list[str]:
    infinite = count(read.infinite, "infinite value")
    notes = [f"has {infinite}, taken as missing"] if read.infinite else []
    notes += words_note(read.words, "dates" if isinstance(column, Date) else "numbers")
    if read.gaps:
        extra = ", and a column that says so" if column.indicator else ""
        notes.append(f"imputed: {count(read.gaps, 'gap')} became {fill}{extra}")
    return notes
