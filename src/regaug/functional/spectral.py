r"""Scale one side of a matrix's singular values, fast and with a gradient that stays finite.

The textbook way decomposes ``a = U diag(s) V^T`` and multiplies three matrices back together. Only
the projector on the leading singular directions is needed, and the eigenvectors of the smaller
Gram matrix give it: one symmetric eigenproblem of the smaller side and two matrix products.

The gradient of that projector has the factors ``1 / (w_i - w_j)``, with ``w`` the eigenvalues, for
pairs *across the cut* only. Equal or zero singular values on one side of it, which make the
gradient of an SVD NaN, never enter.
"""

import math
from bisect import bisect_right
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch._C._functorch import get_unwrapped, is_batchedtensor, is_gradtrackingtensor
from torch.autograd import forward_ad

from regaug._checks import (
    check_choice,
    check_finite,
    check_floating,
    check_integer,
    check_per_matrix,
    check_range,
)
from regaug.exceptions import ArgumentError, RegaugError
from regaug.functional.precision import cast

Scale = Literal["trailing", "leading"]
Gradient = Literal["exact", "frozen"]
Factor = float | Tensor
Number = TypeVar("Number", float, Tensor)

# A gap (w_i - w_j) below this share of w_i has no usable derivative, so 1 / (w_i - w_j) is bounded
# there. Well-posed cuts (s_k - s_{k+1} at least 1e-3 s_k) are wider by far and are not touched.
_NARROWEST_GAP = 1e-5
_ROUNDING = torch.finfo(torch.float64).eps
_TINY = torch.finfo(torch.float64).tiny
# A matrix whose largest eigenvalue lies outside this range is first divided by its largest entry.
_SMALLEST, _LARGEST = 1e-30, 1e30
# Estimated relative error of a float64 result above which the Gram way gives way to an SVD.
_FLOAT64_ERROR = 2e-11
_NO_SECOND = (
    "The exact derivative of scale_singular_values has no derivative of its own. Use "
    "gradient='frozen', which has."
)


@dataclass(slots=True)
class Spectrum:
    """Eigenvalues and eigenvectors of the smaller Gram matrix of ``a``, in float64.

    Attributes:
        values: Squared singular values of ``a / scale`` in ascending order, ``(..., m)``.
        vectors: Their directions as columns, ``(..., m, m)``; left singular vectors when ``a``
            has fewer rows than columns, right ones otherwise.
        levels: ``values`` as a list, for one matrix only: Python reads it faster than a tensor.
        scale: What ``a`` was divided by, ``(..., 1, 1)``; None when it was used as it is.
    """

    values: Tensor
    vectors: Tensor
    levels: list[float] | None
    scale: Tensor | None = None

    def rank_at_share(self, rho: float | Tensor) -> int | Tensor:
        """Return :func:`rank_at_share` of the singular values of ``a``."""
        if self.levels is None or isinstance(rho, Tensor):
            singular_values = self.values.clamp(min=0.0).sqrt()  # rounding can leave -1e-17
            return rank_at_share(singular_values.flip(-1), rho)
        sums = list(accumulate(math.sqrt(max(level, 0.0)) for level in reversed(self.levels)))
        return bisect_right(sums, rho * sums[-1])


