r"""CEMS: new samples on a curved sheet fitted to a neighborhood (Kaufman and Azencot, ICML 2025).

Near a point the sheet is ``v = g u + u^T H u / 2``, with tangent coordinates ``u`` and normal ones
``v``. What ridge regression predicts is a weighted sum of the neighbors' own ``v_j``, so ``g`` and
``H`` need not be formed: one linear system per point gives the weights for the wanted ``u``. Where
many samples are drawn around the same points, their sheets are fitted once instead.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regaug._checks import check_choice, check_finite, check_floating, check_range, check_rows
from regaug.exceptions import ArgumentError
from regaug.functional.decomposition import ROUNDING, decompose
from regaug.functional.precision import cast
from regaug.functional.quadratic import (
    features_at,
    fit_quadratic,
    size_of,
    weights,
    within_reach,
)

# A smaller ridge could be lost in the rounding of a system that has no full rank.
SMALLEST_RIDGE = 1e-9


def cems(
    x: Tensor,
    y: Tensor,
    *,
    eta: Tensor,
    ridge: float = 1e-3,
    neighborhoods: Tensor | None = None,
    reach: float | None = None,
    order: int = 2,
    block: int = 2**25,
) -> tuple[Tensor, Tensor]:
    r"""Move every joint row ``[x, y]`` by ``eta`` along a curved sheet through it.

    The first ``d`` principal directions of a point's neighborhood span the tangent plane. With
    :math:`(u_j, v_j)` the tangent and normal parts of the neighbors *as seen from the point*,
    :math:`v = f(u) = g u + \tfrac{1}{2} u^T H u` is fitted by ridge regression, and the new row is
    the point :math:`+\ B\,[\eta;\, f(\eta)]`: ``eta`` = 0 is the identity. With
    :math:`s^2` the mean of :math:`|u_j|^2` over the :math:`q` neighbors and :math:`h_{ab}` the
    factor of :math:`u_a u_b, a \le b`, the fit minimizes

    .. math:: \tfrac{1}{q} \textstyle\sum_j |v_j - f(u_j)|^2
              + \mathrm{ridge}\,(s^2 |g|^2 + s^4 \sum_{a \le b} |h_{ab}|^2).

    The step is a constant to the gradient (the Jacobian is the identity): the derivative of the
    directions is not finite when neighbors coincide or singular values are equal.

    Args:
        x: Inputs of shape ``(..., n, d_x)``.
        y: Targets of shape ``(..., n, m)``.
        eta: Tangent coordinates of the new rows, in the units of the data, ``(..., n, d)``. The
            largest entry of each direction counts as positive; coordinates in directions in which
            the neighborhood has no extent are ignored.
        ridge: Strength of the ridge relative to the size of the neighborhood, at least 1e-9.
        neighborhoods: Joint rows around every point, ``(..., n, q, d_x + m)``; None takes the
            batch itself for all points (one tangent plane, a fit of its own for each point).
        reach: A step of more than so many times the size :math:`s` of the neighborhood is one of
            length :math:`s`: it is a mistake in units, and the quadratic function would lead
            anywhere. None takes every step as it is, as in the paper.
        order: 2 for the curved sheet, 1 without ``H`` (a plane through the point).
        block: Numbers held at a time in the linear systems of the points (256 MB).

    Returns:
        New inputs and targets; shapes, dtypes and device are kept.

    Example:
        >>> x = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
        >>> new_x, new_y = cems(x, x**2, eta=torch.full((9, 1), 0.1), ridge=1e-9)
        >>> torch.allclose(new_y, new_x**2, atol=1e-6)  # a parabola is followed exactly
        True
    """
    _check_arguments(x, y, eta, neighborhoods)
    ridge = check_range("ridge", ridge, SMALLEST_RIDGE)
    check_choice("order", order, (1, 2))
    if eta.shape[-1] == 0:
        return x, y

    with torch.no_grad():
        # Detached as well: forward mode goes on without gradients.
        points = torch.cat([x.detach().double(), y.detach().double()], dim=-1)
        steps = eta.detach().double()
        if neighborhoods is None:
            offsets = _offsets(points, points, steps, ridge, order, block, reach)
        else:  # every point is a batch of one that has its own neighborhood
            points, steps = points.unsqueeze(-2), steps.unsqueeze(-2)
            rows = neighborhoods.detach().double()
            offsets = _offsets(points, rows, steps, ridge, order, block, reach).squeeze(-2)
    return add_offsets(x, y, offsets)


def add_offsets(x: Tensor, y: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return inputs and targets with the joint ``offsets`` ``(..., n, d_x + m)`` added to them."""
    of_x, of_y = offsets.split_with_sizes((x.shape[-1], y.shape[-1]), -1)
    return cast(x.to(of_x.dtype) + of_x, x.dtype), cast(y.to(of_y.dtype) + of_y, y.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Sheets:
    """The sheets of some points: what :func:`cems` finds in every call, found once.

    Attributes:
        size: Of the neighborhoods along the tangent plane, ``(n, 1)``.
        knots: See :class:`regaug.functional.quadratic.Quadratic`, ``(n, q, d)``.
        directions: Joint directions for the coordinates in the tangent plane and for the features
            of these, ``(n, r, d + features)``.
    """

    size: Tensor
    knots: Tensor | None
    directions: Tensor

    def offsets(self, eta: Tensor, reach: float | None = None) -> Tensor:
        """Return how far each point moves, ``(n, r)``, for its step ``(n, d)``."""
        eta = eta if reach is None else within_reach(eta, self.size, reach)
        along = torch.cat([eta, features_at(eta, self.size, self.knots)], dim=-1)
        return (self.directions @ along.unsqueeze(-1)).squeeze(-1)

    def __getitem__(self, points: Tensor) -> "Sheets":
        knots = None if self.knots is None else self.knots[points]
        return Sheets(self.size[points], knots, self.directions[points])


def fit_sheets(points: Tensor, neighborhoods: Tensor, d: int, ridge: float) -> Sheets:
    """Fit the sheets of ``points`` ``(n, r)``, each to its own neighborhood ``(n, q, r)``.

    Where there are fewer than ``d`` principal directions the others are zero.
    """
    rows = neighborhoods.double()
    tangent = _tangent(rows - _center(rows), d)
    tangent = F.pad(tangent, (0, 0, 0, d - tangent.shape[-2]))
    apart = rows - points.double().unsqueeze(-2)
    along = apart @ tangent.mT
    normal = fit_quadratic(along, apart - along @ tangent, ridge)
    directions = torch.cat([tangent.mT, normal.factors], dim=-1)
    return Sheets(normal.size, normal.knots, directions)


def _offsets(
    points: Tensor,
    rows: Tensor,
    eta: Tensor,
    ridge: float,
    order: int,
    block: int,
    reach: float | None,
) -> Tensor:
    """Return how far ``points`` ``(..., p, r)``, which share the neighbors ``rows``, move."""
    center = _center(rows)
    points, rows = points - center, rows - center
    tangent = _tangent(rows, eta.shape[-1])
    eta = eta[..., : tangent.shape[-2]]
    at_points, at_rows = points @ tangent.mT, rows @ tangent.mT
    *leading, q, d = at_rows.shape  # the systems must fit in memory: nearly always one block
    count = max(block // (math.prod(leading) * q * max(q, d, 1)), 1)
    blocks = zip(torch.split(at_points, count, -2), torch.split(eta, count, -2), strict=True)
    found = []
    for part, steps in blocks:
        u = at_rows.unsqueeze(-3) - part.unsqueeze(-2)
        steps = steps if reach is None else within_reach(steps, size_of(u), reach)
        found.append((weights(u, steps, ridge, order), steps))
    shares, eta = (torch.cat(own, dim=-2) for own in zip(*found, strict=True))
    pull = shares @ rows - shares.sum(-1, keepdim=True) * points
    return eta @ tangent + pull - (pull @ tangent.mT) @ tangent


def _center(rows: Tensor) -> Tensor:
    # The first row goes first: equal rows then differ by exactly nothing, not by their rounding.
    first = rows[..., :1, :]
    return first + (rows - first).mean(dim=-2, keepdim=True)


def _tangent(rows: Tensor, d: int) -> Tensor:
    """Return the ``d`` leading right singular vectors of centered rows, those there are, as rows.

    One of a direction without extent would be arbitrary, so it is zero instead.
    """
    q, r = rows.shape[-2:]
    spectrum = decompose(rows)
    values, vectors = spectrum.values.flip(-1)[..., :d], spectrum.vectors.flip(-1)[..., :d]
    if q < r:  # these are left singular vectors; mapping them back squares their errors
        vectors = torch.linalg.qr(rows.mT @ vectors).Q
    largest = vectors.gather(-2, vectors.abs().argmax(-2, keepdim=True))
    has_extent = values > max(q, r) * ROUNDING * values[..., :1]
    return (vectors * (torch.where(largest < 0, -1.0, 1.0) * has_extent.unsqueeze(-2))).mT


def _check_arguments(x: Tensor, y: Tensor, eta: Tensor, neighborhoods: Tensor | None) -> None:
    check_rows(x, y)
    check_floating("eta", eta)
    if eta.shape[:-1] != x.shape[:-1]:
        raise ArgumentError(
            f"`eta` must be (..., n, d) with a step for every row of `x` {tuple(x.shape)}, "
            f"got {tuple(eta.shape)}."
        )
    check_finite(x=x, y=y, eta=eta)
    if neighborhoods is None:
        return
    check_floating("neighborhoods", neighborhoods)
    leading, columns, shape = x.shape[:-1], x.shape[-1] + y.shape[-1], neighborhoods.shape
    if len(shape) < 2 or shape[-2] < 1 or shape != (*leading, shape[-2], columns):
        raise ArgumentError(
            "`neighborhoods` must be (..., n, q, d_x + m) with at least one joint row around every "
            f"point, here ({', '.join(map(str, leading))}, q, {columns}), got {tuple(shape)}."
        )
    check_finite(neighborhoods=neighborhoods)
