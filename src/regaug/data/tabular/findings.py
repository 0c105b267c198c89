"""What one column of texts holds: numbers, dates, times, flags, codes, or nothing but texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular import dates, numerals
from regaug.data.tabular.dates import Order
from regaug.data.tabular.numerals import Decimal, Numbers
from regaug.data.tabular.readings import (
    FALSE,
    TRUE,
    Code,
    Flags,
    Reading,
    as_column,
    has_codes,
    read_plain,
)
from regaug.data.tabular.remarks import example, two_dates, two_numbers, why_text, words_note
from regaug.data.tabular.texts import Floats, Texts, quoted, texts_of

if TYPE_CHECKING:
    import pandas as pd

NEARLY_ALL = 0.95  # text of which this share are numbers (or dates) is numbers (or dates)
MOSTLY = 0.8  # and so is this share, if the numbers are many different ones
MARKED = 0.5  # or this one, if they have a unit: the words may well be "free" or "closed"
_MANY, _SAMPLE = 20, 1_000
_PLAIN = r"^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$"


@dataclass(frozen=True, eq=False)
class Finding:
    """What is known of one column.

    Attributes:
        series: The column as it is in the table.
        read: It as it was read; None if it stays as it is.
        reading: How its texts are read; None where they are plain.
        decimal: The decimal sign, if it is certain.
        order: The order of day and month, if it is certain.
        is_ambiguous: Whether it can be read in two ways.
        is_plain: Whether all its texts are plain numbers.
        notes: What there is to say.
    """

    series: "pd.Series"
    read: "pd.Series | None" = None
    reading: Reading | None = None
    decimal: Decimal | None = None
    order: Order | None = None
    is_ambiguous: bool = False
    is_plain: bool = False
    notes: tuple[str, ...] = ()


def find_reading(series: "pd.Series", *, are_dates: bool) -> Reading | None:
    """Find out how new rows are written of a column that held plain numbers, or dates.

    None if they are written plainly too.
    """
    name, texts = str(series.name), texts_of(series)
    if are_dates:
        dated = dates.find_dates(name, texts)
        return None if dated is None else dated[0]
    found = numerals.find_numbers(name, texts)
    if found is None or not _is_marked(texts, found[2], found[0].decimal).any():
        return None
    return found[0]


def is_mostly(
    values: Floats, rows: NDArray[np.int64], there: int, *, is_marked: bool = False
) -> bool:
    """Whether what could be read of some texts is what their column holds.

    Nearly all of the rows that hold something; or most of them, if they are many different values;
    or half of them, if a unit marks them as numbers. Codes and grades are neither.
    """
    is_read = ~np.isnan(values)
    read = int(rows[is_read].sum())
    if not read or read < (MARKED if is_marked else MOSTLY) * there:
        return False
    if read >= NEARLY_ALL * there or is_marked:
        return True
    return len(np.unique(values[is_read])) >= min(_MANY, read / 2)


def find(
    series: "pd.Series",
    *,
    decimal: Decimal | None = None,
    order: Order | None = None,
    is_again: bool = False,
) -> Finding:
    """Find out what a column holds; ``decimal`` and ``order`` decide where it does not itself."""
    if not is_again and (plain := read_plain(series)) is not None:
        return Finding(series, plain, is_plain=plain.dtype.kind == "f")
    texts = texts_of(series)
    if not texts.there or _is_prose(texts):
        return Finding(series)
    found = _find_flags(series, texts) or _find_code(series, texts)
    if found is not None:
        return found
    numbers = numerals.find_numbers(str(series.name), texts, decimal=decimal)
    return (
        _as_numbers(series, texts, numbers)
        or _find_dates(series, texts, order)
        or _find_clock(series, texts)
        or Finding(series, notes=tuple(why_text(texts, numbers)))
    )


def _is_prose(texts: Texts) -> bool:
    """Whether a sample of very many different texts holds hardly any number, date or time."""
    if len(texts.rows) <= 10 * _SAMPLE or texts.rows.max() > 1:
        return False
    some = texts.some(_SAMPLE)
    numbers, days = numerals.find_numbers("", some), dates.find_dates("", some)
    hours = dates.find_clock("", some)
    values = [found[-1] for found in (numbers, days, hours) if found is not None]
    read = max((int((~np.isnan(own)).sum()) for own in values), default=0)
    return read < MARKED / 2 * some.there


def _find_flags(series: "pd.Series", texts: Texts) -> Finding | None:
    """Find true and false, where at least one of them has several spellings."""
    import pyarrow as pa

    is_there = ~texts.is_gap & (texts.rows > 0)
    written = (
        texts.written.filter(pa.array(is_there)).to_pylist() if is_there.sum() <= _MANY else []
    )
    spelled = {text.lower() for text in written}
    if len(set(written)) < 3 or not spelled <= TRUE | FALSE or spelled <= {"0", "1"}:
        return None
    yes, no = ([text for text in written if text.lower() in words] for words in (TRUE, FALSE))
    if not yes or not no:
        return None
    reading = Flags(str(series.name))
    note = f"read as true ({quoted(yes)}) and false ({quoted(no)})"
    return _read(series, texts, reading, reading.read(texts), [note])


def _find_code(series: "pd.Series", texts: Texts) -> Finding | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    present = texts.tidy.filter(pa.array(~texts.is_gap & np.isnan(texts.known)))
    if not len(present) or not has_codes(present):
        return None
    zeros = pc.match_substring_regex(present, r"^0\d{2,}$")
    example = present.filter(zeros)[0].as_py()
    note = f"kept as text: digits such as {example!r} are a code, not a number"
    return Finding(series, reading=Code(str(series.name)), notes=(note,))


def _as_numbers(series: "pd.Series", texts: Texts, found: Numbers | None) -> Finding | None:
    if found is None:
        return None
    reading, decided, values = found
    has_others = decided.other_units > (1.0 - NEARLY_ALL) * texts.there
    is_marked = bool(reading.forms)
    if has_others or not is_mostly(values, texts.rows, texts.there, is_marked=is_marked):
        return None
    is_other = _is_marked(texts, values, reading.decimal)
    notes = []
    if decided.is_ambiguous:
        notes.append(two_numbers(texts, reading))
    elif is_other.any():
        notes.append(f"read as numbers ({example(texts, values, is_other)})")
    own = reading if is_other.any() else None
    made = _read(series, texts, own, values, notes, what="numbers")
    sign = decided.decimal if decided.is_certain else None
    return replace(made, decimal=sign, is_ambiguous=decided.is_ambiguous)


def _is_marked(texts: Texts, values: Floats, decimal: Decimal) -> NDArray[np.bool_]:
    """Return which texts were read as numbers that are not plainly written."""
    import pyarrow.compute as pc

    is_plain = np.asarray(pc.match_substring_regex(texts.written, _PLAIN))
    if decimal == ",":
        is_plain &= ~np.asarray(pc.match_substring_regex(texts.written, "[.,]"))
    is_plain |= ~np.isnan(texts.known)
    return np.asarray(~is_plain & np.isfinite(values))


def _find_dates(series: "pd.Series", texts: Texts, hint: Order | None) -> Finding | None:
    import pyarrow.compute as pc

    found = dates.find_dates(str(series.name), texts, order=hint)
    if found is None or not is_mostly(found[2], texts.rows, texts.there):
        return None
    reading, is_ambiguous, values = found
    is_iso = np.asarray(pc.match_substring_regex(texts.tidy, r"^\d{4}[-/]"))
    is_other = ~is_iso & ~np.isnan(values)
    notes = []
    order = "" if reading.order == "ymd" else f", {dates.WORDS[reading.order]}"
    if is_ambiguous:
        notes.append(two_dates(texts, reading))
    elif is_other.any():
        notes.append(f"read as dates{order} ({example(texts, values, is_other, is_date=True)})")
    made = _read(series, texts, reading, values, notes, what="dates")
    if not is_other.any() and not texts.words(values):
        return Finding(series)  # as it should be
    if not is_other.any() or reading.order == "ymd":
        return replace(made, reading=None)
    return replace(made, is_ambiguous=is_ambiguous, order=None if is_ambiguous else reading.order)


def _find_clock(series: "pd.Series", texts: Texts) -> Finding | None:
    found = dates.find_clock(str(series.name), texts)
    if found is None or not is_mostly(found[1], texts.rows, texts.there):
        return None
    note = f"read as hours ({example(texts, found[1], ~np.isnan(found[1]))})"
    return _read(series, texts, found[0], found[1], [note], what="times")


def _read(
    series: "pd.Series",
    texts: Texts,
    reading: Reading | None,
    values: Floats,
    notes: Sequence[str],
    *,
    what: str = "",
) -> Finding:
    """Return a column as it was read; the words in it are gaps, and named."""
    column = as_column(series, texts.spread(values), reading)
    return Finding(series, column, reading, notes=(*notes, *words_note(texts.words(values), what)))