def decompose(a: Tensor) -> Spectrum:
    """Find the singular values and the smaller side's singular vectors of ``a``.

    The Gram matrix squares the condition number, so it is accumulated in float64. No gradient is
    recorded: :func:`scale_singular_values` has its own.

    Args:
        a: Matrices of shape ``(..., n, r)``.
    """
    _check_not_mapped(a)
    rows = a.detach().double()
    try:
        values, vectors = torch.linalg.eigh(_gram(rows))
        if values.ndim == 1:
            levels = values.tolist()
            smallest = largest = levels[-1]
        else:
            levels = None
            smallest, largest = (bound.item() for bound in values[..., -1].aminmax())
        if smallest > _SMALLEST and largest < _LARGEST:
            return Spectrum(values, vectors, levels)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # one answer to NaN and infinity
        pass

    check_finite("a", a)
    scale = rows.abs().amax((-2, -1), keepdim=True)
    scale = scale.where(scale > 0, 1.0)
    rows = rows / scale
    values, vectors = torch.linalg.eigh(_gram(rows))
    return Spectrum(values, vectors, values.tolist() if values.ndim == 1 else None, scale)


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
        tensor([[0., 0.],
                [0., 0.]])
    """
    check_floating("a", a)
    if a.ndim < 2 or a.numel() == 0:
        raise ArgumentError(
            f"`a` must be (..., n, r) with at least one row and one column, got {tuple(a.shape)}."
        )
    check_choice("scale", scale, ("trailing", "leading"))
    check_choice("gradient", gradient, ("exact", "frozen"))
    rank = min(a.shape[-1], a.shape[-2])
    if isinstance(lam, Tensor):
        lam = check_per_matrix("lam", lam, a.shape[:-2], low=0.0)
    else:
        lam = check_range("lam", lam, 0.0)
    if isinstance(k, Tensor):
        k = check_per_matrix("k", k, a.shape[:-2], low=0, high=rank, whole=True)
    else:
        k = check_integer("k", k, 0, rank)

    spectrum = decompose(a) if spectrum is None else spectrum
    if a.dtype == torch.float64 and not _is_resolved(spectrum, k):
        spectrum = _decompose_by_svd(a, spectrum.scale)
    if spectrum.scale is None:
        return _rescale(a, spectrum, lam, k, scale, gradient)
    # Extreme magnitudes: work at order one, in float64 so that the scale itself always fits.
    new = _rescale(a / spectrum.scale, spectrum, lam, k, scale, gradient) * spectrum.scale
    return cast(new, a.dtype)


def _check_not_mapped(a: Tensor) -> None:
    """Refuse a tensor of ``torch.func.vmap``: the cut of a matrix must be read from its values."""
    while is_gradtrackingtensor(a):
        a = get_unwrapped(a)
    if is_batchedtensor(a):
        raise RegaugError(
            "The singular values of a batch cannot be found under torch.func.vmap. Give the whole "
            "stack (..., n, r) at once: every function takes one as it is."
        )


def rank_at_share(singular_values: Tensor, rho: float | Tensor) -> Tensor:
    r"""Count the leading singular values that together make up at most the share ``rho``.

    The share is that of the values themselves, not of their squares: the largest ``k`` with
    :math:`s_1 + \dots + s_k \le \rho \sum_j s_j`. It may be 0 and it may be all of them.

    Args:
        singular_values: Non-negative values in descending order, ``(..., m)``.
        rho: Share in [0, 1]; a number or a tensor of the leading shape ``(...)``.

    Returns:
        An int64 tensor of shape ``(...)``.

    Example:
        >>> rank_at_share(torch.tensor([6.0, 3.0, 1.0]), 0.9)
        tensor(2)
    """
    check_floating("singular_values", singular_values)
    if isinstance(rho, Tensor):
        rho = check_per_matrix("rho", rho, singular_values.shape[:-1], low=0.0, high=1.0)
        rho = rho[..., None]
    else:
        rho = check_range("rho", rho, 0.0, 1.0)
    cumulative = singular_values.double().cumsum(-1)
    # The last sum is the total: comparing with it, rather than dividing, makes rho = 1 exact.
    return (cumulative <= rho * cumulative[..., -1:]).sum(-1)


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
    basis, others = _cut(vectors, k)
    is_leading = basis.shape[-1] <= others.shape[-1]
    if not is_leading:  # the narrower side is less work
        basis, others, inside, outside = others, basis, outside, inside
    cut = _Cut(is_leading, _is_wide(a), inside, outside, spectrum.levels, k)
    with _no_autocast(a):
        parts = rows, basis, others, spectrum.values, cut
        if gradient == "frozen":
            new, _ = _combine(rows, basis, cut)
        elif forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
            new, _ = _Combination.apply(*parts)  # type: ignore[no-untyped-call]
        elif rows.requires_grad and torch.is_grad_enabled():
            new = _ExactCombination.apply(*parts)  # type: ignore[no-untyped-call]
        else:
            new, _ = _combine(rows, basis, cut)
    return cast(new, a.dtype)


@dataclass(slots=True)
class _Cut:
    """The two sides of a cut.

    Attributes:
        is_leading: Whether the basis, the narrower side, is the leading one.
        is_wide: Whether they are left singular vectors.
        inside: Factor of the directions in the basis.
        outside: Factor of the others.
        levels: All eigenvalues, for one matrix only.
        k: Number of leading directions.
    """

    is_leading: bool
    is_wide: bool
    inside: Factor
    outside: Factor
    levels: list[float] | None
    k: int | Tensor


def _combine(a: Tensor, basis: Tensor, cut: _Cut) -> tuple[Tensor, Tensor]:
    """Multiply each side of the cut by its factor; return the coordinates in the basis as well."""
    contrast = cut.inside - cut.outside
    if cut.is_wide:
        coordinates = basis.mT @ a
        return _add_product(a, basis, coordinates, cut.outside, contrast), coordinates
    coordinates = a @ basis
    return _add_product(a, coordinates, basis.mT, cut.outside, contrast), coordinates


class _ExactCombination(torch.autograd.Function):
    """:func:`_combine` with a gradient that includes how the basis depends on ``a``."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, basis: Tensor, others: Tensor, values: Tensor, cut: _Cut
    ) -> Tensor:
        new, coordinates = _combine(a, basis, cut)
        ctx.save_for_backward(a, basis, others, values, coordinates)
        ctx.cut = cut
        return new

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        new = _derivative(grad, ctx.cut, *(saved := ctx.saved_tensors))
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
        return _combine(a, basis, cut)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.cut = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tensors, output[1])
        ctx.save_for_forward(*tensors, output[1])

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> tuple[Tensor, None]:
        new = _derivative(tangent, ctx.cut, *(saved := ctx.saved_tensors))
        return _once(new, saved[0]), None


