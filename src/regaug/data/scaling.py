"""Scales: fitted on training rows, applied to all, and taken back from predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regaug._checks import check_finite, check_floating
from regaug.augment.limits import join_masks
from regaug.data.base import THREE, Mask, Part, Split
from regaug.exceptions import ArgumentError

Values = NDArray[np.float64]
# A positive target more skewed than that may be fitted on the log scale.
_SKEWED = 2.0


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and standard deviation of every column, to subtract and divide by.

    A column is an index of the last axis: a column of a table, a target, a channel of a series.

    Attributes:
        mean: What is subtracted, ``(d,)``.
        std: What is divided by, ``(d,)``; 1 for a column that is constant.

    Example:
        >>> scaler = Scaler.fit(torch.tensor([[1.0, 7.0], [3.0, 7.0]]))
        >>> scaler.transform(torch.tensor([[2.0, 7.0], [4.0, 8.0]]))
        tensor([[0., 0.],
                [2., 1.]])
        >>> scaler.inverse(torch.tensor([[2.0, 1.0]]))
        tensor([[4., 8.]])
    """

    mean: Values
    std: Values

    @classmethod
    def fit(cls, x: Tensor, *, mask: Tensor | None = None) -> Self:
        """Read the scale off training rows ``(n, *features)``, floating point, without NaN.

        With ``mask``, in the shape of ``x``, only values at which it is True count; a column
        without any stays as it is.
        """
        check_floating("x", x)
        if x.ndim < 2 or x.numel() == 0:
            raise ArgumentError(
                f"`x` must be (n, *features) and not empty, got shape {tuple(x.shape)}."
            )
        if mask is not None:
            return cls._fit_some(x.masked_fill(~mask, 0.0), mask)
        check_finite(x=x)
        columns = x.detach().cpu().double().reshape(-1, x.shape[-1]).numpy()
        std = columns.std(axis=0)
        # Rounding gives a constant column a tiny spread that would blow up other rows.
        is_constant = (columns.min(axis=0) == columns.max(axis=0)) | (std == 0)
        return cls(mean=columns.mean(axis=0), std=np.where(is_constant, 1.0, std))

    @classmethod
    def _fit_some(cls, x: Tensor, mask: Tensor) -> Self:
        check_finite(x=x)
        columns = x.detach().cpu().double().reshape(-1, x.shape[-1])
        is_there = mask.cpu().reshape(-1, x.shape[-1])
        count = is_there.sum(dim=0).clamp(min=1)
        mean = columns.sum(dim=0) / count
        apart = (columns - mean).masked_fill(~is_there, 0.0)
        std = (apart.square().sum(dim=0) / count).sqrt()
        low, high = (columns.masked_fill(~is_there, end) for end in (torch.inf, -torch.inf))
        is_constant = (low.amin(dim=0) >= high.amax(dim=0)) | (std == 0)
        return cls(mean.numpy(), std.masked_fill(is_constant, 1.0).numpy())

    def transform(self, x: Tensor) -> Tensor:
        """Return ``(x - mean) / std``, in the dtype of ``x``."""
        mean, std = self._like(x)
        return ((x.double() - mean) / std).to(x.dtype)

    def inverse(self, x: Tensor) -> Tensor:
        """Return ``x * std + mean``, in the dtype of ``x``: the way back from :meth:`transform`."""
        mean, std = self._like(x)
        return (x.double() * std + mean).to(x.dtype)

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain numbers, for a JSON file."""
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Sequence[float]]) -> Self:
        """Return the scaler that :meth:`to_dict` wrote down."""
        mean, std = (np.array(numbers[key], dtype=np.float64) for key in ("mean", "std"))
        if mean.ndim != 1 or mean.shape != std.shape or not bool((std > 0).all()):
            raise ArgumentError(
                "`numbers` must hold a mean and a positive std for every column, got "
                f"{dict(numbers)!r}."
            )
        return cls(mean, std)

    def _like(self, x: Tensor) -> tuple[Tensor, Tensor]:
        check_floating("x", x)
        if x.ndim < 1 or x.shape[-1] != len(self.mean):
            raise ArgumentError(
                f"`x` must have {len(self.mean)} columns in its last axis, as the rows the scale "
                f"was fitted on, got shape {tuple(x.shape)}."
            )
        mean, std = torch.from_numpy(self.mean), torch.from_numpy(self.std)
        return mean.to(x.device), std.to(x.device)


@dataclass(frozen=True, eq=False)
class StandardizedSplit(Split):
    """A split in a scale of its own, with the way back.

    Attributes:
        x_scaler: Scale of the inputs; None if they are as they were.
        y_scaler: Scale of the targets, or of their logarithms.
        log: Whether the scale is that of the logarithms.
    """

    x_scaler: Scaler | None = None
    y_scaler: Scaler = field(kw_only=True)
    log: bool = field(default=False, kw_only=True)

    def restore(self, prediction: Tensor) -> Tensor:
        """Return predictions ``(n, m)``, or targets, in the units of the data set."""
        values = self.y_scaler.inverse(prediction)
        return values.exp() if self.log else values


def standardize(split: Split, *, log: bool = False) -> StandardizedSplit:
    """Give inputs and targets mean 0 and standard deviation 1 over the training part.

    Inputs that are read when they are asked for (images, windows of a series) are left to the data
    set, which scales them as it reads; then only the targets are standardized. A split that has a
    scale already, as those of series do, is returned as it is.

    Args:
        split: Three parts without NaN.
        log: Take the logarithm of the targets first, which must be positive: for targets that
            spread over several powers of ten.

    Example:
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> split = standardize(make_manifold("sine").split())
        >>> bool(split.train.y.mean().abs() < 1e-6)
        True
    """
    if isinstance(split, StandardizedSplit):
        return split
    if log and any(bool((part.y <= 0).any()) for part in split.parts.values()):
        raise ArgumentError("`log` must be False for targets that are not all positive, got True.")
    x = split.train.x
    x_scaler = Scaler.fit(x) if isinstance(x, Tensor) else None
    y_scaler = Scaler.fit(split.train.y.log() if log else split.train.y)

    def scaled(part: Part) -> Part:
        x, y = part.x, part.y.log() if log else part.y
        if x_scaler is not None and isinstance(x, Tensor):
            x = x_scaler.transform(x)
        return replace(part, x=x, y=y_scaler.transform(y))

    train, validation, test = map(scaled, (split.train, split.validation, split.test))
    more = {name: scaled(part) for name, part in split.more.items()}
    parts, pooled = (train, validation, test, more), split.pooled
    scaled_split = StandardizedSplit(
        *parts,
        x_scaler,
        y_scaler=y_scaler,
        log=log,
        pooled=pooled,
        pairs_within=split.pairs_within,
        mask=split.mask,
    )
    return scaled_split if split.mask is None else _keep_missing(split, scaled_split, split.mask)


def _keep_missing(split: Split, scaled: StandardizedSplit, mask: Mask) -> StandardizedSplit:
    """Return a standardized split whose scale is that of the values that are there.

    Those that are not stay as they were, so that a network still knows them. Inputs that are
    several tensors keep the scales that they have. Training rows know their inputs as they were.
    """
    x, parts = split.train.x, scaled.parts
    if all(isinstance(part.x, Tensor) for part in parts.values()):
        x = torch.as_tensor(x[:])
        scaler = Scaler.fit(x, mask=join_masks(x, mask(x)))
        scaled = replace(scaled, x_scaler=scaler)
        for name, part in parts.items():
            own = torch.as_tensor(split.parts[name].x[:])
            is_there = join_masks(own, mask(own))
            parts[name] = replace(part, x=torch.where(is_there, scaler.transform(own), own))
    if parts["train"].x is not split.train.x:
        parts["train"] = replace(parts["train"], unscaled=x)
    train, validation, test = (parts.pop(name) for name in THREE)
    return replace(scaled, train=train, validation=validation, test=test, more=parts)


def is_skewed(y: Tensor) -> bool:
    """Tell whether targets ``(n, m)`` are positive and so skewed that logarithms may fit better."""
    if bool((y <= 0).any()):
        return False
    centered = y.double() - y.double().mean(dim=0)
    skew = centered.pow(3).mean(dim=0) / centered.square().mean(dim=0).clamp(min=1e-300).pow(1.5)
    return bool((skew > _SKEWED).all())


def min_max(x: ArrayLike) -> Values:
    """Scale every column to [0, 1] over all rows, as the paper's scripts do.

    Test rows take part in it, so this is for comparing with the paper only; :func:`standardize`
    looks at training rows alone. A constant column becomes 0.
    """
    values = np.asarray(x, dtype=np.float64)
    low = values.min(axis=0)
    width = values.max(axis=0) - low
    scaled: Values = (values - low) / np.where(width > 0, width, 1.0)
    return scaled
