"""The texts of a column, each once, and which of them say that nothing is there."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regaug.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

# Gaps in any column: nothing at all, and what programs write for it.
MARKERS = frozenset(
    (
        *("", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
# Gaps in a column of numbers or dates, however they are capitalized.
GAP_WORDS = frozenset(
    (
        *("-", "--", "---", ".", "..", "...", "*", "n.a.", "n.d.", "nd", "nil", "none", "n/k"),
        *("k.a.", "unknown", "unk", "missing", "not available", "not applicable", "not known"),
        *("no data", "empty", "blank", "(blank)", "tbd", "tba", "#value!", "#div/0!", "#ref!"),
        *("#name?", "#num!", "#null!", *(word.lower() for word in MARKERS)),
    )
)
_SPACES = r"[\x{00A0}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}\t]+"
_NOTHING = r"[\x{200B}-\x{200F}\x{2060}\x{FEFF}]+"
_MINUS = r"[\x{2010}-\x{2015}\x{2212}\x{FE63}\x{FF0D}]"
_APOSTROPHE = r"[\x{2018}\x{2019}\x{02BC}\x{00B4}\x{FF07}]"
_SHOWN = 3
_SAMPLE, _FIRST = 1_000, 100


@dataclass(frozen=True, eq=False)
class Texts:
    """What stands in a column: each text once, or for every row where nearly all differ.

    Attributes:
        codes: Place of every row's text in the list of texts; -1 where there is nothing.
        written: The texts as they stand, without spaces around them.
        tidy: The same with plain spaces, minus signs and apostrophes.
        rows: How many rows have each text.
        is_gap: Which of the texts say that there is nothing, in a column of numbers or dates.
        known: Those values that are numbers and no texts; NaN for the others.
    """

    codes: NDArray[np.int64]
    written: Any
    tidy: Any
    rows: NDArray[np.int64]
    is_gap: NDArray[np.bool_]
    known: Floats

    @property
    def there(self) -> int:
        """How many rows hold something."""
        return int(self.rows[~self.is_gap].sum())

    def some(self, most: int) -> "Texts":
        """Return evenly spaced ones of the texts, so many at most."""
        places = np.unique(np.linspace(0, len(self.rows) - 1, most).astype(np.int64))
        return Texts(
            np.arange(len(places)),
            self.written.take(places),
            self.tidy.take(places),
            self.rows[places],
            self.is_gap[places],
            self.known[places],
        )

    def spread(self, values: Floats) -> Floats:
        """Return for every row what was read from its text; NaN where there is none."""
        return np.append(values, np.nan)[self.codes]

    def words(self, values: Floats) -> dict[str, int]:
        """Return the texts from which nothing was read, with their rows, the most frequent first.

        What says that there is nothing is among them; no text at all is not.
        """
        places = np.flatnonzero(np.isnan(values) & (self.rows > 0))
        found: Counter[str] = Counter()
        for text, rows in zip(
            self.written.take(places).to_pylist(), self.rows[places], strict=True
        ):
            found[text] += int(rows)
        return {text: rows for text, rows in found.most_common() if text not in ("", "nan", "NaN")}

    def shown(self, place: int) -> str:
        """Return a text as a reader can see it: with plain spaces where it has others."""
        text: str = self.written[place].as_py()
        return text if text.isprintable() else str(self.tidy[place].as_py())

    def example(self, is_wanted: NDArray[np.bool_]) -> int:
        """Return the place of the text, of those that are wanted, with the most signs in it.

        Of equal ones it is the first in the column; of very many the first ones are looked at.
        """
        places = np.flatnonzero(is_wanted)[:_FIRST]  # texts stand in the order of the rows
        signs = [
            sum(not letter.isdigit() for letter in text)
            for text in self.tidy.take(places).to_pylist()
        ]
        return int(places[int(np.argmax(signs))])


def is_text(series: "pd.Series") -> bool:
    """Whether a column may hold texts: categories and numbers do not."""
    import pandas as pd

    is_string = isinstance(series.dtype, pd.StringDtype) or str(series.dtype).startswith(
        ("string", "large_string")
    )
    return is_string or series.dtype == object


def are_strings(series: "pd.Series") -> bool:
    """Whether all values of a column that may hold texts are such."""
    import pandas as pd

    return bool(series.dtype != object or pd.api.types.infer_dtype(series, skipna=True) == "string")


def texts_of(series: "pd.Series") -> Texts:
    """Return the texts of a column, in the order in which they appear."""
    import pandas as pd
    import pyarrow as pa

    is_string = are_strings(series)
    if is_string and _mostly_differ(series):
        texts = as_arrow(series)
        is_there = np.asarray(texts.is_valid())
        codes = np.where(is_there, np.arange(len(series)), -1)
        return _texts(codes, texts.fill_null(""), is_there.astype(np.int64))
    codes, uniques = factorize(series)
    known = np.full(len(uniques), np.nan)
    if not is_string:
        is_number = [_is_number(value) for value in uniques]
        known[is_number] = [
            float(v) for v, number in zip(uniques, is_number, strict=True) if number
        ]
        texts = pa.array([text_of(value) for value in uniques], pa.large_string())
    else:
        texts = as_arrow(pd.Series(uniques))
    rows = np.bincount(codes[codes >= 0], minlength=len(uniques)).astype(np.int64)
    return _texts(codes, texts, rows, known)


def _texts(
    codes: NDArray[np.int64], texts: Any, rows: NDArray[np.int64], known: Floats | None = None
) -> Texts:
    import pyarrow as pa
    import pyarrow.compute as pc

    written = pc.utf8_trim_whitespace(texts)
    known = np.full(len(texts), np.nan) if known is None else known
    lower = pc.utf8_lower(written)
    is_gap = np.asarray(pc.is_in(lower, pa.array(sorted(GAP_WORDS), pa.large_string())))
    return Texts(codes, written, tidied(written), rows, is_gap & np.isnan(known), known)


def _mostly_differ(series: "pd.Series") -> bool:
    """Whether looking for equal texts would cost more than it saves."""
    some = series.iloc[:: max(1, len(series) // _SAMPLE)]
    return len(series) > 10 * _SAMPLE and 2 * some.nunique() > len(some)


def as_arrow(series: "pd.Series") -> Any:
    """Return a column of texts as an Arrow array."""
    import pyarrow as pa

    array = pa.array(series, pa.large_string())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def factorize(series: "pd.Series") -> tuple[NDArray[np.int64], Any]:
    """Return every value's place in the list of different ones (-1: a gap), and that list."""
    import pandas as pd

    try:
        codes, uniques = pd.factorize(series)
    except TypeError:
        raise DataError(
            f"Column {series.name!r} must hold numbers, text or dates, got values such as "
            f"{series.dropna().iloc[0]!r}. Leave it out with `drop`."
        ) from None
    return codes, uniques


