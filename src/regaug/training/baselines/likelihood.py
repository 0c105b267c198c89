"""The kernel of a Gaussian process, and how likely it makes the training targets."""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

from regaug.training.baselines.base import Array

# Variance of the noise at least, of targets with variance 1. With the bounds below it keeps the
# Cholesky decomposition of 2,000 rows far from failing.
FLOOR = 1e-6
# Logarithms of the variances of the smooth part, the noise and the linear part: bounds and starts.
BOUNDS = ((-7.0, 5.0), (math.log(1e-8), 2.0), (-9.0, 5.0))
START = (0.0, math.log(0.1), math.log(0.1))
# Beyond so many lengths all is equally far, and squares cannot overflow.
_FAR = 1e6
_ROOT = math.sqrt(5.0)


@dataclass(frozen=True, eq=False)
class Kernel:
    r"""Covariance of targets: smooth, linear, and noise.

    :math:`k(a, b) = s\,(1 + \sqrt5 r + \frac53 r^2)\,e^{-\sqrt5 r} + \frac{t}{d}\,a^\top b`, with
    :math:`r^2 = \sum_j (a_j - b_j)^2 / \ell_j^2`: Matern 5/2, with a length for every column.

    Attributes:
        length: How far a column must change for the target to change, ``(d,)``, positive.
        smooth: Variance of the smooth part.
        noise: Variance of the noise, which counts between a row and itself only.
        linear: Variance of the linear part.
    """

    length: Tensor = field(repr=False)
    smooth: float
    noise: float
    linear: float

    @classmethod
    def of(cls, logs: Array) -> Self:
        """Return the kernel from logarithms: of the lengths, then of the three variances."""
        smooth, noise, linear = np.exp(logs[-3:]).tolist()
        return cls(torch.from_numpy(np.exp(logs[:-3])), smooth, noise + FLOOR, linear)

    def covariance(self, x: Tensor) -> Tensor:
        """Return the covariance ``(n, n)`` of the rows of ``x`` with each other, noise included."""
        found = self.smooth * matern(x, x, self.length)
        found.addmm_(x, x.T, alpha=self.linear / x.shape[1])
        found.diagonal().add_(self.noise)
        return found


def matern(a: Tensor, b: Tensor, length: Tensor) -> Tensor:
    """Return the Matern 5/2 correlation of the rows of ``a`` with those of ``b``."""
    squares = _squares(a / length, b / length)
    r = squares.sqrt().mul_(_ROOT)
    return squares.mul_(5 / 3).add_(r).add_(1.0).mul_(r.neg_().exp_())


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Return the squared distances of the rows of ``a`` and ``b``."""
    a, b = (values.clamp(-_FAR, _FAR) for values in (a, b))
    norms = [values.square().sum(dim=1) for values in (a, b)]
    # Rounding may leave a little less than nothing.
    return torch.addmm(norms[0][:, None] + norms[1], a, b.T, alpha=-2.0).clamp_(min=0.0)


class Posterior:
    r"""What is minimized to find a kernel: :math:`-\log p(y \mid \theta) - \log p(\theta)`.

    The parameters are logarithms, as :meth:`Kernel.of` takes them. Their priors are normal: the
    lengths are around a common one, the noise, weakly, around a tenth of the variance.

    Args:
        x: Inputs ``(n, d)``, standardized.
        y: One target ``(n,)``, standardized.
        center: Logarithm that those of the lengths are around.
        spread: Standard deviation of that prior.
    """

    def __init__(self, x: Tensor, y: Tensor, *, center: float, spread: float) -> None:
        self.x, self.y = x, y
        self.center, self.spread = center, spread
        self._linear = x @ x.T / x.shape[1]

    def __call__(self, logs: Array) -> tuple[float, Array]:
        """Return the value and its gradient."""
        kernel = Kernel.of(logs)
        x = self.x / kernel.length
        squares = _squares(x, x)
        r = squares.sqrt().mul_(_ROOT)
        decay = torch.exp(-r)
        slope = r.add_(1.0).mul_(decay)  # (1 + r) e^-r, of which the gradient is made
        smooth = torch.addcmul(slope, squares, decay, value=5 / 3)
        covariance = kernel.smooth * smooth
        covariance.add_(self._linear, alpha=kernel.linear).diagonal().add_(kernel.noise)
        factor = torch.linalg.cholesky(covariance)
        weights = torch.cholesky_solve(self.y[:, None], factor)
        value = 0.5 * (self.y @ weights[:, 0]) + factor.diagonal().log().sum()
        # d value / d covariance, twice; the lengths act through the squared distances.
        change = torch.cholesky_inverse(factor).addmm_(weights, weights.T, alpha=-1.0)
        pull = slope.mul_(change).mul_(kernel.smooth * 5 / 3)
        gradient = np.empty_like(logs)
        gradient[:-3] = (pull.sum(dim=1) @ x.square() - (x * (pull @ x)).sum(dim=0)).numpy()
        gradient[-3] = 0.5 * kernel.smooth * smooth.mul_(change).sum()
        gradient[-2] = 0.5 * (kernel.noise - FLOOR) * change.diagonal().sum()
        gradient[-1] = 0.5 * kernel.linear * change.mul_(self._linear).sum()
        return value.item() + self._prior(logs, gradient), gradient

    def _prior(self, logs: Array, gradient: Array) -> float:
        """Add the gradient of the priors, and return their part of the value."""
        lengths = (logs[:-3] - self.center) / self.spread
        noise = (logs[-2] - START[1]) / 3.0
        gradient[:-3] += lengths / self.spread
        gradient[-2] += noise / 3.0
        return float(0.5 * (lengths @ lengths + noise**2))
