"""Ridge regression on a quadratic function ``f(u) = g u + u^T H u / 2`` through the origin.

Of its two equal forms the one with the smaller linear system is solved. Its entries are of order
one, so the ridge keeps it positive definite in float64 in any case.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

# Steps of more sizes than that are no samples of a sheet but a mistake in units, or in a
# neighborhood of nearly equal rows: the square of them would be many sizes away.
FAR = 3.0


def size_of(u: Tensor) -> Tensor:
    """Return the size of neighborhoods ``u`` ``(..., q, d)`` seen from the origin, ``(..., 1)``."""
    return _scale(u).squeeze(-1)


def within_reach(eta: Tensor, size: Tensor, reach: float = FAR) -> Tensor:
    """Return steps ``(..., d)``; one of more than ``reach`` sizes ``(..., 1)`` as one of a size.

    Example:
        >>> within_reach(torch.tensor([[3.0, 4.0], [3e9, 4e9]]), torch.tensor([[10.0], [10.0]]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    length = torch.linalg.vector_norm(eta, dim=-1, keepdim=True)
    return torch.where(length > reach * size, eta / length.where(length > 0, 1.0) * size, eta)


def weights(u: Tensor, eta: Tensor, ridge: float, order: int) -> Tensor:
    """Return the weights ``(..., p, q)`` of what is known at ``u`` in the prediction at ``eta``.

    ``g`` and ``H`` are not formed: for one prediction there is less to do without.
    """
    scale = _scale(u)
    u, eta = u / scale, eta.unsqueeze(-2) / scale
    basis, system, is_kernel = _system(u, ridge, order)
    if is_kernel:
        return _solve(system, _kernel(u, eta, order)).squeeze(-1)
    return (basis @ _solve(system, features(eta, order).mT)).squeeze(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """Quadratic functions for many predictions, one for each leading index.

    Attributes:
        size: What u is divided by, ``(..., 1)``.
        knots: Points with which inner products are the features, ``(..., q, d)``; None where the
            features are those of :func:`features`.
        factors: Of every feature, ``(..., columns, features)``.
    """

    size: Tensor
    knots: Tensor | None
    factors: Tensor


def fit_quadratic(u: Tensor, v: Tensor, ridge: float) -> Quadratic:
    """Fit functions from ``u`` ``(..., q, d)`` to ``v`` ``(..., q, columns)``."""
    scale = _scale(u)
    u = u / scale
    basis, system, is_kernel = _system(u, ridge, 2)
    factors = _solve(system, v if is_kernel else basis.mT @ v).mT
    return Quadratic(scale.squeeze(-1), u if is_kernel else None, factors)


def features_at(u: Tensor, size: Tensor, knots: Tensor | None) -> Tensor:
    """Return the features ``(..., features)`` of points ``(..., d)`` for :class:`Quadratic`."""
    u = (u / size).unsqueeze(-2)
    return (features(u, 2) if knots is None else _kernel(u, knots, 2)).squeeze(-2)


def features(u: Tensor, order: int) -> Tensor:
    """Return ``[u_a, u_a u_b for a <= b]``."""
    if order == 1:
        return u
    a, b = torch.triu_indices(u.shape[-1], u.shape[-1], device=u.device)
    return torch.cat([u, u[..., a] * u[..., b]], dim=-1)


def _scale(u: Tensor) -> Tensor:
    scale = u.square().sum(-1, keepdim=True).mean(-2, keepdim=True).sqrt()
    return scale.where(scale > 0, 1.0)


def _system(u: Tensor, ridge: float, order: int) -> tuple[Tensor, Tensor, bool]:
    """Return features, the triangular factor of the smaller system, and whether it is of kernels.

    For a system of kernels the features are never formed.
    """
    q, d = u.shape[-2:]
    is_kernel = (d if order == 1 else d * (d + 3) // 2) >= q
    basis = u if is_kernel else features(u, order)
    gram = _kernel(u, u, order) if is_kernel else basis.mT @ basis
    gram.diagonal(dim1=-2, dim2=-1).add_(q * ridge)
    return basis, torch.linalg.cholesky(gram), is_kernel


def _kernel(u: Tensor, w: Tensor, order: int) -> Tensor:
    """Return the inner products of the features of ``u`` and ``w`` without forming them."""
    inner = u @ w.mT
    if order == 1:
        return inner
    # The sum over all pairs (a, b) counts a != b twice.
    return inner + 0.5 * (inner.square() + u.square() @ w.square().mT)


def _solve(factor: Tensor, target: Tensor) -> Tensor:
    return torch.cholesky_solve(target, factor)
