"""Intervals that hold whatever the errors look like: split conformal prediction."""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from regaug._checks import check_range
from regaug.exceptions import ArgumentError


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far off an ensemble was on rows that nothing else was done with.

    The error expected of a row is ``sqrt(floor^2 + spread^2)``, with the spread of the members at
    that row: where they disagree the interval is wider. A score is the error that occurred over
    the error expected. If new rows are like the calibration rows, a new score exceeds the one of
    rank ``ceil((n + 1) level)`` among the ``n`` known ones with probability 1 - ``level`` at most
    (Vovk et al. 2005; Lei et al. 2018). All of it in the scale of the nets, so that the intervals
    of a target that is fitted by its logarithm are wider where the target is larger.

    Attributes:
        floor: Error expected where the members agree, ``(m,)``.
        scores: Scores of the calibration rows, ``(n, m)``, each column ascending.
    """

    floor: Tensor
    scores: Tensor

    @classmethod
    def fit(cls, mean: Tensor, spread: Tensor, target: Tensor, *, floor: Tensor) -> Self:
        """Score predictions of the calibration rows, with the members' spread, all ``(n, m)``."""
        scores = (target - mean).abs() / torch.hypot(floor, spread)
        return cls(floor, scores.sort(dim=0).values)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def highest(self) -> float:
        """The highest level that there are enough rows for."""
        return len(self) / (len(self) + 1)

    def half_width(self, spread: Tensor, level: float) -> Tensor:
        """Return how far the intervals of rows with such a spread ``(n, m)`` reach to either side.

        ``level`` is the share of new rows whose target lies in their interval, for each target by
        itself; in (0, 1), and at most :attr:`highest`.
        """
        level, n = check_range("interval", level, 0.0, 1.0, open_low=True), len(self)
        rank = math.ceil((n + 1) * level - 1e-9)  # 0.9 * 10 is to be 9
        if rank > n:
            highest = math.floor(1000 * self.highest) / 1000
            raise ArgumentError(
                f"`interval` must be at most {highest:g} for a model that was calibrated on {n} "
                f"rows, got {level:g}. Fit it on more rows."
            )
        return self.scores[rank - 1] * torch.hypot(self.floor, spread)
