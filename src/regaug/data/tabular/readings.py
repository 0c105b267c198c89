"""How the texts of a column become numbers or dates: kept with a model, for the rows to come."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.dates import DAY, Clock, DateFormat
from regaug.data.tabular.numerals import NumberFormat
from regaug.data.tabular.texts import (
    MARKERS,
    Floats,
    Texts,
    are_strings,
    as_arrow,
    is_text,
    texts_of,
)

if TYPE_CHECKING:
    import pandas as pd

TRUE = frozenset(("true", "t", "yes", "y", "1", "on", "ja", "j", "oui", "si", "sí"))
FALSE = frozenset(("false", "f", "no", "n", "0", "off", "nein", "non"))
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
_HEAD = 100
_WHOLE = 2**53  # beyond, a float does not tell whole numbers apart


@dataclass(frozen=True)
class Flags:
    """True and false in several spellings: ``Yes``, ``y``, ``TRUE``, ``1``."""

    kind: ClassVar[str] = "flags"
    name: str

    def read(self, texts: Texts) -> Floats:
        """Return 1 for true and 0 for false; NaN for what is neither."""
        import pyarrow as pa
        import pyarrow.compute as pc

        lower = pc.utf8_lower(texts.tidy)
        is_true, is_false = (
            np.asarray(pc.is_in(lower, pa.array(sorted(words), lower.type)))
            for words in (TRUE, FALSE)
        )
        return np.where(is_true, 1.0, np.where(is_false, 0.0, np.nan))


@dataclass(frozen=True)
class Code:
    """Digits that are no number, such as ``00123``: they stay text."""

    kind: ClassVar[str] = "code"
    name: str


Reading = NumberFormat | DateFormat | Clock | Flags | Code
READINGS: dict[str, type] = {r.kind: r for r in (NumberFormat, DateFormat, Clock, Flags, Code)}


def translate(series: "pd.Series", reading: Reading | None) -> "pd.Series":
    """Return a column of texts as numbers, dates or flags; what cannot be read is a gap.

    A column that holds no texts, or nothing that can be read, stays as it is.
    """
    if not is_text(series) or isinstance(reading, Code):
        return series
    if reading is None:
        plain = read_plain(series)
        return series if plain is None else plain
    texts = texts_of(series)
    values = reading.read(texts)
    if np.isnan(values[texts.rows > 0]).all():
        return series
    return as_column(series, texts.spread(values), reading)


def as_column(series: "pd.Series", values: Floats, reading: Reading | None) -> "pd.Series":
    """Return what was read from a column as one of the type that it is."""
    import pandas as pd

    gaps = np.isnan(values)
    read: NDArray[np.generic] = values
    if isinstance(reading, DateFormat):
        micros = np.rint(np.where(gaps, 0.0, values) * DAY).astype(np.int64)
        read = np.where(gaps, np.datetime64("NaT", "us"), micros.astype("datetime64[us]"))
    elif isinstance(reading, Flags):
        read = values == 1.0 if not gaps.any() else np.where(gaps, np.array(None), values == 1.0)
    elif not gaps.any() and (values == np.rint(values)).all() and np.abs(values).max() < _WHOLE:
        read = values.astype(np.int64)
    return pd.Series(read, index=series.index, name=series.name)


def read_plain(series: "pd.Series") -> "pd.Series | None":
    """Return a column whose texts are all plain numbers, or all true and false; None for others.

    Whole numbers that begin with several zeros are codes, and none.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if not are_strings(series):
        return None
    texts = as_arrow(series)
    numbers = _cast(texts, pa.float64())
    if numbers is None:
        texts = pc.utf8_trim_whitespace(texts)
        is_gap = pc.is_in(texts, pa.array(sorted(MARKERS), pa.large_string()))
        texts = pc.if_else(is_gap, pa.scalar(None, pa.large_string()), texts)
        numbers = _cast(texts, pa.float64())
    if texts.null_count == len(texts):
        return None
    if numbers is None:
        is_truth = pc.all(pc.is_in(texts, pa.array(list(_TRUTH), pa.large_string()))).as_py()
        return series.map(_TRUTH).astype(bool) if is_truth and not texts.null_count else None
    whole = _cast(texts, pa.int64())
    if whole is not None and has_codes(texts):
        return None
    is_whole = whole is not None and not texts.null_count
    values = (whole if is_whole else numbers).to_numpy(zero_copy_only=False)
    return pd.Series(values, index=series.index, name=series.name)


def _cast(texts: Any, kind: Any) -> Any:
    """Return texts as numbers; None if they are not all such."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.cast(texts[:_HEAD], kind)  # to fail takes long
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None


def has_codes(texts: object) -> bool:
    """Whether there are digits that begin with several zeros, and no number that is not whole.

    One zero before one digit, as in 05, is a way to write months and hours.
    """
    import pyarrow.compute as pc

    if not pc.any(pc.starts_with(texts, "0")).as_py():
        return False
    has_zeros = pc.any(pc.match_substring_regex(texts, r"^0\d{2,}$")).as_py()
    return bool(has_zeros and pc.all(pc.match_substring_regex(texts, r"^\d+$")).as_py())


def by_name(readings: Sequence[Reading]) -> dict[str, Reading]:
    """Return readings by their columns."""
    return {reading.name: reading for reading in readings}
