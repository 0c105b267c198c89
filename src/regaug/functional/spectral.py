r"""Scale one side of a matrix's singular values, fast and with a gradient that stays finite.

The textbook way decomposes ``a = U diag(s) V^T`` and multiplies three matrices back together. Only
the projector on the leading singular directions is needed, and the eigenvectors of the smaller
Gram matrix give it: one symmetric eigenproblem of the smaller side and two matrix products.

The gradient of that projector has the factors ``1 / (w_i - w_j)``, with ``w`` the eigenvalues, for
pairs *across the cut* only. Equal or zero singular values on one side of it, which make the
gradient of an SVD NaN, never enter.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regaug._checks import check_choice, check_floating, check_integer, check_per_matrix
from regaug.exceptions import ArgumentError, RegaugError
from regaug.functional.decomposition import (
    ROUNDING,
    Spectrum,
    decompose,
    decompose_by_svd,
    is_resolved,
    is_wide,
)
from regaug.functional.precision import cast

Scale = Literal["trailing", "leading"]
Gradient = Literal["exact", "frozen"]
Factor = float | Tensor
Number = TypeVar("Number", float, Tensor)

# A gap (w_i - w_j) below this share of w_i has no usable derivative, so 1 / (w_i - w_j) is bounded
# there. Well-posed cuts (s_k - s_{k+1} at least 1e-3 s_k) are wider by far and are not touched.
_NARROWEST_GAP = 1e-5
_TINY = torch.finfo(torch.float64).tiny


def scale_singular_values(
    a: Tensor,
    *,
    lam: float | Tensor,
    k: int | Tensor,
    scale: Scale = "trailing",
    gradient: Gradient = "exact",
    spectrum: Spectrum | None = None,
) -> Tensor:
    r"""Multiply the singular values on one side of a cut by ``lam``.

    With :math:`A = U \,\mathrm{diag}(s)\, V^T` the result is
    :math:`U \,\mathrm{diag}(s_1, \dots, s_k, \lambda s_{k+1}, \dots)\, V^T` for
    ``scale="trailing"``; ``"leading"`` multiplies the first ``k`` values instead. The gradient with
    respect to ``a`` is finite for every finite ``a``; ``lam`` and ``k`` are constants to it. Many
    matrices go in as one stack (this takes the place of ``torch.func.vmap``).

    Args:
        a: Matrices of shape ``(..., n, r)``: float16, bfloat16, float32 or float64.
        lam: Factor, at least 0; a number or a tensor of the leading shape ``(...)``.
        k: Size of the leading group, from 0 to min(n, r); an int or an integer tensor ``(...)``.
        scale: The group that is multiplied: ``"trailing"`` or ``"leading"``.
        gradient: ``"exact"`` differentiates through the singular directions, ``"frozen"`` treats
            them as constants, which is cheaper.
        spectrum: ``decompose(a)``, when the caller has it already.

    Returns:
        A tensor of the shape, dtype and device of ``a``.

    Example:
        >>> a = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> scale_singular_values(a, lam=0.5, k=1)
        tensor([[2.0000, 0.0000],
                [0.0000, 0.5000]])
        >>> stack = torch.stack([a, a])  # many matrices, each with its own factor and cut
        >>> scale_singular_values(stack, lam=torch.tensor([0.5, 0.0]), k=torch.tensor([1, 0]))[1]
        tensor([[0., 0.], [0., 0.]])
    """
    check_floating("a", a)
    if a.ndim < 2 or a.numel() == 0:
        raise ArgumentError(
            f"`a` must be (..., n, r) with at least one row and one column, got {tuple(a.shape)}."
        )
    check_choice("scale", scale, ("trailing", "leading"))
    check_choice("gradient", gradient, ("exact", "frozen"))
    rank = min(a.shape[-1], a.shape[-2])
    lam = check_per_matrix("lam", lam, a.shape[:-2], low=0.0)
    if isinstance(k, Tensor):
        k = check_per_matrix("k", k, a.shape[:-2], low=0, high=rank, whole=True)
    else:
        k = check_integer("k", k, 0, rank)

    spectrum = decompose(a) if spectrum is None else spectrum
    if a.dtype == torch.float64 and not is_resolved(spectrum, k):
        spectrum = decompose_by_svd(a, spectrum.scale)
    if spectrum.scale is None:
        return _rescale(a, spectrum, lam, k, scale, gradient)
    # Extreme magnitudes: work at order one, in float64 so that the scale itself always fits.
    new = _rescale(a / spectrum.scale, spectrum, lam, k, scale, gradient) * spectrum.scale
    return cast(new, a.dtype)


def _rescale(
    a: Tensor,
    spectrum: Spectrum,
    lam: float | Tensor,
    k: int | Tensor,
    scale: Scale,
    gradient: Gradient,
) -> Tensor:
    """Multiply the directions of ``a`` on one side of the cut by ``lam``, in at least float32."""
    rows = a if a.dtype in (torch.float32, torch.float64) else a.float()
    if isinstance(lam, Tensor):
        lam = lam.to(rows)[..., None, None]
    inside, outside = (1.0, lam) if scale == "trailing" else (lam, 1.0)
    vectors = spectrum.vectors.float() if rows.dtype == torch.float32 else spectrum.vectors
    cut: _Cut
    if isinstance(k, int):
        basis, others = _sides(vectors, k)
        is_leading = basis.shape[-1] <= others.shape[-1]
        if not is_leading:  # the narrower side is less work
            basis, others, inside, outside = others, basis, outside, inside
        cut = _OneCut(inside - outside, outside, is_wide(a), is_leading, k, spectrum.levels)
    else:
        basis, others, cut = vectors, vectors, _ManyCuts(inside - outside, outside, is_wide(a), k)
    with _no_autocast(a):
        parts = rows, basis, others, spectrum.values, cut
        if gradient == "frozen":
            new, _ = cut.combine(rows, basis)
        elif forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
            new, _ = _Combination.apply(*parts)  # type: ignore[no-untyped-call]
        elif rows.requires_grad and torch.is_grad_enabled():
            new = _ExactCombination.apply(*parts)  # type: ignore[no-untyped-call]
        else:
            new, _ = cut.combine(rows, basis)
    return cast(new, a.dtype)


@dataclass(slots=True)
class _Cut:
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
class _OneCut(_Cut):
    """One cut for all matrices: everything is kept as narrow as the basis, the narrower side."""

    is_leading: bool  # whether the basis is the leading side
    k: int  # number of leading directions
    levels: list[float] | None  # all eigenvalues, for one matrix only

    def combine(self, a: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
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
        high, low = _sides(values, k)
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
class _ManyCuts(_Cut):
    """A cut for every matrix of a stack: the basis are all directions, in ascending order.

    What is leading cannot be a slice here, so each direction has its factor.
    """

    k: Tensor  # number of leading directions, (...)

    def combine(self, a: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
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


class _ExactCombination(torch.autograd.Function):
    """:meth:`_Cut.combine` with a gradient that includes how the basis depends on ``a``."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, basis: Tensor, others: Tensor, values: Tensor, cut: _Cut
    ) -> Tensor:
        new, coordinates = cut.combine(a, basis)
        ctx.save_for_backward(a, basis, others, values, coordinates)
        ctx.cut = cut
        return new

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        with _no_autocast(grad):
            new = ctx.cut.derivative(grad, *(saved := ctx.saved_tensors))
        # As a constant this would have a wrong derivative of its own.
        return _once(new, saved[0]) if torch.is_grad_enabled() else new, None, None, None, None


