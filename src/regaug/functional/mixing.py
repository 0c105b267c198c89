"""Mixing of rows with partner rows: mixup (Zhang et al., 2018) and C-Mixup (Yao et al., 2022)."""

import torch
from torch import Tensor

from regaug._checks import check_finite, check_floating, check_per_matrix, check_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.precision import cast, working_dtype


def mix(
    x: Tensor,
    y: Tensor,
    *,
    lam: float | Tensor,
    partners: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Move rows of a batch toward other rows of it.

    Row :math:`i` becomes :math:`\lambda (x_i, y_i) + (1 - \lambda) (x_j, y_j)` with :math:`j` its
    partner.

    Args:
        x: Inputs of shape ``(..., n, d)``.
        y: Targets of shape ``(..., n, m)``.
        lam: Share of the row itself in [0, 1]; 1 leaves the rows as they are. A number or a tensor
            of the leading shape ``(...)``.
        partners: The row that each row is mixed with, from 0 to n - 1: int64, ``(..., n)``. With
            ``(..., k)``, k less than n, only the first k rows are mixed and returned.
        mask: True where a value of ``x`` is there, ``(..., n, d)``: values are mixed where both
            rows have one, elsewhere a row keeps its own. All are there if None.

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
    check_partners(partners, x.shape[:-1])
    lam = check_per_matrix("lam", lam, x.shape[:-2], low=0.0, high=1.0)
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape):
        raise ArgumentError(
            f"`mask` must be of torch.bool in the shape of `x`, {tuple(x.shape)}, got "
            f"{mask.dtype} of shape {tuple(mask.shape)}."
        )
    return _mix_rows(x, lam, partners, mask), _mix_rows(y, lam, partners)


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


def _mix_rows(
    rows: Tensor, lam: float | Tensor, partners: Tensor, mask: Tensor | None = None
) -> Tensor:
    own = rows[..., : partners.shape[-1], :] if partners.shape[-1] < rows.shape[-2] else rows
    if isinstance(lam, float) and lam == 1.0:
        return own
    others = take_partners(rows, partners)
    if mask is not None:
        is_own = mask[..., : partners.shape[-1], :]
        is_both = is_own & take_partners(mask.to(rows.device), partners)
        # What is not there may be NaN: it must not come near the arithmetic, or its gradient.
        others = torch.where(is_both, others, own)
    dtype = working_dtype(rows)
    own, others = own.to(dtype), others.to(dtype)
    share = lam.to(rows.device, dtype)[..., None, None] if isinstance(lam, Tensor) else lam
    new = cast(torch.lerp(others, own, share), rows.dtype)
    return new if mask is None else torch.where(is_both, new, own.to(rows.dtype))


def take_partners(rows: Tensor, partners: Tensor) -> Tensor:
    """Return the rows ``(..., k, columns)`` that are the partners ``(..., k)`` of the first k."""
    chosen, (n, columns) = partners.to(rows.device), rows.shape[-2:]
    if rows.ndim > 2:  # row j of a batch lies below all rows of the batches before
        firsts = torch.arange(0, rows.numel() // columns, n, device=rows.device)
        chosen = chosen + firsts.reshape(*rows.shape[:-2], 1)
    # Whole rows of one long table: much faster, forth and back, than one element at a time.
    others = rows.reshape(-1, columns).index_select(0, chosen.flatten())
    return others.reshape(*chosen.shape, columns)


def check_partners(partners: Tensor, shape: torch.Size) -> None:
    """Refuse what are no numbers of rows of a batch ``(..., n)``: that is its shape."""
    if not isinstance(partners, Tensor) or partners.dtype != torch.int64:
        came = partners.dtype if isinstance(partners, Tensor) else type(partners).__name__
        raise ArgumentTypeError(f"`partners` must be an int64 tensor of row numbers, got {came}.")
    *leading, n = shape
    if list(partners.shape[:-1]) != leading or not 1 <= partners.shape[-1] <= n:
        raise ArgumentError(
            f"`partners` must be (..., k) with the leading shape of `x` and k from 1 to {n}, "
            f"got {tuple(partners.shape)} for rows {tuple(shape)}."
        )
    lowest, highest = (int(bound) for bound in partners.aminmax())
    if lowest < 0 or highest >= n:
        raise ArgumentError(
            f"`partners` must be rows of the batch, from 0 to {n - 1}, "
            f"got {lowest if lowest < 0 else highest}."
        )