def _derivative(
    along: Tensor,
    cut: _Cut,
    a: Tensor,
    basis: Tensor,
    others: Tensor,
    values: Tensor,
    coordinates: Tensor,
) -> Tensor:
    """Return the derivative of :func:`_combine` along a matrix.

    The function is itself a gradient (of a sum of squared singular values with factors), so its
    derivative is symmetric: the same serves for the gradient and for forward mode. With N the
    basis, O the other directions, c their factors and H the matrix, it is for a wide ``a``
    c_O H + (c_N - c_O) (N N^T H + (W N^T + N W^T) a), where W = O ((O^T (H a^T + a H^T) N) / gaps).
    Everything is kept as thin as the basis.
    """
    with _no_autocast(along):
        if cut.is_wide:
            of_along = basis.mT @ along
            turn = _add(along @ coordinates.mT, a, of_along.mT)
            turn = others @ (others.mT @ turn).div_(_signed_gaps(values, cut))
            left = torch.cat([basis, turn], -1)
            right = torch.cat([_add(of_along, turn.mT, a), coordinates], -2)
        else:
            of_along = along @ basis
            turn = _add(along.mT @ coordinates, a.mT, of_along)
            turn = others @ (others.mT @ turn).div_(_signed_gaps(values, cut))
            left = torch.cat([_add(of_along, a, turn), coordinates], -1)
            right = torch.cat([basis, turn], -1).mT
        return _add_product(along, left, right, cut.outside, cut.inside - cut.outside)


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
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise RegaugError(_NO_SECOND)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Any:
        raise RegaugError(_NO_SECOND)


def _once(new: Tensor, a: Tensor) -> Tensor:
    once: Tensor = _Once.apply(new, a)  # type: ignore[no-untyped-call]
    return once


def _add_product(base: Tensor, left: Tensor, right: Tensor, beta: Factor, alpha: Factor) -> Tensor:
    """Return ``beta * base + alpha * left @ right``, in one call for one matrix."""
    if base.ndim == 2 and not isinstance(beta, Tensor) and not isinstance(alpha, Tensor):
        return torch.addmm(base, left, right, beta=beta, alpha=alpha)
    return beta * base + alpha * (left @ right)


