"""What is said about the way a column is written, in a few words each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular import dates, numerals
from regaug.data.tabular.dates import DAY, DateFormat, Order
from regaug.data.tabular.numerals import NumberFormat, Numbers
from regaug.data.tabular.texts import Floats, Texts, listed, quoted
from regaug.formatting import count, percent

_MANY_NUMBERS = 0.5  # a column with this share of numbers may have been meant as such
_NEARLY_ALL = 0.95
_READ = " read as numbers ("
_MOST_ALIKE, _NAMED = 5, 5  # columns that have a sentence each; columns that are named


def example(
    texts: Texts, values: Floats, is_wanted: NDArray[np.bool_], *, is_date: bool = False
) -> str:
    """Return the most telling of some texts, and what it was read as: ``'$45,210' is 45210``."""
    place = texts.example(is_wanted & (texts.rows > 0))
    return f"{texts.shown(place)!r} is {_shown(values[place], is_date=is_date)}"


def words_note(words: Mapping[str, int], what: str) -> list[str]:
    """Say which texts in a column of numbers (or dates) are none; nothing if there are none.

    Example:
        >>> words_note({"n/a": 3, "see note": 1}, "numbers")
        ["has 4 values that are no numbers, taken as missing: 'n/a' 3 times, 'see note'"]
    """
    if not words:
        return []
    total = sum(words.values())
    are = "are no" if total > 1 else f"is no {what[:-1]}"
    what = f" {what}" if total > 1 else ""
    return [f"has {count(total, 'value')} that {are}{what}, taken as missing: {listed(words)}"]


def gathered(notes: Sequence[str]) -> list[str]:
    """Say in one sentence that many columns are read as numbers, in place of one for each.

    Example:
        >>> gathered([f"'{name}' read as numbers ('1,5' is 1.5)" for name in "abcdefg"])
        ["7 columns read as numbers: 'a' ('1,5' is 1.5), 'b', 'c', 'd', 'e' and 2 more"]
    """
    same = [note for note in notes if _READ in note]
    if len(same) <= _MOST_ALIKE:
        return list(notes)
    names = [note.partition(_READ)[0] for note in same]
    first = same[0].replace(_READ, " (", 1)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    listing = f"{', '.join([first, *names[1:_NAMED]])}{more}"
    return [
        f"{len(same)} columns read as numbers: {listing}",
        *(note for note in notes if _READ not in note),
    ]


def two_numbers(texts: Texts, reading: NumberFormat) -> str:
    """Say that numbers could be read with another decimal sign."""
    parsed = numerals.parse(texts.tidy)
    factors = {"#": 1.0, **dict(zip(reading.forms, reading.factors, strict=True))}
    other = replace(reading, decimal="," if reading.decimal == "." else ".")
    one, two = (parsed.numbers(own.decimal, factors, texts.known) for own in (reading, other))
    return _two(texts, one, two, parsed.is_ambiguous & ~np.isnan(one), is_date=False)


def two_dates(texts: Texts, reading: DateFormat) -> str:
    """Say that dates could be read with day and month exchanged."""
    parsed = dates.parse(texts.tidy)
    others: dict[Order, Order] = {"dmy": "mdy", "mdy": "dmy"}
    one, two = parsed.days(reading.order), parsed.days(others[reading.order])
    is_other = (one != two) & ~np.isnan(one) & ~np.isnan(two)
    how = f" ({dates.WORDS[reading.order]})"
    return _two(texts, one, two, is_other, is_date=True, how=how)


def why_text(texts: Texts, found: Numbers | None) -> list[str]:
    """Say why a column stays text that holds many numbers; nothing of other columns."""
    if found is None:
        return []
    reading, decided, values = found
    if decided.other_units:
        parsed = numerals.parse(texts.tidy)
        rows = parsed.rows_by_form(texts.rows * parsed.matches[reading.decimal])
        units = [form for form in sorted(rows, key=lambda form: -rows[form]) if form != "#"]
        if sum(rows.values()) >= _NEARLY_ALL * texts.there:
            first = [int((parsed.form_of == parsed.forms.index(unit)).argmax()) for unit in units]
            shown = quoted(texts.written.take(first[:2]).to_pylist())
            return [f"kept as text: its numbers have different units ({shown})"]
    share = texts.rows[~np.isnan(values)].sum() / texts.there
    if share < _MANY_NUMBERS:
        return []
    words = texts.words(np.where(texts.is_gap, 0.0, values))
    return [f"kept as text: {percent(1 - share)} of its values are no numbers ({listed(words)})"]


def _two(
    texts: Texts,
    one: Floats,
    two: Floats,
    is_wanted: NDArray[np.bool_],
    *,
    is_date: bool,
    how: str = "",
) -> str:
    place = texts.example(is_wanted & (texts.rows > 0))
    taken, other = (_shown(values[place], is_date=is_date) for values in (one, two))
    text = texts.shown(place)
    return f"could be read in two ways: {text!r} is taken as {taken}{how}, not as {other}"


def _shown(value: float, *, is_date: bool) -> str:
    if not is_date:
        return f"{value:.12g}"
    unit = "D" if value == round(value) else "s"
    stamp = np.datetime64(round(value * DAY), "us").astype(f"datetime64[{unit}]")
    return str(stamp).replace("T", " ")
