"""A data set that is two arrays and a rule to split them."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from regaug._checks import check_choice
from regaug.data.base import Data, Info, Rows, Rules, Split, as_float
from regaug.data.duplicates import as_bits, find_equal
from regaug.data.scaling import Values, min_max
from regaug.data.splits import ThreeParts, random_split
from regaug.exceptions import ArgumentError, NonFiniteError


class ArrayData(Data):
    """Inputs and targets in memory, and a rule that splits them.

    Missing inputs are filled with the mean of their column: over the training rows in the protocol
    ``"tuned"``; over all rows in ``"paper"``, which then scales every input to [0, 1] over all rows
    too. A column without any value becomes 0. Targets stay as they are in both.

    Args:
        x: Inputs ``(n, *features)``; NaN is a missing value.
        y: Targets ``(n,)`` or ``(n, m)``, finite.
        info: The facts about the data.
        rule: From a seed to the rows of the training, validation and test part; at random if None,
            equal rows together.
        groups: Group of every row, ``(n,)``, where there are groups.

    Attributes:
        times: None: a rule splits these rows, whatever it goes by.
    """

    times: Values | None = None

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        info: Info,
        rule: Callable[[int], ThreeParts] | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        self.x: Values = np.asarray(x, dtype=np.float64)
        targets = np.asarray(y, dtype=np.float64)
        self.y = targets[:, None] if targets.ndim == 1 else targets
        self.groups = None if groups is None else np.asarray(groups)
        self.info, self.rule = info, rule
        self._check()

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split the rows by the rule; see :meth:`Data.split`."""
        check_choice("protocol", protocol, ("tuned", "paper"))
        parts = self.rule(seed) if self.rule else self._split_rows(seed)
        is_paper = protocol == "paper"
        x = min_max(_fill(self.x, self.x)) if is_paper else _fill(self.x, self.x[parts[0]])
        train, validation, test = (self._samples(as_float(x[rows]), rows) for rows in parts)
        return Split(train, validation, test)

    def _split_rows(self, seed: int) -> ThreeParts:
        return random_split(len(self), units=self.units, seed=seed)

    @cached_property
    def units(self) -> Rows:
        """A number for every row, ``(n,)``: those with equal inputs, which stay together."""
        columns = self.x.reshape(len(self), -1).T
        return find_equal(map(as_bits, columns), map(as_bits, self.y.T), len(self)).units

    def _check(self) -> None:
        n = len(self.y) if self.y.ndim else 0
        if self.x.ndim < 2 or self.y.ndim != 2 or len(self.x) != n or not n:
            raise ArgumentError(
                "`x` and `y` must be (n, *features) and (n,) or (n, m) with equal n, not empty, "
                f"got {self.x.shape} and {self.y.shape}."
            )
        if self.groups is not None and self.groups.shape != (n,):
            raise ArgumentError(f"`groups` must be ({n},), got shape {self.groups.shape}.")
        if np.isinf(self.x).any():
            raise NonFiniteError("`x` must not be infinite; NaN stands for a missing value.")
        if not np.isfinite(self.y).all():
            bad = np.flatnonzero(~np.isfinite(self.y).all(axis=1))
            raise NonFiniteError(
                f"`y` must be finite, got NaN or infinity in {len(bad)} of {n} rows, row {bad[0]} "
                "first. Drop those rows."
            )


def _fill(x: Values, rows: Values) -> Values:
    """Replace the missing values of ``x`` by the mean of the present ones in some rows."""
    is_missing = np.isnan(x)
    if not is_missing.any():
        return x
    is_present = ~np.isnan(rows)
    total = np.where(is_present, rows, 0.0).sum(axis=0)
    mean = total / np.maximum(is_present.sum(axis=0), 1)
    return np.where(is_missing, mean, x)
