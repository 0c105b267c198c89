"""What the numbers of an encoded row can be: new rows are moved to the nearest such ones."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.columns import Boolean, Column, Number
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.texts import Floats

_LARGEST_WHOLE = 2**53  # beyond, a float does not tell whole numbers apart


@dataclass(frozen=True, eq=False)
class Domain:
    """What rows of a table can be, as the training rows show it.

    Attributes:
        low: Smallest number of every column of the matrix, ``(d,)``.
        high: The largest.
        is_flag: Columns that have two different numbers, where nothing else is known of them.
        is_whole: Columns that are to have whole numbers.
        encoder: What made the matrix from a table, if that is known.

    Example:
        >>> known = np.array([[0.0, 3.0], [1.0, 8.5], [1.0, 4.0]])
        >>> Domain.of(known).settle(np.array([[0.7, 9.9], [0.2, 5.5]])).tolist()
        [[1.0, 8.5], [0.0, 5.5]]
    """

    low: Floats
    high: Floats
    is_flag: NDArray[np.bool_]
    is_whole: NDArray[np.bool_]
    encoder: Encoder | None = None

    @classmethod
    def of(
        cls, known: Floats, encoder: Encoder | None = None, *, keep_integers: bool = False
    ) -> Self:
        """Learn from training rows ``(n, d)`` what a row can be.

        Args:
            known: The training rows.
            encoder: What made them from a table: it knows categories, flags, dates and gaps.
                Without it every column of two different numbers is taken for a flag.
            keep_integers: Whether columns of whole numbers are to stay such.
        """
        low, high = known.min(axis=0), known.max(axis=0)
        is_flag = ((known == low) | (known == high)).all(axis=0)
        is_whole = (known == np.rint(known)).all(axis=0) & (np.abs(known) < _LARGEST_WHOLE).all(0)
        return cls(low, high, is_flag, is_whole & keep_integers, encoder)

    def settle(self, values: Floats) -> Floats:
        """Return rows ``(n, d)``, each moved to the nearest one that there could be.

        No number leaves its range. Of a category the level with the largest number is taken, of a
        flag the nearer value; a date decides on its time of year and of day, a gap on what stands
        in its place.
        """
        new = np.clip(values, self.low, self.high)
        new[:, self.is_whole] = np.rint(new[:, self.is_whole])
        if self.encoder is None:
            flags = np.where(2 * new > self.low + self.high, self.high, self.low)
            return np.where(self.is_flag, flags, new)
        for column, span in self.encoder.spans():
            is_plain = isinstance(column, Number) and not isinstance(column, Boolean)
            if not is_plain or len(column.features) > 1:
                new[:, span] = _settle_column(column, new[:, span])
        return new


def _settle_column(column: Column, values: Floats) -> Floats:
    """Return the features of a column as they are after decoding and encoding."""
    import pandas as pd

    out = np.empty((values.shape[1], len(values)), dtype=np.float32)
    column.encode(pd.Series(column.decode(values.T)), out)
    return out.T.astype(np.float64)
