"""Gaussian noise on inputs and targets."""

from dataclasses import dataclass

import torch
from torch import Tensor

from regaug._checks import check_range
from regaug.augment.base import Augmentation
from regaug.functional.precision import cast, working_dtype


@dataclass(frozen=True, eq=False)
class NoiseParams:
    """What is added to inputs and targets, in their shapes; None where a batch is left as it is."""

    x: Tensor | None
    y: Tensor | None


class GaussianNoise(Augmentation[NoiseParams]):
    r"""Add independent noise from :math:`N(0, \sigma^2)` to inputs and targets.

    ``p``, ``append``, ``anneal`` and ``generator`` are options of every :class:`Augmentation`.

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

    def __init__(
        self,
        sigma: float = 0.01,
        *,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p=p, append=append, anneal=anneal, generator=generator)
        self.sigma = check_range("sigma", sigma, 0.0)

    def draw(self, x: Tensor, y: Tensor) -> NoiseParams:
        """Draw the noise."""
        return NoiseParams(self._draw_like(x), self._draw_like(y))

    def transform(self, x: Tensor, y: Tensor, params: NoiseParams) -> tuple[Tensor, Tensor]:
        """Add the noise."""
        return _add(x, params.x), _add(y, params.y)

    def _draw_like(self, batch: Tensor) -> Tensor:
        # Half precision would round small noise away before it is added, so it gets float32.
        dtype = working_dtype(batch)
        device = self.generator.device
        noise = torch.randn(batch.shape, generator=self.generator, device=device, dtype=dtype)
        return self.sigma * noise.to(batch.device)


def _add(batch: Tensor, noise: Tensor | None) -> Tensor:
    return batch if noise is None else cast(batch + noise, batch.dtype)
