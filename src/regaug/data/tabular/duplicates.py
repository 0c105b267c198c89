"""Rows of a table with equal inputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regaug.data.duplicates import Bits, Duplicates, as_bits, find_equal
from regaug.data.tabular.readings import read_plain
from regaug.data.tabular.texts import Floats, is_text
from regaug.data.tabular.values import read_levels

if TYPE_CHECKING:
    import pandas as pd


def find_duplicates(frame: "pd.DataFrame", columns: Sequence[str], y: Floats) -> Duplicates:
    """Find the rows of a table that have equal values in some columns.

    Args:
        frame: The table.
        columns: The columns that are inputs; without those that only number the rows.
        y: Targets ``(n, m)``.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"a": [*range(30), 7], "b": [*"xy"] * 15 + ["y"]})
        >>> found = find_duplicates(frame, ["a", "b"], np.arange(31.0)[:, None])
        >>> found.repeated, found.exact, bool(found.units[7] == found.units[30])
        (1, 0, True)
    """
    inputs = (_bits(frame[name]) for name in columns)
    return find_equal(inputs, map(as_bits, y.T), len(frame))


def _bits(series: "pd.Series") -> Bits:
    """Return a number for every value of a column, the same for equal ones."""
    if is_text(series):
        plain = read_plain(series)
        if plain is None:
            return read_levels(series)[0].astype(np.uint64)
        series = plain
    if series.dtype.kind == "M":
        return np.asarray(series.astype("int64"), dtype=np.int64).view(np.uint64)
    if series.dtype.kind not in "biuf":
        return read_levels(series)[0].astype(np.uint64)
    return as_bits(series.to_numpy(dtype=np.float64, na_value=np.nan))
