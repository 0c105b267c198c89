"""Scales: fitted on training rows, applied to all, and taken back from predictions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regaug._checks import check_finite, check_floating
from regaug.augment.limits import join_masks
from regaug.augment.structures import Batch, list_tensors, map_tensors
from regaug.data.base import THREE, Mask, Split
from regaug.data.several import in_memory
from regaug.exceptions import ArgumentError

Values = NDArray[np.float64]
# A positive target more skewed than that may be fitted on the log scale.
_SKEWED = 2.0
# From here on the squares of numbers, or their sums, leave the range of float64; beyond the second,
# their differences.
_LARGE, _LARGEST = 1e140, 1e307
_SMALL = 1e-100  # what is smaller than that has squares that are zero


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and standard deviation of every column, to subtract and divide by.

    A column is an index of the last axis: a column of a table, a target, a channel of a series; or
    of another axis, as the channels of images.

    Attributes:
        mean: What is subtracted, ``(d,)``.
        std: What is divided by, ``(d,)``; 1 for a column that is constant.
        axis: The axis of the columns.

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
    axis: int = -1

    @classmethod
    def fit(cls, x: Tensor, *, axis: int = -1, mask: Tensor | None = None) -> Self:
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
            return cls._fit_some(x.masked_fill(~mask, 0.0), mask, axis)
        check_finite(x=x)
        last = x.detach().cpu().double().movedim(axis, -1)
        columns = last.reshape(-1, last.shape[-1]).numpy()
        mean, std = _moments(columns)
        # Rounding gives a constant column a tiny spread that would blow up other rows.
        is_constant = (columns.min(axis=0) == columns.max(axis=0)) | (std == 0)
        return cls(mean=mean, std=np.where(is_constant, 1.0, std), axis=axis)

    @classmethod
    def _fit_some(cls, x: Tensor, mask: Tensor, axis: int) -> Self:
        check_finite(x=x)
        columns, is_there = (
            own.detach().cpu().movedim(axis, -1).reshape(-1, x.shape[axis])
            for own in (x.double(), mask)
        )
        count = is_there.sum(dim=0).clamp(min=1)
        mean = columns.sum(dim=0) / count
        apart = (columns - mean).masked_fill(~is_there, 0.0)
        std = (apart.square().sum(dim=0) / count).sqrt()
        low, high = (columns.masked_fill(~is_there, end) for end in (torch.inf, -torch.inf))
        is_constant = (low.amin(dim=0) >= high.amax(dim=0)) | (std == 0)
        return cls(mean.numpy(), std.masked_fill(is_constant, 1.0).numpy(), axis)

    def transform(self, x: Tensor) -> Tensor:
        """Return ``(x - mean) / std``, in the dtype of ``x``."""
        mean, std = self._like(x)
        return ((x.double() - mean) / std).to(x.dtype)

    def inverse(self, x: Tensor) -> Tensor:
        """Return ``x * std + mean``, in the dtype of ``x``: the way back from :meth:`transform`."""
        mean, std = self._like(x)
        return (x.double() * std + mean).to(x.dtype)

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain numbers, for a JSON file; the scale of a table, whose axis is the last."""
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
        shape = [1] * x.ndim
        if not -x.ndim <= self.axis < x.ndim or x.shape[self.axis] != len(self.mean):
            axis = "its last axis" if self.axis == -1 else f"axis {self.axis}"
            raise ArgumentError(
                f"`x` must have {len(self.mean)} columns in {axis}, as the rows the scale "
                f"was fitted on, got shape {tuple(x.shape)}."
            )
        shape[self.axis] = len(self.mean)
        mean, std = torch.from_numpy(self.mean), torch.from_numpy(self.std)
        return mean.to(x.device).reshape(shape), std.to(x.device).reshape(shape)


@dataclass(frozen=True, eq=False)
class Scalers:
    """The scales of several tensors, in their order; None leaves a tensor as it is.

    Attributes:
        own: A scale for each tensor.
    """

    own: tuple[Scaler | None, ...]

    @classmethod
    def fit(cls, x: Batch) -> Self:
        """Read the scales off training rows.

        Whole numbers stay as they are: they are codes. So do zeros and ones: they are a mask.
        """
        return cls(tuple(fit_inputs(tensor) for _, tensor in list_tensors("x", x)))

    def transform(self, x: Batch) -> Any:
        """Return the tensors in their scales, in the form of ``x``."""
        return self._each(x, Scaler.transform)

    def inverse(self, x: Batch) -> Any:
        """Return the tensors as they were: the way back from :meth:`transform`."""
        return self._each(x, Scaler.inverse)

    def _each(self, x: Batch, act: Callable[[Scaler, Tensor], Tensor]) -> Any:
        scalers = iter(self.own)

        def scaled(tensor: Tensor) -> Tensor:
            scaler = next(scalers)
            if scaler is None:
                return tensor
            is_flat = tensor.ndim == 1
            new = act(scaler, tensor[:, None] if is_flat else tensor)
            return new[:, 0] if is_flat else new

        return map_tensors(scaled, x)


