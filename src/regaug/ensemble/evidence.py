"""Rows that a model has not learned: what it can be looked at with."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regaug.data.base import Rows
from regaug.data.splits import SplitRule

PUT_ASIDE = "rows that were put aside before anything was learned"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows with their targets that a model has not learned.

    Attributes:
        x: What the model's preparation makes of them, ``(n, d)``, float64.
        y: Targets in their own units, ``(n, m)``, float64.
        groups: Label of every row's group, ``(n,)``; None if there are no groups.
        rule: How they were chosen; by time they are in its order.
        made_intervals: Whether the model's intervals were measured on them.
        where: What rows they are, in words.
    """

    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    groups: NDArray[np.str_] | None = field(default=None, repr=False)
    rule: SplitRule = "random"
    made_intervals: bool = True
    where: str = PUT_ASIDE

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Rows) -> Self:
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, x=self.x[rows], y=self.y[rows], groups=groups)

    def some(self, most: int) -> Self:
        """Return so many rows at most, evenly spaced."""
        if len(self) <= most:
            return self
        return self.take(np.linspace(0, len(self) - 1, most).astype(np.int64))
