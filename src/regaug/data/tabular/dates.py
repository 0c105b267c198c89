"""Dates written as text in the orders that people use, and times of day."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.texts import Floats, Texts

Order = Literal["ymd", "dmy", "mdy"]
ORDERS: tuple[Order, ...] = ("ymd", "dmy", "mdy")
# Words for the reader of a summary.
WORDS = {"dmy": "day before month", "mdy": "month before day"}

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DAYS = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d{1,9})?))?"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>z|utc|gmt|[+-]\d{2}:?\d{2})?"
)
_TIME = rf"(?:(?:t|,?\s+){_CLOCK})?"
_YEAR = r"(?P<c>\d{4}|'?\d{2})"
_DAY = r"(?P<a>\d{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"(?P<b>{_MONTHS})[a-z]*"
_NUMBERS = (
    rf"^{_DAYS}(?P<a>\d{{4}}|\d{{1,2}})(?P<s>[-/.])(?P<b>\d{{1,2}})(?P<t>[-/.])"
    rf"(?P<c>\d{{4}}|\d{{1,2}}){_TIME}$"
)
# With the month written out, or without a day: these can be read in one way.
_CLEAR = (
    rf"^{_DAYS}{_DAY}[-/. ]*{_MONTH}[-/., ]+{_YEAR}{_TIME}$",
    rf"^{_DAYS}{_MONTH}[-/. ]*{_DAY}[-/., ]+{_YEAR}{_TIME}$",
    rf"^{_MONTH}[-/., ]+(?P<c>\d{{4}})$",
    r"^(?P<c>\d{4})[-/](?P<b>\d{2})$",
    r"^(?P<b>\d{1,2})/(?P<c>\d{4})$",
)
_SPAN = (
    r"^(?P<first>\d{1,4}):(?P<middle>\d{2})(?::(?P<last>\d{2}(?:[.,]\d{1,9})?))?"
    r"\s*(?P<half>[ap]\.?m\.?)?$"
)
_SECOND, _HOUR = 1e6, 3600e6  # in microseconds
DAY = 24 * _HOUR
_CENTURY = 69  # years of two digits from here on are of the last century, as in POSIX


@dataclass(frozen=True)
class DateFormat:
    """In which order a column has year, month and day; a time may follow them.

    Attributes:
        name: The column.
        order: ``"ymd"``, ``"dmy"`` or ``"mdy"``. A year of four digits at the beginning, and a
            month that is written out, decide for themselves.
    """

    kind: ClassVar[str] = "date"
    name: str
    order: Order

    def read(self, texts: Texts) -> Floats:
        """Return the days since 1970 of each text; NaN where it is no date."""
        return parse(texts.tidy).days(self.order)


@dataclass(frozen=True)
class Clock:
    """Times of day, or of a race, as hours: ``1:30`` is 1.5.

    Attributes:
        name: The column.
        has_seconds: Whether two numbers are minutes and seconds, as beside ``1:02:30``.
    """

    kind: ClassVar[str] = "clock"
    name: str
    has_seconds: bool

    def read(self, texts: Texts) -> Floats:
        """Return the hours of each text; NaN where it is no time."""
        found = _extract(texts.tidy, _SPAN)
        first, middle, last = (_numbers(found[key]) for key in ("first", "middle", "last"))
        short = first / 60 + middle / 3600 if self.has_seconds else first + middle / 60
        hours = np.where(np.isnan(last), short, first + middle / 60 + last / 3600)
        half = _half(found["half"])
        hours = np.where(half >= 0, np.where(first == 12, hours - 12, hours) + half * 12, hours)
        return np.where(middle < 60, hours, np.nan)


@dataclass(frozen=True, eq=False)
class ParsedDates:
    """Texts taken apart into the parts of a date.

    Attributes:
        parts: The first, second and third number of each; NaN where there is no date.
        is_clear: Whether the parts are day, month and year beyond doubt.
        has_year: Whether the first number is a year.
        time: Time of the day, in microseconds.
        has_point: Whether points stand between the numbers.
    """

    parts: tuple[Floats, Floats, Floats]
    is_clear: NDArray[np.bool_]
    has_year: NDArray[np.bool_]
    time: Floats
    has_point: NDArray[np.bool_]

    def days(self, order: Order) -> Floats:
        """Return the days since 1970, with the parts in this order; NaN for no date."""
        first, second, third = self.parts
        by_order = {
            "ymd": (first, second, third),
            "dmy": (third, second, first),
            "mdy": (third, first, second),
        }
        year, month, day = (
            np.where(self.has_year, always, np.where(self.is_clear, named, by_order[order][place]))
            for place, (always, named) in enumerate(
                zip(by_order["ymd"], by_order["dmy"], strict=True)
            )
        )
        return (_days(year, month, day) * DAY + self.time) / DAY


def find_dates(
    name: str, texts: Texts, *, order: Order | None = None
) -> tuple[DateFormat, bool, Floats] | None:
    """Find out in which order a column has year, month and day; None if it has no dates.

    Args:
        name: The column.
        texts: Its texts.
        order: That of other columns, for dates that can be read in two ways; if it is not known,
            the month comes first.

    Returns:
        The format, whether another order would be possible for all dates and give other ones, and
        the days since 1970 of each text.
    """
    parsed = parse(texts.tidy)
    found = {own: parsed.days(own) for own in ORDERS}
    read = {own: int(texts.rows[~np.isnan(days)].sum()) for own, days in found.items()}
    best = max(read.values())
    if not best:
        return None
    # Years of two digits come first only where nothing else is possible.
    possible: list[Order] = [own for own in ORDERS[1:] if read[own] == best] or ["ymd"]
    is_clear = parsed.has_year | parsed.is_clear
    if is_clear[~np.isnan(found["ymd"])].all() and read["ymd"] == best:
        possible = ["ymd"]
    elif len(possible) == 2 and parsed.has_point[~is_clear & ~np.isnan(found["dmy"])].all():
        possible = ["dmy"]  # nobody writes a month first and points
    chosen = order if order in possible else possible[-1]
    is_ambiguous = not np.array_equal(found[possible[0]], found[possible[-1]], equal_nan=True)
    return DateFormat(name, chosen), is_ambiguous, found[chosen]


def read_clear(texts: Texts) -> Floats | None:
    """Return the days since 1970 of texts that are the same in every order.

    None if the order makes a difference to one of them, or none is a date.
    """
    parsed = parse(texts.tidy)
    days = parsed.days("ymd")
    others = (parsed.days(order) for order in ORDERS[1:])
    is_clear = all(np.array_equal(days, own, equal_nan=True) for own in others)
    return days if is_clear and not np.isnan(days).all() else None


def find_clock(name: str, texts: Texts) -> tuple[Clock, Floats] | None:
    """Find out whether a column holds times such as ``8:30``; None if not."""
    last = _numbers(_extract(texts.tidy, _SPAN)["last"])
    chosen = Clock(name, has_seconds=not np.isnan(last).all())
    hours = chosen.read(texts)
    return None if np.isnan(hours).all() else (chosen, hours)


def parse(tidy: Any) -> ParsedDates:
    """Take texts apart into the parts of dates."""
    count = len(tidy)
    a, b, c = (np.full(count, np.nan) for _ in range(3))
    is_clear, has_year, has_point = (np.zeros(count, dtype=bool) for _ in range(3))
    time = np.zeros(count)
    own, found = _matching(tidy, np.arange(count), _NUMBERS)
    if len(own):
        starts = has_year[own] = _length(found["a"]) == 4
        has_point[own] = _equal(found["s"], ".")
        # One sign throughout, and a year of two digits or of four at an end.
        width = _length(found["c"])
        is_right = _equal(found["s"], found["t"]) & (starts | (width == 2) | (width == 4))
        a[own] = np.where(is_right, _numbers(found["a"]), np.nan)
        b[own], c[own] = _numbers(found["b"]), _numbers(found["c"])
        c[own] = np.where(starts | (width == 4), c[own], _full_year(c[own]))
        time[own] = _time_of_day(found)
    for pattern in _CLEAR:
        own, found = _matching(tidy, np.flatnonzero(np.isnan(a)), pattern)
        if len(own):
            a[own] = _numbers(found["a"]) if "a" in found else 1.0
            is_named = _MONTHS in pattern
            b[own] = _months(found["b"]) if is_named else _numbers(found["b"])
            c[own] = _numbers(found["c"])
            c[own] = np.where(c[own] < 100, _full_year(c[own]), c[own])
            time[own] = _time_of_day(found) if "hour" in found else 0.0
            is_clear[own] = True
    return ParsedDates((a, b, c), is_clear, has_year, time, has_point)


def _matching(
    tidy: Any, places: NDArray[np.int64], pattern: str
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Return which of the texts match, and their groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = tidy if len(places) == len(tidy) else tidy.take(pa.array(places))
    is_match = np.asarray(pc.match_substring_regex(texts, pattern, ignore_case=True))
    if not is_match.any():
        return places[:0], {}
    return places[is_match], _extract(texts.filter(pa.array(is_match)), pattern)


def _extract(texts: Any, pattern: str) -> dict[str, Any]:
    """Return the named groups of a pattern for each text, empty where it does not match."""
    import pyarrow.compute as pc

    found = pc.extract_regex(pc.utf8_lower(texts), pattern)
    names = [field.name for field in found.type]
    # A text that does not match is a gap as a whole, which its groups do not know.
    parts = zip(names, found.flatten(), strict=True)
    return {name: part.fill_null("") for name, part in parts}


def _numbers(texts: Any) -> Floats:
    """Return texts of digits as numbers; NaN for an empty one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring(pc.ascii_ltrim(texts, "'"), ",", ".")
    plain = pc.if_else(pc.equal(plain, ""), "nan", plain)
    return np.asarray(pc.cast(plain, pa.float64()))


