r"""Scale one side of a matrix's singular values, fast and with a gradient that stays finite.

The textbook way decomposes ``a = U diag(s) V^T`` and multiplies three matrices back together. Only
the projector on the leading singular directions is needed, and the eigenvectors of the smaller
Gram matrix give it: one symmetric eigenproblem of the smaller side and two matrix products.

Its gradient (:mod:`regaug.functional.cuts`) knows pairs of directions *across the cut* only. Equal
or zero singular values on one side of it, which make the gradient of an SVD NaN, never enter.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regaug._checks import check_choice, check_fits, check_floating, check_integer, check_per_matrix
from regaug.exceptions import ArgumentError, ArgumentTypeError, RegaugError
from regaug.functional.cuts import Cut, ManyCuts, OneCut, sides
from regaug.functional.decomposition import (
    Spectrum,
    decompose,
    decompose_by_svd,
    is_resolved,
    is_wide,
)
from regaug.functional.precision import cast

Scale = Literal["trailing", "leading"]
Gradient = Literal["exact", "frozen"]


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

    if spectrum is not None and not isinstance(spectrum, Spectrum):
        raise ArgumentTypeError(
            f"`spectrum` must be that of `a`, from decompose(a), got {type(spectrum).__name__}."
        )
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
    check_fits("lam", lam, rows.dtype)
    if isinstance(lam, Tensor):
        lam = lam.to(rows)[..., None, None]
    inside, outside = (1.0, lam) if scale == "trailing" else (lam, 1.0)
    vectors = spectrum.vectors.float() if rows.dtype == torch.float32 else spectrum.vectors
    cut: Cut
    if isinstance(k, int):
        basis, others = sides(vectors, k)
        is_leading = basis.shape[-1] <= others.shape[-1]
        if not is_leading:  # the narrower side is less work
            basis, others, inside, outside = others, basis, outside, inside
        cut = OneCut(inside - outside, outside, is_wide(a), is_leading, k, spectrum.levels)
    else:
        basis, others, cut = vectors, vectors, ManyCuts(inside - outside, outside, is_wide(a), k)
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


class _ExactCombination(torch.autograd.Function):
    """:meth:`Cut.combine` with a gradient that includes how the basis depends on ``a``."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, basis: Tensor, others: Tensor, values: Tensor, cut: Cut
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
        a: Tensor, basis: Tensor, others: Tensor, values: Tensor, cut: Cut
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


def _no_autocast(a: Tensor) -> AbstractContextManager[Any]:
    """Keep autocast from lowering the precision of the matrix products."""
    kind = "cpu" if a.is_cpu else a.device.type  # asking for the device's name is slow
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
