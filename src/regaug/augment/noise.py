"""Gaussian noise on inputs and targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.base import Augmentation
from regaug.augment.numbers import Values
from regaug.functional.precision import cast, working_dtype


@dataclass(frozen=True, eq=False)
class NoiseParams:
    """What is added to inputs and targets, in their shapes; None where a batch is left as it is."""

    x: Tensor | None
    y: Tensor | None


class GaussianNoise(Augmentation[NoiseParams]):
    r"""Add independent noise from :math:`N(0, \sigma^2)` to inputs and targets.

    ``p``, ``append``, ``anneal``, ``total_steps`` and ``generator`` are options of every
    :class:`Augmentation`.

    Args:
        sigma: Standard deviation of the noise, at least 0, in units of the data: scale inputs and
            targets to order one first.

    Example:
        >>> x, y = torch.zeros(1000, 5), torch.zeros(1000)
        >>> new_x, new_y = GaussianNoise(sigma=0.1)(x, y)
        >>> round(new_x.std().item(), 2)
        0.1
    """

    neutral = NoiseParams(x=None, y=None)
    shown = ("sigma",)
    company = "none"

    def __init__(
        self,
        sigma: float = 0.01,
        *,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
        self.sigma = check_range("sigma", sigma, 0.0)

    def draw(self, x: Tensor, y: Tensor) -> NoiseParams:
        """Draw the noise."""
        return NoiseParams(self._draw_like(x), self._draw_like(y))

    def transform(self, x: Tensor, y: Tensor, params: NoiseParams) -> tuple[Tensor, Tensor]:
        """Add the noise."""
        return _add(x, params.x), _add(y, params.y)

    def transform_where(
        self, x: Tensor, y: Tensor, params: NoiseParams, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add the noise to the values that are there, and to the targets."""
        return torch.where(mask, _add(x, params.x), x), _add(y, params.y)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _NoiseAcross(parts, ahead=ahead)

    def _draw_like(self, batch: Tensor) -> Tensor:
        noise = _random.normals(batch.numel(), self.generator).mul_(self.sigma)
        return _as(noise.reshape(batch.shape), batch)


class _NoiseAcross(AtOnce[GaussianNoise]):
    """Noise on the batches of several runs."""

    def __init__(self, parts: Sequence[GaussianNoise], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._sigma = torch.tensor([part.sigma for part in parts], dtype=torch.float64)

    def counts(self, batches: RunBatches) -> int:
        """Return how many uniform numbers a batch needs: one for each of its values."""
        return batches.x[0].numel() + batches.y[0].numel()

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Add the noise to all batches."""
        runs, x, y = batches.runs, batches.x, batches.y
        noise = _random.normals_at(torch.from_numpy(uniform))
        noise.mul_(self._sigma[torch.from_numpy(runs), None])
        of_x, of_y = noise.split_with_sizes((x[0].numel(), y[0].numel()), 1)
        of_x, of_y = _as(of_x.reshape(x.shape), x), _as(of_y.reshape(y.shape), y)
        for number, part in self.last_batches(runs):
            part.params = NoiseParams(of_x[number], of_y[number])
        return _add(x, of_x), _add(y, of_y)


def _as(noise: Tensor, batch: Tensor) -> Tensor:
    # Half precision would round small noise away before it is added, so it gets float32.
    return noise.to(batch.device, working_dtype(batch))


def _add(batch: Tensor, noise: Tensor | None) -> Tensor:
    return batch if noise is None else cast(batch + noise, batch.dtype)
