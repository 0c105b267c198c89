"""What is known of rows that are predicted: their targets, where the table has them, and groups."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug.data.arrays import ArrayData
from regaug.data.tabular.discovery import read_columns
from regaug.data.tabular.values import read_levels, read_numbers
from regaug.metrics import Scores, evaluate

NO_GROUP = "(missing)"


@dataclass(frozen=True, eq=False)
class Truth:
    """The targets of some rows, and their groups.

    Attributes:
        y: Targets in their own units, ``(n, m)``, float64; NaN where one is not known.
        groups: Label of every row's group, ``(n,)``; None if there are no groups.
    """

    y: Tensor = field(repr=False)
    groups: NDArray[np.str_] | None = field(default=None, repr=False)

    @classmethod
    def find(cls, source: Any, targets: Sequence[str], group: str | None) -> Self | None:
        """Return what a frame, or data, knows of its rows; None if it lacks a target.

        A value that cannot be read as a number is not known.
        """
        if isinstance(source, ArrayData):
            labels = None if source.groups is None else source.groups.astype(np.str_)
            is_it = source.y.shape[1] == len(targets)
            return cls(torch.from_numpy(np.array(source.y)), labels) if is_it else None
        columns = {str(name): name for name in getattr(source, "columns", ())}
        if not columns.keys() >= set(targets):
            return None
        values = [_read(source, columns[name]) for name in targets]
        y = torch.from_numpy(np.array(np.column_stack(values), dtype=np.float64))
        if not len(y) or group is None or group not in columns:
            return cls(y)
        codes, texts = read_levels(source[columns[group]])
        return cls(y, np.append(texts, NO_GROUP)[codes].astype(np.str_))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which rows have all targets, ``(n,)``."""
        known: NDArray[np.bool_] = self.y.isfinite().all(dim=1).numpy()
        return known

    def score(self, mean: Tensor) -> Scores | None:
        """Score predictions ``(n, m)`` of the rows that are known; None if there are none."""
        rows = self.is_known
        if not rows.any():
            return None
        groups = None if self.groups is None else self.groups[rows]
        return evaluate(mean[rows], self.y[rows], groups)

    def coverage(self, low: Tensor, high: Tensor) -> tuple[float, ...] | None:
        """Return the share of the known rows whose target lies in its interval, for each target."""
        rows = self.is_known
        if not rows.any():
            return None
        inside = (low[rows] <= self.y[rows]) & (self.y[rows] <= high[rows])
        shares: list[float] = inside.double().mean(dim=0).tolist()
        return tuple(shares)


def _read(frame: Any, name: Any) -> NDArray[np.float64]:
    """Return the numbers of a column, also where all are written as ``"$1,300"`` is."""
    plain = read_numbers(frame[name]).values
    if np.isfinite(plain).any():
        return plain
    return read_numbers(read_columns(frame[[name]]).frame[name]).values
