"""What a ridge regression says: the net learns what is left."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

# Times the number of training rows.
PENALTIES = torch.logspace(-4, 4, 17, dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class LinearPart:
    """A linear map of inputs, in the units that a net learns in.

    Attributes:
        slope: ``(d, m)``, float64.
        offset: ``(m,)``, float64.
    """

    slope: Tensor
    offset: Tensor

    @classmethod
    def fit(cls, x: Tensor, y: Tensor) -> Self:
        r"""Fit it to training rows, with the penalty that leave-one-out chooses.

        With the decomposition :math:`X = U S V^\top` of the centered inputs the residual of a row
        that was left out is that of the fit to all rows divided by :math:`1 - h`, where :math:`h`
        is the row's own share in its prediction: one decomposition serves all penalties.
        """
        x, y = x.double(), y.double()
        mean, offset, n = x.mean(dim=0), y.mean(dim=0), len(x)
        u, s, vt = torch.linalg.svd(x - mean, full_matrices=False)
        uy = u.T @ (y - offset)
        shrunk = s.square() / (s.square() + n * PENALTIES[:, None])  # (penalties, r)
        left = (y - offset) - u @ (shrunk[:, :, None] * uy)  # (penalties, n, m)
        own = shrunk @ u.square().T + 1.0 / n  # the mean is fitted too
        alone = left / (1.0 - own).clamp(min=1e-9).unsqueeze(2)
        # A penalty for each target: columns that one of them needs may harm another.
        best = alone.square().mean(dim=1).argmin(dim=0)
        factors = torch.where(s > 0, shrunk[best] / s.clamp(min=1e-300), 0.0).T  # (r, m)
        slope = vt.T @ (factors * uy)
        return cls(slope, offset - mean @ slope)

    def __call__(self, x: Tensor) -> Tensor:
        """Return what it says of some rows, ``(n, m)``, float64."""
        return x.double() @ self.slope + self.offset

    def state(self) -> dict[str, Tensor]:
        """Return it as the weights of :attr:`regaug.models.MLP.skip`."""
        return {"skip.weight": self.slope.T.float(), "skip.bias": self.offset.float()}