def _length(texts: Any) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    return np.asarray(pc.binary_length(texts))


def _equal(texts: Any, other: Any) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    return np.asarray(pc.equal(texts, other))


def _months(names: Any) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.asarray(pc.index_in(names, pa.array(_MONTHS.split("|"), names.type))) + 1.0


def _full_year(years: Floats) -> Floats:
    return np.where(years < _CENTURY, years + 2000, years + 1900)


def _half(halves: Any) -> Floats:
    """Return 0 for the morning, 1 for the afternoon, -1 where it is not said."""
    import pyarrow.compute as pc

    is_after_noon = np.asarray(pc.starts_with(halves, "p"))
    return np.where(_equal(halves, ""), -1.0, is_after_noon.astype(np.float64))


def _time_of_day(found: dict[str, Any]) -> Floats:
    """Return the time of each match in microseconds, in UTC if it has an offset; NaN for none."""
    if _equal(found["hour"], "").all():
        return np.zeros(len(found["hour"]))
    hour, minute, second = (
        np.nan_to_num(_numbers(found[key])) for key in ("hour", "minute", "second")
    )
    half = _half(found["half"])
    hour = np.where(half >= 0, hour % 12 + 12 * np.maximum(half, 0), hour)
    zones = found["zone"].dictionary_encode()
    offset = np.array([_offset(zone) for zone in zones.dictionary.to_pylist()])
    is_time = (hour < 24) & (minute < 60) & (second < 61)
    hours = hour - offset[np.asarray(zones.indices)]
    micros = hours * _HOUR + minute * 60 * _SECOND + np.rint(second * _SECOND)
    return np.where(is_time, micros, np.nan)


def _offset(zone: str) -> float:
    """Return the hours that a zone such as ``+05:30`` is ahead of UTC."""
    if zone[:1] not in ("+", "-"):
        return 0.0
    hours = int(zone[1:3]) + int(zone[-2:]) / 60
    return -hours if zone[0] == "-" else hours


def _days(year: Floats, month: Floats, day: Floats) -> Floats:
    """Return the days since 1970 of some dates; NaN for those that no calendar has."""
    is_date = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    y, m, d = (np.where(is_date, part, 1).astype(np.int64) for part in (year, month, day))
    months = ((y - 1970) * 12 + m - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    return np.where(is_date & (d <= length), first + d - 1.0, np.nan)
