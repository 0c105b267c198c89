"""A cut through the singular directions of a matrix: factors on either side, and their derivative.

The derivative of the projector on one side has the factors ``1 / (w_i - w_j)``, with ``w`` the
eigenvalues of the Gram matrix, for pairs across the cut only.
"""

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from regaug.functional.decomposition import ROUNDING

Factor = float | Tensor
Number = TypeVar("Number", float, Tensor)

# A gap (w_i - w_j) below this share of w_i has no usable derivative, so 1 / (w_i - w_j) is bounded
# there. Well-posed cuts (s_k - s_{k+1} at least 1e-3 s_k) are wider by far and are not touched.
_NARROWEST_GAP = 1e-5
_TINY = torch.finfo(torch.float64).tiny


@dataclass(slots=True)
class Cut:
    """What happens to the directions on either side of a cut.

    The function is itself a gradient (of a sum of squared singular values with factors), so its
    derivative is symmetric: the same serves for the gradient and for forward mode.
    """

    contrast: Factor  # how far the factor of the directions in the basis is from that of the others
    outside: Factor  # the factor of the others
    is_wide: bool  # whether they are left singular vectors

    def combine(self, a: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply each side by its factor; return the coordinates in the basis as well."""
        raise NotImplementedError

    def derivative(
        self,
        along: Tensor,
        a: Tensor,
        basis: Tensor,
        others: Tensor,
        values: Tensor,
        coordinates: Tensor,
    ) -> Tensor:
        """Return the derivative of :meth:`combine` along a matrix."""
        raise NotImplementedError


@dataclass(slots=True)
class OneCut(Cut):
    """One cut for all matrices: everything is kept as narrow as the basis, the narrower side."""

    is_leading: bool  # whether the basis is the leading side
    k: int  # number of leading directions
    levels: list[float] | None  # all eigenvalues, for one matrix only

    def combine(self, a: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply each side by its factor; return the coordinates in the basis as well."""
        if self.is_wide:
            coordinates = basis.mT @ a
            return _add_product(a, basis, coordinates, self.outside, self.contrast), coordinates
        coordinates = a @ basis
        return _add_product(a, coordinates, basis.mT, self.outside, self.contrast), coordinates

    def derivative(
        self,
        along: Tensor,
        a: Tensor,
        basis: Tensor,
        others: Tensor,
        values: Tensor,
        coordinates: Tensor,
    ) -> Tensor:
        """Return the derivative along a matrix.

        With N the basis, O the other directions, c their factors and H the matrix, it is for a wide
        ``a`` c_O H + (c_N - c_O) (N N^T H + (W N^T + N W^T) a), where
        W = O ((O^T (H a^T + a H^T) N) / gaps).
        """
        if self.is_wide:
            of_along = basis.mT @ along
            turn = _add(along @ coordinates.mT, a, of_along.mT)
            turn = others @ (others.mT @ turn).div_(self._signed_gaps(values))
            left = torch.cat([basis, turn], -1)
            right = torch.cat([_add(of_along, turn.mT, a), coordinates], -2)
        else:
            of_along = along @ basis
            turn = _add(along.mT @ coordinates, a.mT, of_along)
            turn = others @ (others.mT @ turn).div_(self._signed_gaps(values))
            left = torch.cat([_add(of_along, a, turn), coordinates], -1)
            right = torch.cat([basis, turn], -1).mT
        return _add_product(along, left, right, self.outside, self.contrast)

    def _signed_gaps(self, values: Tensor) -> Tensor:
        """Return w_j - w_i for j in the basis and i in the others, bounded away from zero."""
        rank, k, levels = values.shape[-1], self.k, self.levels
        high, low = sides(values, k)
        if self.is_leading:
            gaps = high.unsqueeze(-2) - low.unsqueeze(-1)
        else:
            gaps = low.unsqueeze(-2) - high.unsqueeze(-1)
        if k == 0 or k == rank:
            return gaps  # there are no pairs
        if levels is not None:
            narrowest = _narrowest_gap(levels[rank - k], levels[-1], rank)
            if levels[rank - k] - levels[rank - k - 1] >= narrowest:
                return gaps
            return gaps.clamp_(min=narrowest) if self.is_leading else gaps.clamp_(max=-narrowest)
        bound = _narrowest_gap(high[..., :1], values[..., -1:], rank)[..., None]
        return torch.maximum(gaps, bound) if self.is_leading else torch.minimum(gaps, -bound)


@dataclass(slots=True)
class ManyCuts(Cut):
    """A cut for every matrix of a stack: the basis are all directions, in ascending order.

    What is leading cannot be a slice here, so each direction has its factor.
    """

    k: Tensor  # number of leading directions, (...)

    def combine(self, a: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply each side by its factor; return the coordinates in the basis as well."""
        contrasts = self._contrasts(basis)
        if self.is_wide:
            coordinates = basis.mT @ a
            return _add_product(a, basis, contrasts.mT * coordinates, self.outside), coordinates
        coordinates = a @ basis
        return _add_product(a, contrasts * coordinates, basis.mT, self.outside), coordinates

    def derivative(
        self,
        along: Tensor,
        a: Tensor,
        basis: Tensor,
        others: Tensor,
        values: Tensor,
        coordinates: Tensor,
    ) -> Tensor:
        """Return the derivative along a matrix.

        With V all directions, C the coordinates V^T a, c the outside factor, d the contrasts, H the
        matrix and K = V^T H, it is for a wide ``a`` c H + V (d K + (Q * (K C^T + C K^T)) C). Q is
        the contrast over the gap for pairs across the cut, and zero for others (the formula of
        Daleckii and Krein for a function that is constant on either side).
        """
        contrasts, quotients = self._contrasts(basis), self._quotients(values).to(a)
        if self.is_wide:
            of_along = basis.mT @ along
            turn = of_along @ coordinates.mT
            turn = quotients * (turn + turn.mT)
            return _add_product(
                along, basis, _add(contrasts.mT * of_along, turn, coordinates), self.outside
            )
        of_along = along @ basis
        turn = coordinates.mT @ of_along
        turn = quotients * (turn + turn.mT)
        new = _add(contrasts * of_along, coordinates, turn)
        return _add_product(along, new, basis.mT, self.outside)

    def _is_leading(self, rank: int) -> Tensor:
        """Tell which of the ascending directions are on the leading side, ``(..., rank)``."""
        return torch.arange(rank, device=self.k.device) >= rank - self.k[..., None]

    def _contrasts(self, basis: Tensor) -> Tensor:
        """Return the contrast of every leading direction and 0 for the others, a row."""
        return self.contrast * self._is_leading(basis.shape[-1]).to(basis.dtype)[..., None, :]

    def _quotients(self, values: Tensor) -> Tensor:
        rank, is_leading = values.shape[-1], self._is_leading(values.shape[-1])
        edge = values.gather(-1, (rank - self.k[..., None]).clamp(max=rank - 1))
        bound = _narrowest_gap(edge, values[..., -1:], rank)[..., None]
        gaps = torch.maximum((values.unsqueeze(-2) - values.unsqueeze(-1)).abs(), bound)
        is_across = is_leading.unsqueeze(-2) != is_leading.unsqueeze(-1)
        return self.contrast * (is_across / gaps)


def _add_product(
    base: Tensor, left: Tensor, right: Tensor, beta: Factor, alpha: Factor | None = None
) -> Tensor:
    """Return ``beta * base + alpha * left @ right``, with as few passes over it as can be."""
    if base.ndim == 2 and isinstance(beta, float) and isinstance(alpha, float):
        return torch.addmm(base, left, right, beta=beta, alpha=alpha)
    return _add(beta * base, left if alpha is None else alpha * left, right)


def _add(base: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return ``base + left @ right``."""
    if base.ndim == 2:
        return torch.addmm(base, left, right)
    return torch.baddbmm(base, left, right) if base.ndim == 3 else base.add_(left @ right)


def sides(columns: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the ``k`` leading (last) ones of the ascending columns, and the others."""
    trailing, leading = columns.split_with_sizes((columns.shape[-1] - k, k), -1)
    return leading, trailing


def _narrowest_gap(edge: Number, largest: Number, rank: int) -> Number:
    """Return the gap that counts as zero next to the eigenvalue at the edge of the cut."""
    return _NARROWEST_GAP * edge + ROUNDING * rank * largest + _TINY