def _moments(columns: Values) -> tuple[Values, Values]:
    """Return mean and standard deviation of every column, whatever becomes of squares and sums."""
    largest = np.abs(columns).max(axis=0)
    if largest.max() > _LARGEST:
        place = int(largest.argmax())
        raise ArgumentError(
            f"`x` must have numbers of at most {_LARGEST:g} in size, or differences of them are "
            f"infinite, got {largest[place]:g} in column {place}. Divide the column by a number."
        )
    is_usual = (largest == 0) | ((largest > _SMALL) & (largest < _LARGE))
    if is_usual.all():
        return columns.mean(axis=0), columns.std(axis=0)
    unit = np.where(is_usual, 1.0, largest)
    columns = columns / unit
    return columns.mean(axis=0) * unit, columns.std(axis=0) * unit


def fit_inputs(x: Tensor, *, keep_flags: bool = True) -> Scaler | None:
    """Return the scale of one tensor of inputs; None if it is to be left as it is.

    That of a table or a series is by column of the last axis, that of images and videos
    ``(n, channels, ...)`` by channel. With ``keep_flags`` zeros and ones stay what they are.
    """
    if not x.is_floating_point() or (keep_flags and bool(((x == 0) | (x == 1)).all())):
        return None
    return Scaler.fit(x[:, None] if x.ndim == 1 else x, axis=1 if x.ndim > 3 else -1)


@dataclass(frozen=True, eq=False)
class StandardizedSplit(Split):
    """A split in a scale of its own, with the way back.

    Attributes:
        x_scaler: Scale of the inputs; None if they are as they were.
        y_scaler: Scale of the targets, or of their logarithms.
        log: Whether the scale is that of the logarithms.
    """

    x_scaler: Scaler | Scalers | None = None
    y_scaler: Scaler = field(kw_only=True)
    log: bool = field(default=False, kw_only=True)

    def restore(self, prediction: Tensor) -> Tensor:
        """Return predictions ``(n, m)``, or targets, in the units of the data set."""
        values = self.y_scaler.inverse(prediction)
        return values.exp() if self.log else values


def standardize(split: Split, *, log: bool = False) -> StandardizedSplit:
    """Give inputs and targets mean 0 and standard deviation 1 over the training part.

    Inputs in memory are scaled by column of the last axis, those of images and videos
    ``(n, channels, ...)`` by channel. Whole numbers are codes and stay as they are. Of several
    tensors each has its own scale, and zeros and ones, such as a mask, stay. Inputs that are read
    when they are asked for (images, windows of a series) are left to the data set, which scales
    them as it reads; then only the targets are standardized. A split that has a scale already, as
    those of series do, is returned as it is.

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
    x_scaler, inputs = _scale_inputs(split)
    y_scaler = Scaler.fit(split.train.y.log() if log else split.train.y)
    new = {
        name: replace(part, x=inputs[name], y=y_scaler.transform(part.y.log() if log else part.y))
        for name, part in split.parts.items()
    }
    train, validation, test = (new.pop(name) for name in THREE)
    parts, pooled = (train, validation, test, new), split.pooled
    scaled = StandardizedSplit(
        *parts,
        x_scaler,
        y_scaler=y_scaler,
        log=log,
        pooled=pooled,
        pairs_within=split.pairs_within,
        mask=split.mask,
        blocks=split.blocks,
    )
    return scaled if split.mask is None else _keep_missing(split, scaled, split.mask)


def _keep_missing(split: Split, scaled: StandardizedSplit, mask: Mask) -> StandardizedSplit:
    """Return a standardized split whose scale is that of the values that are there.

    Those that are not stay as they were, so that a network still knows them. Inputs that are
    several tensors keep the scales that they have. Training rows know their inputs as they were.
    """
    x, parts = split.train.x, scaled.parts
    if isinstance(scaled.x_scaler, Scaler):
        x = x[:]
        scaler = Scaler.fit(x, axis=scaled.x_scaler.axis, mask=join_masks(x, mask(x)))
        scaled = replace(scaled, x_scaler=scaler)
        for name, part in parts.items():
            own = split.parts[name].x[:]
            is_there = join_masks(own, mask(own))
            parts[name] = replace(part, x=torch.where(is_there, scaler.transform(own), own))
    if parts["train"].x is not split.train.x:
        parts["train"] = replace(parts["train"], unscaled=x)
    train, validation, test = (parts.pop(name) for name in THREE)
    return replace(scaled, train=train, validation=validation, test=test, more=parts)


def _scale_inputs(split: Split) -> tuple[Scaler | Scalers | None, dict[str, Any]]:
    """Return the scale of the inputs, if they are to have one, and those of every part in it."""
    held = {name: in_memory(part.x) for name, part in split.parts.items()}
    train = held["train"]
    if train is None or any(x is None for x in held.values()):  # some would have another scale
        return None, {name: part.x for name, part in split.parts.items()}
    scaler: Scaler | Scalers | None
    if isinstance(train, Tensor):
        scaler = fit_inputs(train, keep_flags=False)
    else:
        scaler = Scalers.fit(train.form)
    if scaler is None:
        return None, dict(held)
    forms: dict[str, Any] = {name: getattr(x, "form", x) for name, x in held.items()}
    return scaler, {name: scaler.transform(form) for name, form in forms.items()}


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
