"""SMOGN: new rows where targets are rare (Branco, Torgo and Ribeiro, 2017)."""

import torch
from torch import Tensor

from regaug._checks import check_finite, check_floating, check_rows
from regaug.exceptions import ArgumentError
from regaug.functional.precision import working_dtype

# The whiskers of a box plot end at most so many interquartile ranges beyond the box.
_WHISKER = 1.5


def relevance(y: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return how rare targets are by their box plot, at the low and at the high end, from 0 to 1.

    It is 0 up to the median, 1 from the end of a whisker on, and rises between them as
    :math:`s^2 (3 - 2 s)`, the cubic that is level at both; a whisker ends with the last target
    within 1.5 interquartile ranges of the box. An end has rare targets only if there are some
    beyond its whisker.

    Args:
        y: Targets of shape ``(n, m)``, each column by itself.

    Returns:
        Two tensors of the shape of ``y``.

    Example:
        >>> y = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [50.0]])
        >>> low, high = relevance(y)
        >>> low.sum().item(), [round(value, 2) for value in high.flatten().tolist()]
        (0.0, [0.0, 0.0, 0.0, 0.26, 1.0, 1.0])
    """
    check_floating("y", y)
    if y.ndim == 0 or y.numel() == 0:
        raise ArgumentError(f"`y` must be (n, ...) and not empty, got shape {tuple(y.shape)}.")
    check_finite(y=y)
    ends, rows = [], y.to(working_dtype(y))
    for side in (-rows, rows):
        first, middle, third = torch.quantile(side, side.new_tensor([0.25, 0.5, 0.75]), dim=0)
        is_beyond = side > third + _WHISKER * (third - first)
        whisker = side.masked_fill(is_beyond, -torch.inf).amax(dim=0)
        share = ((side - middle) / (whisker - middle)).nan_to_num(0.0).clamp(0.0, 1.0)
        rises = share.square() * (3.0 - 2.0 * share)
        ends.append(torch.where(is_beyond.any(dim=0), rises, 0.0).to(y.dtype))
    return ends[0], ends[1]


def smogn(
    x: Tensor,
    y: Tensor,
    *,
    source: Tensor,
    partner: Tensor,
    reach: Tensor,
    u: Tensor,
    noise: tuple[Tensor, Tensor],
    sigma: float,
) -> tuple[Tensor, Tensor]:
    r"""Interpolate rows with near ones, and add noise where the partner is far.

    With :math:`z = (x, y)`, a new row is :math:`z_i + u (z_j - z_i)` if the inputs of its partner
    :math:`j` are nearer than ``reach``, and :math:`z_i + \min(\text{reach}, \sigma) \epsilon`
    otherwise, with :math:`\epsilon` from N(0, 1).

    Args:
        x: Inputs of shape ``(n, d)``, standardized.
        y: Targets of shape ``(n, m)``, standardized.
        source: Which rows the new ones start from, ``(k,)``.
        partner: Which rows they are interpolated with, ``(k,)``.
        reach: How far a partner may be from each row, ``(n,)``.
        u: Shares of the way to the partner, ``(k,)``.
        noise: Numbers from N(0, 1) for inputs and targets, ``(k, d)`` and ``(k, m)``.
        sigma: Standard deviation of the noise, where ``reach`` is no smaller.

    Returns:
        New inputs and targets, ``(k, d)`` and ``(k, m)``.

    Example:
        >>> x, y = torch.tensor([[0.0], [1.0], [9.0]]), torch.tensor([[0.0], [2.0], [7.0]])
        >>> near = {"source": torch.tensor([0, 0]), "partner": torch.tensor([1, 2])}
        >>> drawn = {"u": torch.tensor([0.5, 0.5]), "noise": (torch.ones(2, 1), torch.zeros(2, 1))}
        >>> smogn(x, y, **near, **drawn, reach=torch.full((3,), 2.0), sigma=0.1)
        (tensor([[0.5000],
                [0.1000]]), tensor([[1.],
                [0.]]))
    """
    check_rows(x, y)
    apart = torch.linalg.vector_norm(x[partner] - x[source], dim=1)
    is_near = (apart < reach[source])[:, None]
    width = reach[source].clamp(max=sigma)[:, None]
    new_x, new_y = (
        torch.where(is_near, z[source] + u[:, None] * (z[partner] - z[source]), z[source] + own)
        for z, own in ((x, width * noise[0]), (y, width * noise[1]))
    )
    return new_x, new_y
