"""Gaussian noise on inputs and targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_choice, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.numbers import Values
from regaug.augment.whole import Categories, TakesWhole, WholeColumns
from regaug.functional.precision import cast, working_dtype

Targets = Literal["joint", "keep"]
TARGETS: tuple[Targets, ...] = ("joint", "keep")


@dataclass(frozen=True, eq=False)
class NoiseParams:
    """What is added to inputs and targets, in their shapes; None where they are left as they are.

    ``factor`` is what the inputs are multiplied by before; None for 1.
    """

    x: Tensor | None
    y: Tensor | None
    factor: Tensor | None = None


class GaussianNoise(TakesWhole[NoiseParams]):
    r"""Add independent noise from :math:`N(0, \sigma^2)` to inputs and targets.

    ``p``, ``append``, ``anneal``, ``total_steps`` and ``generator`` are options of every
    :class:`Augmentation`.

    Args:
        sigma: Standard deviation of the noise, at least 0, in units of the data: scale inputs and
            targets to order one first.
        relative: Inputs are multiplied by factors from :math:`N(1, \mathrm{relative}^2)` before,
            each value by its own; at least 0.
        targets: ``"joint"`` adds noise to the targets too, ``"keep"`` leaves them.
        categories: ``"mix"``: all columns are numbers. ``"whole"``: columns that belong together,
            such as those of a category, stay as they are in the row itself, the nearest real one.
            Which these are a training is told by its table, and :meth:`fit` by ``blocks``; else
            every column stands for itself.

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
        relative: float = 0.0,
        targets: Targets = "joint",
        categories: Categories = "mix",
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
        self.relative = check_range("relative", relative, 0.0)
        self.targets = check_choice("targets", targets, TARGETS)
        self._choose_categories(categories)

    def draw(self, x: Tensor, y: Tensor) -> NoiseParams:
        """Draw the noise."""
        of_x = self._draw_like(x, self.sigma)
        of_y = self._draw_like(y, self.sigma) if self.targets == "joint" else None
        factor = self._draw_like(x, self.relative).add_(1.0) if self.relative else None
        return NoiseParams(of_x, of_y, factor)

    def transform(self, x: Tensor, y: Tensor, params: NoiseParams) -> tuple[Tensor, Tensor]:
        """Add the noise."""
        new_x = self.keep_whole(x, _add(x, params.x, params.factor))
        return new_x, _add(y, params.y)

    def transform_where(
        self, x: Tensor, y: Tensor, params: NoiseParams, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Add the noise to the values that are there, and to the targets."""
        new_x, new_y = self.transform(x, y, params)
        return torch.where(mask, new_x, x), new_y

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _NoiseAcross(parts, ahead=ahead)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.targets, self.relative > 0.0)

    def _draw_like(self, batch: Tensor, sigma: float) -> Tensor:
        noise = _random.normals(batch.numel(), self.generator).mul_(sigma)
        return _as(noise.reshape(batch.shape), batch)


class _NoiseAcross(AtOnce[GaussianNoise]):
    """Noise on the batches of several runs."""

    def __init__(self, parts: Sequence[GaussianNoise], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._sigma = torch.tensor([part.sigma for part in parts], dtype=torch.float64)
        self._relative = torch.tensor([part.relative for part in parts], dtype=torch.float64)
        self._whole = WholeColumns(parts)

    def counts(self, batches: RunBatches) -> int:
        """Return how many uniform numbers a batch needs: one for each value of noise or factor."""
        return sum(self._sizes(batches))

    def _sizes(self, batches: RunBatches) -> tuple[int, int, int]:
        """Return how many numbers the noise of inputs and of targets needs, and the factors."""
        part, of_x, of_y = self.parts[0], batches.x[0].numel(), batches.y[0].numel()
        return of_x, of_y if part.targets == "joint" else 0, of_x if part.relative else 0

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Add the noise to all batches."""
        runs, x, y = batches.runs, batches.x, batches.y
        chosen = torch.from_numpy(runs)
        noise = _random.normals_at(torch.from_numpy(uniform))
        all_x, all_y, all_factors = noise.split_with_sizes(self._sizes(batches), 1)
        of_x = _as((all_x * self._sigma[chosen, None]).reshape(x.shape), x)
        of_y, factor = None, None
        if all_y.numel():
            of_y = _as((all_y * self._sigma[chosen, None]).reshape(y.shape), y)
        if all_factors.numel():
            factor = _as((all_factors * self._relative[chosen, None]).reshape(x.shape), x).add_(1.0)
        for number, part in self.last_batches(runs):
            own = (None if values is None else values[number] for values in (of_x, of_y, factor))
            part.params = NoiseParams(*own)
        new_x = self._whole.keep(batches, _add(x, of_x, factor).flatten(2))
        return new_x.reshape(x.shape), _add(y, of_y)


def _as(noise: Tensor, batch: Tensor) -> Tensor:
    # Half precision would round small noise away before it is added, so it gets float32.
    return noise.to(batch.device, working_dtype(batch))


def _add(batch: Tensor, noise: Tensor | None, factor: Tensor | None = None) -> Tensor:
    if noise is None:
        return batch
    return cast((batch if factor is None else batch * factor) + noise, batch.dtype)