def _add(base: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return ``base + left @ right``."""
    return torch.addmm(base, left, right) if base.ndim == 2 else base.add_(left @ right)


def _cut(columns: Tensor, k: int | Tensor) -> tuple[Tensor, Tensor]:
    """Return the ``k`` leading (last) ones of the ascending columns, and the others.

    A cut per matrix cannot be a slice: there both results keep every column and have zeros in
    those that are not theirs.
    """
    rank = columns.shape[-1]
    if isinstance(k, int):
        trailing, leading = columns.split_with_sizes((rank - k, k), -1)
        return leading, trailing
    is_leading = torch.arange(rank, device=columns.device) >= rank - k[..., None]
    is_leading = is_leading[..., None, :]
    return columns * is_leading, columns * ~is_leading


def _signed_gaps(values: Tensor, cut: _Cut) -> Tensor:
    """Return w_j - w_i for j in the basis and i in the others, bounded away from zero."""
    levels, k = cut.levels, cut.k
    rank = values.shape[-1]
    if isinstance(k, int):
        low, high = values.split_with_sizes((rank - k, k), -1)
    else:
        low, high = values, values
    if cut.is_leading:
        gaps = high.unsqueeze(-2) - low.unsqueeze(-1)
    else:
        gaps = low.unsqueeze(-2) - high.unsqueeze(-1)
    if isinstance(k, int) and (k == 0 or k == rank):
        return gaps  # there are no pairs
    if isinstance(k, int) and levels is not None:
        narrowest = _narrowest_gap(levels[rank - k], levels[-1], rank)
        if levels[rank - k] - levels[rank - k - 1] >= narrowest:
            return gaps
        return gaps.clamp_(min=narrowest) if cut.is_leading else gaps.clamp_(max=-narrowest)
    if isinstance(k, int):
        edge = high[..., :1]
    else:
        edge = values.gather(-1, (rank - k[..., None]).clamp(max=rank - 1))
    bound = _narrowest_gap(edge, values[..., -1:], rank)[..., None]
    return torch.maximum(gaps, bound) if cut.is_leading else torch.minimum(gaps, -bound)


def _narrowest_gap(edge: Number, largest: Number, rank: int) -> Number:
    """Return the gap that counts as zero next to the eigenvalue at the edge of the cut."""
    return _NARROWEST_GAP * edge + _ROUNDING * rank * largest + _TINY


def _is_resolved(spectrum: Spectrum, k: int | Tensor) -> bool:
    """Tell whether the Gram matrix separates both sides of every cut well enough for float64."""
    values = spectrum.values.clamp(min=0.0)
    rank = values.shape[-1]
    k = torch.as_tensor(k, device=values.device).expand(values.shape[:-1])[..., None]
    is_cut = (k > 0) & (k < rank)
    above = values.gather(-1, (rank - k).clamp(max=rank - 1))
    below = values.gather(-1, (rank - k - 1).clamp(min=0))
    error = _ROUNDING * (values[..., -1:] * above).sqrt()
    return bool((~is_cut | (error <= _FLOAT64_ERROR * (above - below))).all())


def _decompose_by_svd(a: Tensor, scale: Tensor | None) -> Spectrum:
    """Like :func:`decompose`, slower, without squaring the condition number."""
    rows = a.detach() if scale is None else a.detach() / scale
    left, s, right = torch.linalg.svd(rows, full_matrices=False)
    vectors = left if _is_wide(a) else right.mT
    values = s.square().flip(-1)
    return Spectrum(values, vectors.flip(-1), values.tolist() if values.ndim == 1 else None, scale)


def _is_wide(a: Tensor) -> bool:
    return bool(a.shape[-2] < a.shape[-1])


def _gram(a: Tensor) -> Tensor:
    """Return ``a a^T`` for wide matrices and ``a^T a`` for tall ones; its lower triangle counts."""
    a = a if _is_wide(a) else a.mT
    rank = a.shape[-2]
    if rank <= 64:
        return a @ a.mT
    # Only the lower triangle is read, so a quarter of the work can be left out.
    upper, lower = a.split_with_sizes((rank // 2, rank - rank // 2), -2)
    gram = a.new_zeros(*a.shape[:-1], rank)
    gram[..., : rank // 2, : rank // 2] = upper @ upper.mT
    gram[..., rank // 2 :, :] = lower @ a.mT
    return gram


def _no_autocast(a: Tensor) -> AbstractContextManager[Any]:
    """Keep autocast from lowering the precision of the matrix products."""
    kind = "cpu" if a.is_cpu else a.device.type  # asking for the device's name is slow
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
