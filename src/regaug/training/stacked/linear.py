"""The ridge regression that comes before a net, which learns what it leaves."""

import torch
from torch import Tensor

from regaug.training.baselines.linear import Linear

# Times the number of training rows.
PENALTIES = torch.logspace(-4, 4, 17, dtype=torch.float64)


def fit_linear(x: Tensor, y: Tensor) -> Linear:
    r"""Fit it to training rows ``(n, d)`` and ``(n, m)``; leaving one out chooses the penalty.

    No validation rows are needed, as for the baseline: they choose the epoch of the net.

    With the decomposition :math:`X = U S V^\top` of the centered inputs the residual of a row that
    was left out is that of the fit to all rows divided by :math:`1 - h`, where :math:`h` is the
    row's own share in its prediction: one decomposition serves all penalties.
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
    return Linear(slope, offset - mean @ slope)


def skip_weights(linear: Linear) -> dict[str, Tensor]:
    """Return it as the weights of :attr:`regaug.models.MLP.skip`, by name."""
    return {"skip.weight": linear.slope.T.float(), "skip.bias": linear.offset.float()}
