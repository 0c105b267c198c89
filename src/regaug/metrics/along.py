"""Errors along the target: by tenth of its range, and at its ends, where rows are rare."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from regaug._checks import check_choice
from regaug.metrics.functions import counted

Focus = Literal["high", "low", "both"]
FOCUSES: tuple[Focus, ...] = ("high", "low", "both")
_TENTHS = 10
# Rows on each side that lie beyond the range that is cut into tenths, and count with its ends: of
# many rows a single wild one is no tenth of its own, and one in fifty is.
_BEYOND = 0.01


class Tenths(NamedTuple):
    """What is known of the ten tenths of the target's range, ``(..., 10)`` each, float64.

    Attributes:
        n: Targets in it.
        at: Their mean; NaN if there are none.
        mse: Mean squared error; NaN if there are none.
    """

    n: Tensor
    at: Tensor
    mse: Tensor


def by_tenth(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tenths:
    """Return the errors by tenth of the target's range; see :func:`regaug.metrics.rmse`.

    Ten equally wide parts lead from the 1st to the 99th percentile of the targets that count, from
    the lowest to the highest of up to 100; what lies beyond is in the first and the last one.

    Example:
        >>> target = torch.arange(21.0)[:, None]
        >>> found = by_tenth(target + 1.0, target)
        >>> found.n.tolist()[:3], found.at.tolist()[:3], found.mse.tolist()[:3]
        ([2.0, 2.0, 2.0], [0.5, 2.5, 4.5], [1.0, 1.0, 1.0])
    """
    prediction, target, counts = _flat(prediction, target, rows)
    ordered, total = _in_order(target, counts)
    first = (_BEYOND * (total - 1)).long()
    low, high = (ordered.gather(-1, place.clamp(min=0)) for place in (first, total - 1 - first))
    # Where the range is nothing, what lies on it and below is the first tenth, the rest the last.
    share = ((target - low) / (high - low)).nan_to_num(0.0)
    place = (share * _TENTHS).clamp(0, _TENTHS - 1).long()
    squares = (prediction - target).square().masked_fill(~counts, 0.0)
    empty = target.new_zeros(*target.shape[:-1], _TENTHS)
    n, at, errors = (
        empty.scatter_add(-1, place, values)
        for values in (counts.to(target), target.masked_fill(~counts, 0.0), squares)
    )
    return Tenths(n, at / n, errors / n)


def balanced_rmse(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the RMSE in which every tenth of the target's range counts alike.

    The root of the mean, over the tenths that have rows, of their mean squared errors; see
    :func:`by_tenth` and :func:`regaug.metrics.rmse`.

    Example:
        >>> target = torch.tensor([[0.0]] * 99 + [[4.0]])  # wrong by 4 where it is rare
        >>> round(balanced_rmse(torch.zeros(100, 1), target).item() ** 2, 6)
        8.0
    """
    found = by_tenth(prediction, target, rows=rows)
    is_empty = found.n == 0
    total = found.mse.masked_fill(is_empty, 0.0).sum(dim=-1)
    return (total / (~is_empty).sum(dim=-1)).sqrt()


def tail_rmse(
    prediction: Tensor, target: Tensor, *, rows: Tensor | None = None, focus: Focus = "both"
) -> Tensor:
    """Return the RMSE of the tenth of the rows with the highest targets, the lowest, or both.

    Rows with the same target as the last of them count too; see :func:`regaug.metrics.rmse`.

    Example:
        >>> target = torch.arange(20.0)[:, None]
        >>> tail_rmse(torch.full((20, 1), 18.5), target, focus="high").item()
        0.5
    """
    prediction, target, counts = _flat(prediction, target, rows)
    ordered, total = _in_order(target, counts)
    size = (total + _TENTHS - 1) // _TENTHS
    is_low = target <= ordered.gather(-1, (size - 1).clamp(min=0))
    is_high = target >= ordered.gather(-1, total - size)
    # A run that has diverged is not good at the ends, wherever it shows.
    is_broken = (counts & ~prediction.isfinite()).any(dim=-1)
    ends = {"high": is_high, "low": is_low, "both": is_high | is_low}
    counts = counts & ends[check_choice("focus", focus, tuple(ends))]
    squares = (prediction - target).square().masked_fill(~counts, 0.0)
    found = (squares.sum(dim=-1) / counts.sum(dim=-1)).sqrt()
    return found.masked_fill(is_broken, torch.nan)


def _flat(prediction: Tensor, target: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return both as ``(..., n m)`` in float64, several targets as one, and which of them count."""
    prediction, target, _ = counted(prediction, target, rows)
    counts = torch.ones_like(target, dtype=torch.bool)
    if rows is not None:
        counts = rows[..., None].expand(target.shape)
    return prediction.flatten(-2), target.flatten(-2), counts.flatten(-2)


def _in_order(target: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the targets that count in ascending order, the others last, and their number."""
    ordered = target.masked_fill(~counts, torch.inf).sort(dim=-1).values
    return ordered, counts.sum(dim=-1, keepdim=True)
