"""The singular values of a matrix and the singular vectors of its smaller side, fast."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor
from torch._C._functorch import get_unwrapped, is_batchedtensor, is_gradtrackingtensor

from regaug._checks import check_finite, check_floating, check_per_matrix
from regaug.exceptions import ArgumentError, RegaugError

ROUNDING = torch.finfo(torch.float64).eps
# A matrix whose largest eigenvalue lies outside this range is first divided by its largest entry.
_SMALLEST, _LARGEST = 1e-30, 1e30
# Estimated relative error of a float64 result above which the Gram way gives way to an SVD.
_FLOAT64_ERROR = 2e-11


@dataclass(slots=True)
class Spectrum:
    """Eigenvalues and eigenvectors of the smaller Gram matrix of ``a``, in float64.

    Attributes:
        values: Squared singular values of ``a / scale`` in ascending order, ``(..., m)``.
        vectors: Their directions as columns, ``(..., m, m)``; left singular vectors when ``a``
            has fewer rows than columns, right ones otherwise.
        scale: What ``a`` was divided by, ``(..., 1, 1)``; None when it was used as it is.
        levels: ``values`` as a list, for one matrix only: Python reads it faster than a tensor.
    """

    values: Tensor
    vectors: Tensor
    scale: Tensor | None = None
    levels: list[float] | None = field(init=False)

    def __post_init__(self) -> None:
        self.levels = None
        if self.values.ndim == 1:
            # torch 2.6 reads a tensor of torch.func one number at a time, and no list of them.
            wrapped = is_gradtrackingtensor(self.values)
            self.levels = [v.item() for v in self.values] if wrapped else self.values.tolist()

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
    recorded: ``scale_singular_values`` has its own.
    """
    _check_not_mapped(a)
    rows = a.detach().double()
    try:
        spectrum = Spectrum(*torch.linalg.eigh(_gram(rows)))
        if spectrum.levels is None:
            smallest, largest = (bound.item() for bound in spectrum.values[..., -1].aminmax())
        else:
            smallest = largest = spectrum.levels[-1]
        if smallest > _SMALLEST and largest < _LARGEST:
            return spectrum
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # one answer to NaN and infinity
        pass
    check_finite(a=a)
    scale = rows.abs().amax((-2, -1), keepdim=True)
    scale = scale.where(scale > 0, 1.0)
    values, vectors = torch.linalg.eigh(_gram(rows / scale))
    return Spectrum(values, vectors, scale)


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
    if singular_values.ndim == 0 or singular_values.shape[-1] == 0:
        raise ArgumentError(
            "`singular_values` must be (..., m) with at least one value, got shape "
            f"{tuple(singular_values.shape)}."
        )
    rho = check_per_matrix("rho", rho, singular_values.shape[:-1], low=0.0, high=1.0)
    if isinstance(rho, Tensor):
        rho = rho[..., None]
    cumulative = singular_values.double().cumsum(-1)
    # The last sum is the total: comparing with it, rather than dividing, makes rho = 1 exact.
    return (cumulative <= rho * cumulative[..., -1:]).sum(-1)


def is_resolved(spectrum: Spectrum, k: int | Tensor) -> bool:
    """Tell whether the Gram matrix separates both sides of every cut well enough for float64."""
    values = spectrum.values.clamp(min=0.0)
    rank = values.shape[-1]
    k = torch.as_tensor(k, device=values.device).expand(values.shape[:-1])[..., None]
    is_cut = (k > 0) & (k < rank)
    above = values.gather(-1, (rank - k).clamp(max=rank - 1))
    below = values.gather(-1, (rank - k - 1).clamp(min=0))
    error = ROUNDING * (values[..., -1:] * above).sqrt()
    return bool((~is_cut | (error <= _FLOAT64_ERROR * (above - below))).all())


def decompose_by_svd(a: Tensor, scale: Tensor | None) -> Spectrum:
    """Like :func:`decompose`, slower, without squaring the condition number."""
    rows = a.detach() if scale is None else a.detach() / scale
    left, s, right = torch.linalg.svd(rows, full_matrices=False)
    vectors = left if is_wide(a) else right.mT
    return Spectrum(s.square().flip(-1), vectors.flip(-1), scale)


def is_wide(a: Tensor) -> bool:
    """Tell whether the left singular vectors are the fewer ones."""
    return bool(a.shape[-2] < a.shape[-1])


def _gram(a: Tensor) -> Tensor:
    """Return ``a a^T`` for wide matrices and ``a^T a`` for tall ones; its lower triangle counts."""
    a = a if is_wide(a) else a.mT
    rank = a.shape[-2]
    if rank <= 64:
        return a @ a.mT
    # Only the lower triangle is read, so a quarter of the work can be left out.
    upper, lower = a.split_with_sizes((rank // 2, rank - rank // 2), -2)
    gram = a.new_zeros(*a.shape[:-1], rank)
    gram[..., : rank // 2, : rank // 2] = upper @ upper.mT
    gram[..., rank // 2 :, :] = lower @ a.mT
    return gram


def _check_not_mapped(a: Tensor) -> None:
    """Refuse a tensor of ``torch.func.vmap``: the cut of a matrix must be read from its values."""
    while is_gradtrackingtensor(a):
        a = get_unwrapped(a)
    if is_batchedtensor(a):
        raise RegaugError(
            "The singular values of a batch cannot be found under torch.func.vmap. Give the whole "
            "stack (..., n, r) at once: every function takes one as it is."
        )
