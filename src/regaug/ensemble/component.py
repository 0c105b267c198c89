"""What a fitted model is made of: groups of nets and of baselines, each with its share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from regaug.ensemble.scale import Bounds, TargetScale
from regaug.training.predictor import Predictor
from regaug.training.settings import Settings

# Rows that are predicted at a time: each of them by every single model.
_BLOCK = 2**14


class Models(Protocol):
    """Single models that differ in the rows they were trained on, or in their seeds."""

    @property
    def scale(self) -> TargetScale:
        """The scale that they predict in."""

    def __len__(self) -> int: ...

    def __call__(self, x: Tensor) -> Tensor:
        """Return what every one of them predicts, ``(models, n, m)``, float64, in their scale."""


@dataclass(frozen=True, eq=False)
class Predictors:
    """A baseline, fitted several times.

    Attributes:
        predictors: What predicts.
        scale: The scale that they predict in.
    """

    predictors: tuple[Predictor, ...] = field(repr=False)
    scale: TargetScale

    def __len__(self) -> int:
        return len(self.predictors)

    def __call__(self, x: Tensor) -> Tensor:
        """Return what every one of them predicts, ``(models, n, m)``, float64, in their scale."""
        # A tree must see the very numbers that it was fitted on, which were float32.
        most = torch.finfo(torch.float32).max
        x = x.clamp(-most, most).float().double()
        return torch.stack([predictor(x) for predictor in self.predictors])


@dataclass(frozen=True, eq=False)
class Component:
    """Models of one method or baseline, and what share of the prediction is theirs.

    Attributes:
        method: The method that the nets were trained with, or the name of the baseline.
        share: Their weight together, in (0, 1]; each of them has the same.
        models: The nets, or the baselines.
        settings: What the nets were trained with; None for a baseline.
    """

    method: str
    share: float
    models: Models
    settings: Settings | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether it is no group of nets."""
        return self.settings is None


def predict_all(
    components: Sequence[Component], x: Tensor, *, bounds: Bounds
) -> tuple[Tensor, Tensor]:
    """Return what every single model predicts, in the targets' own units, and its weight.

    ``(models, n, m)`` and ``(models,)``, for inputs ``(n, d)``.
    """
    values = [bounds.clamp(own.models.scale.inverse(own.models(x))) for own in components]
    counts = [len(own.models) for own in components]
    pairs = zip(components, counts, strict=True)
    weights = [own.share / n for own, n in pairs for _ in range(n)]
    return torch.cat(values), torch.tensor(weights, dtype=torch.float64)


def mean_and_spread(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted mean and standard deviation over the models, of ``(models, n, m)``."""
    weights = weights.reshape(-1, 1, 1)
    mean = (weights * values).sum(dim=0)
    apart = values - mean
    largest = float(apart.abs().max()) if apart.numel() else 0.0
    # Squares of very large numbers are infinite, those of very small ones zero.
    unit = 1.0 if 1e-140 < largest < 1e140 or largest == 0.0 else largest
    return mean, (weights * (apart / unit).square()).sum(dim=0).sqrt() * unit


def combine(
    components: Sequence[Component], x: Tensor, *, bounds: Bounds, scale: TargetScale
) -> tuple[Tensor, Tensor, Tensor]:
    """Return mean and spread in the targets' own units, and the spread in another scale.

    Each ``(n, m)``. The rows are taken in blocks, as there may be a hundred models.
    """
    found = []
    for block in torch.split(x, _BLOCK):
        values, weights = predict_all(components, block, bounds=bounds)
        _, scaled = mean_and_spread(scale.transform(values), weights)
        found.append((*mean_and_spread(values, weights), scaled))
    mean, spread, scaled = (torch.cat(parts) for parts in zip(*found, strict=True))
    return mean, spread, scaled
