"""The scale that models learn the targets in, and the range that predictions may take."""

from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from regaug.data.scaling import Scaler
from regaug.exceptions import ArgumentError

# How far beyond the targets that were seen a model may predict, in widths of their range; what
# that is worth on the atlas, ``python -m benchmarks.atlas.bounds`` shows.
BEYOND = 1.0


@dataclass(frozen=True, eq=False)
class TargetScale:
    """Standardized targets, or standardized logarithms of them.

    Attributes:
        scaler: Scale of the targets, or of their logarithms.
        log: Whether it is the logarithms.
    """

    scaler: Scaler = field(repr=False)
    log: bool = False

    @classmethod
    def fit(cls, y: Tensor, *, log: bool = False) -> Self:
        """Read the scale off the targets ``(n, m)`` that are trained on."""
        if log and not bool((y > 0).all()):
            raise ArgumentError(
                "`log` must be False for targets that are not all positive, got True."
            )
        return cls(Scaler.fit(y.log() if log else y), log)

    def transform(self, y: Tensor) -> Tensor:
        """Return targets ``(..., n, m)`` in this scale."""
        return self.scaler.transform(y.log() if self.log else y)

    def inverse(self, values: Tensor) -> Tensor:
        """Return predictions ``(..., n, m)`` in the targets' own units; keeps their order."""
        values = self.scaler.inverse(values)
        return values.exp() if self.log else values


@dataclass(frozen=True, eq=False)
class Bounds:
    """The range of what may be predicted: that of the training targets, and as much beyond.

    Nets and lines leave the range of what they have seen as far as they like, at rows that are far
    from all others. One such prediction can be worth more squared error than all others together.

    Attributes:
        low: Smallest value of each target, ``(m,)``, float64.
        high: Largest value.
    """

    low: Tensor
    high: Tensor

    @classmethod
    def fit(cls, y: Tensor, *, log: bool = False) -> Self:
        """Read the range off the targets ``(n, m)`` that are trained on; see :meth:`around`."""
        y = y.double()
        return cls.around(y.min(dim=0).values, y.max(dim=0).values, log=log)

    @classmethod
    def around(cls, least: Tensor, most: Tensor, *, log: bool = False) -> Self:
        """Return what may be predicted where the targets lie between these, ``(m,)``.

        With ``log`` the lower end is the range of the logarithms below: positive.
        """
        low = least - BEYOND * (most - least)
        if log:
            low = least * (least / most) ** BEYOND
        return cls(low, most + BEYOND * (most - least))

    def clamp(self, values: Tensor) -> Tensor:
        """Return predictions ``(..., n, m)`` within the range."""
        return torch.minimum(torch.maximum(values, self.low), self.high)
