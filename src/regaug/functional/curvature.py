r"""CEMS: new samples on a curved sheet fitted to a neighborhood (Kaufman and Azencot, ICML 2025).

Near a point the sheet is ``v = g u + u^T H u / 2``, with tangent coordinates ``u`` and normal ones
``v``. What ridge regression predicts is a weighted sum of the neighbors' own ``v_j``, so ``g`` and
``H`` are never formed: one linear system per point gives the weights for the wanted ``u``.
"""

import math

import torch
from torch import Tensor

from regaug._checks import check_choice, check_finite, check_floating, check_range, check_rows
from regaug.exceptions import ArgumentError
from regaug.functional.decomposition import ROUNDING, decompose
from regaug.functional.precision import cast

# A smaller ridge could be lost in the rounding of a system that has no full rank.
SMALLEST_RIDGE = 1e-9


def cems(
    x: Tensor,
    y: Tensor,
    *,
    eta: Tensor,
    ridge: float = 1e-3,
    neighborhoods: Tensor | None = None,
    tangents: Tensor | None = None,
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
        tangents: What :func:`tangent_planes` gives for the neighborhoods and at least ``d``, if it
            is known already; finding them takes most of the time.
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
            offsets = _offsets(points, points, steps, ridge, order, block)
        else:  # every point is a batch of one that has its own neighborhood
            points, steps = points.unsqueeze(-2), steps.unsqueeze(-2)
            rows = neighborhoods.detach().double()
            offsets = _offsets(points, rows, steps, ridge, order, block, tangents).squeeze(-2)
    of_x, of_y = offsets.split_with_sizes((x.shape[-1], y.shape[-1]), -1)
    return cast(x.double() + of_x, x.dtype), cast(y.double() + of_y, y.dtype)


def tangent_planes(neighborhoods: Tensor, d: int) -> Tensor:
    """Return the ``d`` principal directions of neighborhoods ``(..., q, r)``, those there are.

    They are the rows of ``(..., d, r)`` in float64, orthonormal, the largest entry of each
    positive; zeros where a neighborhood has no extent.
    """
    rows = neighborhoods.double()
    return _tangent(rows - _center(rows), d)


def _offsets(
    points: Tensor,
    rows: Tensor,
    eta: Tensor,
    ridge: float,
    order: int,
    block: int,
    tangent: Tensor | None = None,
) -> Tensor:
    """Return how far ``points`` ``(..., p, r)``, which share the neighbors ``rows``, move."""
    center = _center(rows)
    points, rows = points - center, rows - center
    if tangent is None:
        tangent = _tangent(rows, eta.shape[-1])
    tangent = tangent[..., : eta.shape[-1], :]
    eta = eta[..., : tangent.shape[-2]]
    at_points, at_rows = points @ tangent.mT, rows @ tangent.mT
    *leading, q, d = at_rows.shape  # the systems must fit in memory: nearly always one block
    count = max(block // (math.prod(leading) * q * max(q, d, 1)), 1)
    blocks = zip(torch.split(at_points, count, -2), torch.split(eta, count, -2), strict=True)
    around = ((at_rows.unsqueeze(-3) - part.unsqueeze(-2), steps) for part, steps in blocks)
    weights = torch.cat([_weights(u, steps, ridge, order) for u, steps in around], dim=-2)
    pull = weights @ rows - weights.sum(-1, keepdim=True) * points
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


def _weights(u: Tensor, eta: Tensor, ridge: float, order: int) -> Tensor:
    """Return the weights ``(..., p, q)`` of the neighbors at ``u`` in the prediction at ``eta``.

    Of the two equal forms of ridge regression the one with the smaller system is solved. Its
    entries are of order one, so the ridge keeps it positive definite in float64 in any case.
    """
    q, d = u.shape[-2:]
    scale = u.square().sum(-1, keepdim=True).mean(-2, keepdim=True).sqrt()
    scale = scale.where(scale > 0, 1.0)
    u, eta = u / scale, eta.unsqueeze(-2) / scale
    n_features = d if order == 1 else d * (d + 3) // 2
    if n_features < q:
        features, target = _features(u, order), _features(eta, order)
        return (features @ _solve(features.mT @ features, target.mT, q * ridge)).squeeze(-1)
    return _solve(_kernel(u, u, order), _kernel(u, eta, order), q * ridge).squeeze(-1)


def _features(u: Tensor, order: int) -> Tensor:
    """Return ``[u_a, u_a u_b for a <= b]``."""
    if order == 1:
        return u
    a, b = torch.triu_indices(u.shape[-1], u.shape[-1], device=u.device)
    return torch.cat([u, u[..., a] * u[..., b]], dim=-1)


def _kernel(u: Tensor, w: Tensor, order: int) -> Tensor:
    """Return the inner products of the features of ``u`` and ``w`` without forming them."""
    inner = u @ w.mT
    if order == 1:
        return inner
    # The sum over all pairs (a, b) counts a != b twice.
    return inner + 0.5 * (inner.square() + u.square() @ w.square().mT)


def _solve(gram: Tensor, target: Tensor, ridge: float) -> Tensor:
    gram.diagonal(dim1=-2, dim2=-1).add_(ridge)
    return torch.cholesky_solve(target, torch.linalg.cholesky(gram))


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