class _Combination(torch.autograd.Function):
    """The same for forward mode and torch.func, for which PyTorch takes its time."""

    generate_vmap_rule = True
    backward = _ExactCombination.backward

    @staticmethod
    def forward(
        a: Tensor, basis: Tensor, others: Tensor, values: Tensor, cut: _Cut
    ) -> tuple[Tensor, Tensor]:
        return cut.combine(a, basis)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.cut = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, output[1])
        ctx.save_for_forward(*tensors, output[1])

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> tuple[Tensor, None]:
        with _no_autocast(tangent):
            new = ctx.cut.derivative(tangent, *(saved := ctx.saved_tensors))
        return _once(new, saved[0]), None


class _Once(torch.autograd.Function):
    """Return a derivative that depends on ``a`` and cannot be differentiated again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(new: Tensor, a: Tensor) -> Tensor:
        return new.view_as(new)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> Any:
        raise RegaugError(
            "The exact derivative of scale_singular_values has no derivative of its own. Use "
            "gradient='frozen', which has."
        )

    jvp = backward


def _once(new: Tensor, a: Tensor) -> Tensor:
    once: Tensor = _Once.apply(new, a)  # type: ignore[no-untyped-call]
    return once


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


def _sides(columns: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the ``k`` leading (last) ones of the ascending columns, and the others."""
    trailing, leading = columns.split_with_sizes((columns.shape[-1] - k, k), -1)
    return leading, trailing


def _narrowest_gap(edge: Number, largest: Number, rank: int) -> Number:
    """Return the gap that counts as zero next to the eigenvalue at the edge of the cut."""
    return _NARROWEST_GAP * edge + ROUNDING * rank * largest + _TINY


def _no_autocast(a: Tensor) -> AbstractContextManager[Any]:
    """Keep autocast from lowering the precision of the matrix products."""
    kind = "cpu" if a.is_cpu else a.device.type  # asking for the device's name is slow
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
