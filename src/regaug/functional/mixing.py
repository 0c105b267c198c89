"""Mixing of rows with partner rows: mixup (Zhang et al., 2018) and C-Mixup (Yao et al., 2022)."""

from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_finite, check_fits, check_floating, check_per_matrix, check_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.precision import cast, working_dtype

Share = TypeVar("Share", float, NDArray[np.float64])


def mix(
    x: Tensor,
    y: Tensor,
    *,
    lam: float | Tensor,
    partners: Tensor,
    mask: Tensor | None = None,
    lam_y: float | Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Move rows of a batch toward other rows of it.

    Row :math:`i` becomes :math:`\lambda (x_i, y_i) + (1 - \lambda) (x_j, y_j)` with :math:`j` its
    partner.

    Args:
        x: Inputs of shape ``(..., n, d)``.
        y: Targets of shape ``(..., n, m)``.
        lam: Share of the row itself; 1 leaves the rows as they are, and outside of [0, 1] new rows
            lie beyond the two. A number, a tensor of the leading shape ``(...)``, one for every
            row, ``(..., k)``, or, beside ``lam_y``, one for every value, ``(..., k, d)``.
        partners: The row that each row is mixed with, from 0 to n - 1: int64, ``(..., n)``. With
            ``(..., k)``, k less than n, only the first k rows are mixed and returned.
        mask: True where a value of ``x`` is there, ``(..., n, d)``: values are mixed where both
            rows have one, elsewhere a row keeps its own. All are there if None.
        lam_y: The share in the targets, where it is another one; ``lam`` if None.

    Returns:
        New inputs ``(..., k, d)`` and targets ``(..., k, m)``; dtypes and device are kept.

    Example:
        >>> x, y = torch.tensor([[0.0], [4.0]]), torch.tensor([[0.0], [8.0]])
        >>> mix(x, y, lam=0.75, partners=torch.tensor([1, 0]))
        (tensor([[1.], [3.]]), tensor([[2.], [6.]]))
        >>> mix(x, y, lam=0.75, partners=torch.tensor([1]))  # the first row alone
        (tensor([[1.]]), tensor([[2.]]))
    """
    check_rows(x, y)
    check_partners("partners", partners, x.shape[:-1])
    if isinstance(lam, Tensor) and lam.ndim > partners.ndim and lam_y is None:
        raise ArgumentError("`lam_y` must be given beside a share for every value, got None.")
    lam = _check_share("lam", lam, partners, x.shape[-1])
    lam_y = lam if lam_y is None else _check_share("lam_y", lam_y, partners, y.shape[-1])
    check_fits("lam", lam, working_dtype(x))
    check_fits("lam_y", lam_y, working_dtype(y))
    if mask is not None:
        check_mask(mask, x)
    return mix_rows(x, lam, partners, mask), mix_rows(y, lam_y, partners)


def stretch(lam: Share, *, alpha: Share) -> Share:
    r"""Stretch a draw from Beta(alpha, alpha) so that mixing with it keeps the spread of the data.

    Rows that are mixed with random ones have :math:`1 - 2 E[\lambda (1 - \lambda)]` times the
    variances and covariances of the data: less, as long as :math:`\lambda` lies in [0, 1]. With
    :math:`\frac{1}{2} + \sqrt{2 \alpha + 1} (\lambda - \frac{1}{2})` in its place the expected
    value is 0, and they stay as they are: the expanded Beta distribution (EpBeta; Lee et al.,
    AISTATS 2025), symmetric, and as wide as that asks for.

    Args:
        lam: The draw, in [0, 1]; an array of them too.
        alpha: Concentration of the Beta distribution, greater than 0; an array too.

    Returns:
        The share, which may lie outside of [0, 1].

    Example:
        >>> stretch(np.array([0.0, 0.5, 1.0]), alpha=1.0).round(3)
        array([-0.366,  0.5  ,  1.366])
    """
    share: Share = 0.5 + np.sqrt(2.0 * alpha + 1.0) * (lam - 0.5)
    return share


def kernel_probabilities(y: Tensor, *, bandwidth: float | Tensor) -> Tensor:
    r"""Return how likely each row is to be the partner of each other row of a batch (C-Mixup).

    Row :math:`i` of the result is proportional to :math:`\exp(-|y_i - y_j|^2 / (2 b^2))`. A row may
    be its own partner: the paper draws from all samples, its script as well. For a whole training
    set use ``KernelPairSampler``, which makes no n x n matrix.

    Args:
        y: Targets of shape ``(..., n, m)``.
        bandwidth: Width :math:`b` of the kernel, greater than 0; a number or a tensor of the
            leading shape ``(...)``.

    Returns:
        A float64 tensor ``(..., n, n)`` whose rows sum to 1, however small the bandwidth; it is a
        constant to autograd.

    Example:
        >>> kernel_probabilities(torch.tensor([[0.0], [0.0], [9.0]]), bandwidth=1.0)[0]
        tensor([5.0000e-01, 5.0000e-01, 1.2884e-18], dtype=torch.float64)
    """
    check_floating("y", y)
    if y.ndim < 2:
        raise ArgumentError(f"`y` must be (..., n, m), got {tuple(y.shape)}.")
    check_finite(y=y)
    bandwidth = check_per_matrix("bandwidth", bandwidth, y.shape[:-2], low=0.0, open_low=True)
    if isinstance(bandwidth, Tensor):
        bandwidth = bandwidth.double()[..., None, None]
    rows = y.detach().double()
    # Not by matrix products: they lose the small distances, and those count here.
    apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist") / bandwidth
    # The softmax subtracts the largest exponent, a row's own 0, so it never divides 0 by 0.
    return torch.softmax(-0.5 * apart.square(), dim=-1)


def mix_rows(
    rows: Tensor, lam: float | Tensor, partners: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Do the arithmetic of :func:`mix` on inputs or targets, without looking at what is given."""
    own = rows[..., : partners.shape[-1], :] if partners.shape[-1] < rows.shape[-2] else rows
    if isinstance(lam, float) and lam == 1.0:
        return own
    partners = partners.to(rows.device)
    others = select_rows(rows, partners)
    if mask is not None:
        mask = mask.to(rows.device)
        is_own = mask[..., : partners.shape[-1], :]
        is_both = is_own & select_rows(mask, partners)
        # What is not there may be NaN: it must not come near the arithmetic, or its gradient.
        others = torch.where(is_both, others, own)
    dtype = working_dtype(rows)
    own, others = own.to(dtype), others.to(dtype)
    share: float | Tensor = lam
    if isinstance(lam, Tensor):
        share = lam.to(rows.device, dtype)
        for _ in range(partners.ndim + 1 - lam.ndim):
            share = share[..., None]
    new = cast(torch.lerp(others, own, share), rows.dtype)
    return new if mask is None else torch.where(is_both, new, own.to(rows.dtype))


def unmix_rows(delta: Tensor, lam: Tensor, partners: Tensor, n: int) -> Tensor:
    """Return a loss's derivative by rows ``(..., n, d)`` from that by :func:`mix_rows` of them.

    ``lam`` is a tensor of the leading shape, in the dtype of ``delta``, ``(..., k, d)``.
    """
    share = lam[..., None, None]
    own = delta * share
    if len(missing := range(delta.shape[-2], n)):  # rows that are nothing but partners
        own = torch.cat([own, own.new_zeros(*own.shape[:-2], len(missing), own.shape[-1])], dim=-2)
    others = delta * (1.0 - share)
    columns = delta.shape[-1]
    flat = own.view(-1, columns)
    flat.index_add_(0, _in_one_table(partners, n), others.reshape(-1, columns))
    return own


def select_rows(rows: Tensor, chosen: Tensor) -> Tensor:
    """Return some rows ``(..., k, d)`` of each batch of rows ``(..., n, d)``, by their numbers."""
    n, columns = rows.shape[-2:]
    # Whole rows of one long table: much faster, forth and back, than one element at a time.
    others = rows.reshape(-1, columns).index_select(0, _in_one_table(chosen, n))
    return others.reshape(*chosen.shape, columns)


def _in_one_table(chosen: Tensor, n: int) -> Tensor:
    """Return where rows of batches of ``n`` stand in one long table of all batches."""
    if chosen.ndim > 1:  # row j of a batch lies below all rows of the batches before
        *leading, k = chosen.shape
        firsts = torch.arange(0, chosen.numel() // k * n, n, device=chosen.device)
        chosen = chosen + firsts.reshape(*leading, 1)
    return chosen.flatten()


def _check_share(name: str, lam: float | Tensor, partners: Tensor, columns: int) -> float | Tensor:
    """Return a share that is a number, one for each batch, for each row, or for each value."""
    shape = (*partners.shape, columns)
    missing = len(shape) - lam.ndim if isinstance(lam, Tensor) else 2
    return check_per_matrix(name, lam, torch.Size(shape[: len(shape) - max(0, min(missing, 2))]))


def check_mask(mask: Tensor, x: Tensor, name: str = "x") -> None:
    """Refuse a mask that does not belong to ``x``."""
    if not isinstance(mask, Tensor):
        raise ArgumentTypeError(f"`mask` must be a torch.Tensor, got {type(mask).__name__}.")
    if mask.dtype != torch.bool or mask.shape != x.shape:
        raise ArgumentError(
            f"`mask` must be of torch.bool in the shape of `{name}`, {tuple(x.shape)}, got "
            f"{mask.dtype} of shape {tuple(mask.shape)}."
        )


def check_partners(name: str, partners: Tensor, shape: torch.Size) -> None:
    """Refuse what are no numbers of rows, of all or of the first rows of each batch."""
    if not isinstance(partners, Tensor) or partners.dtype != torch.int64:
        came = partners.dtype if isinstance(partners, Tensor) else type(partners).__name__
        raise ArgumentTypeError(f"`{name}` must be an int64 tensor of row numbers, got {came}.")
    *leading, n = shape
    if list(partners.shape[:-1]) != leading or not 1 <= partners.shape[-1] <= n:
        raise ArgumentError(
            f"`{name}` must be (..., k) with the leading shape of `x` and k from 1 to {n}, "
            f"got {tuple(partners.shape)} for rows {tuple(shape)}."
        )
    lowest, highest = (int(bound) for bound in partners.aminmax())
    if lowest < 0 or highest >= n:
        raise ArgumentError(
            f"`{name}` must be rows of the batch, from 0 to {n - 1}, "
            f"got {lowest if lowest < 0 else highest}."
        )