def without_markers(series: "pd.Series") -> "pd.Series":
    """Return a column of texts in which what programs write for nothing is a gap."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(series.dtype, pd.StringDtype):
        return series.mask(series.isin(list(MARKERS)), None)
    texts = as_arrow(series)
    is_marker = pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(sorted(MARKERS), texts.type))
    return series.mask(np.asarray(is_marker)) if pc.any(is_marker).as_py() else series


def tidied(written: Any) -> Any:
    """Return texts with plain spaces, minus signs and apostrophes, whichever they have."""
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(written)).as_py() is not False:
        return written
    tidy = pc.replace_substring_regex(written, _SPACES, " ")
    for pattern, plain in ((_NOTHING, ""), (_MINUS, "-"), (_APOSTROPHE, "'")):
        tidy = pc.replace_substring_regex(tidy, pattern, plain)
    return tidy


def text_of(value: object) -> str:
    """Return a value as text; a whole number without a point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def listed(words: Mapping[str, int]) -> str:
    """Name the first few words, with how often they stand there.

    Example:
        >>> listed({"n/a": 3, "see note": 1})
        "'n/a' 3 times, 'see note'"
    """
    shown = [_with_times(word, times) for word, times in list(words.items())[:_SHOWN]]
    more = [f"and {len(words) - _SHOWN:,} more"] if len(words) > _SHOWN else []
    return ", ".join([*shown, *more])


def quoted(texts: Iterable[str]) -> str:
    """Return texts in quotes, long ones cut, with commas between them."""
    return ", ".join(repr(text if len(text) <= 40 else f"{text[:37]}...") for text in texts)


def _with_times(word: str, times: int) -> str:
    return f"{quoted([word])} {times:,} times" if times > 1 else quoted([word])


def _is_number(value: object) -> bool:
    from numbers import Real

    return isinstance(value, Real | np.number) and not isinstance(value, bool | np.bool_)
