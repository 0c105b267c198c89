"""Who is mixed with whom, and how strongly, by the distances of rows."""

import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_finite, check_floating, check_integer, check_per_matrix
from regaug.exceptions import ArgumentError
from regaug.functional.mixing import check_mask, check_partners, select_rows
from regaug.functional.precision import working_dtype

# Beyond these a draw from Beta(tau, tau) is an end of [0, 1], or its middle.
_WEAKEST, _STRONGEST = 1e-4, 1e4


def nearest_partners(
    x: Tensor, *, draws: Tensor, neighbors: int | Tensor, mask: Tensor | None = None
) -> Tensor:
    """Choose for each row a partner among the rows that are nearest to it.

    A row is its own partner only where it is alone. Neighbor mixup (Local Mixup, Baena et al.,
    2022; RegMix, Hwang and Whang, 2021) with the neighbors that a batch has.

    Args:
        x: Rows of shape ``(..., n, d)``; distances are Euclidean.
        draws: Which of the nearest rows it is, by a number in [0, 1) for each: ``(..., n)``.
        neighbors: How many rows are near, at least 1; if there are fewer, all are. A number or an
            int64 tensor of the leading shape ``(...)``.
        mask: True where a value of ``x`` is there, ``(..., n, d)``; the others count as the mean of
            their column. All are there if None.

    Returns:
        The partners, int64 ``(..., n)``.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [5.0]])
        >>> nearest_partners(x, draws=torch.zeros(3), neighbors=1)
        tensor([1, 0, 1])
    """
    rows = _comparable(x, mask)
    _check_row_numbers("draws", draws, x)
    if isinstance(neighbors, Tensor):
        near = check_per_matrix("neighbors", neighbors, x.shape[:-2], low=1, whole=True)
    else:
        few = min(check_integer("neighbors", neighbors, 1), x.shape[-2])
        near = torch.tensor(few, device=x.device)
    if not bool(((draws >= 0.0) & (draws < 1.0)).all()):
        ends = f"{float(draws.min()):g} to {float(draws.max()):g}"
        raise ArgumentError(f"`draws` must be in [0, 1), got numbers from {ends}.")
    most = x.shape[-2] - 1
    if not most:
        return torch.zeros(draws.shape, dtype=torch.int64, device=x.device)
    near = near.to(x.device).clamp(max=most)
    apart = _distances(rows, rows)
    apart.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    nearest = apart.topk(int(near.max()), largest=False).indices
    chosen = (draws.to(x.device) * near[..., None]).to(torch.int64)
    return nearest.gather(-1, chosen[..., None]).squeeze(-1)


def assigned_partners(x: Tensor, *, order: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Pair one half of the rows with the other so that pairs are as close as they can be.

    Of all ways to pair them, the one with the smallest sum of :math:`|x_i - x_j|^2`: k-Mixup
    (Greenewald et al., 2021), whose two sets of k samples are the halves of a batch. Partners are
    each other's; of an odd number of rows the last is its own. The time grows with the cube of the
    number of rows, on the CPU.

    Args:
        x: Rows of shape ``(..., n, d)``.
        order: All row numbers, those of one half first: int64 ``(..., n)``.
        mask: True where a value of ``x`` is there, as in :func:`nearest_partners`.

    Returns:
        The partners, int64 ``(..., n)``.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [9.0], [7.0]])
        >>> assigned_partners(x, order=torch.tensor([0, 2, 1, 3]))
        tensor([1, 0, 3, 2])
    """
    from scipy.optimize import linear_sum_assignment

    rows = _comparable(x, mask)
    check_partners("order", order, x.shape[:-1])
    _check_row_numbers("order", order, x)
    order, half = order.cpu(), x.shape[-2] // 2
    partners = torch.arange(x.shape[-2], device="cpu").expand_as(order).contiguous()
    if not torch.equal(order.sort().values, partners):
        raise ArgumentError("`order` must have every row of a batch once, got one twice.")
    if not half:
        return partners.to(x.device)
    first, second = order[..., :half], order[..., half : 2 * half]
    one, other = (select_rows(rows, those.to(x.device)) for those in (first, second))
    costs = _distances(one, other).square()
    matches = [
        torch.from_numpy(linear_sum_assignment(cost)[1])
        for cost in costs.reshape(-1, half, half).cpu().numpy()
    ]
    others = second.gather(-1, torch.stack(matches).reshape(first.shape))
    partners.scatter_(-1, first, others)
    partners.scatter_(-1, others, first)
    return partners.to(x.device)


def warp_shares(
    rows: Tensor,
    *,
    lam: float | Tensor,
    partners: Tensor,
    alpha: float | Tensor,
    width: float | Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Return a share for each pair from that of a batch: far pairs are mixed less (SK-Mixup).

    With :math:`d_i` the squared distance of row :math:`i` and its partner, divided by the mean of
    these over the batch, :math:`\tau_i = \alpha \exp((1 - d_i) / (2 w^2))`, and the share is where
    the distribution function of :math:`\mathrm{Beta}(\tau_i, \tau_i)` has the value
    :math:`\lambda` (Bouniot et al., ICLR 2025). If :math:`\lambda` is uniform, the share of a pair
    is a draw from its own Beta distribution: near the middle where the two are close, near 0 or 1
    where they are far apart. Where all pairs are equally far, or the width is large, all shares are
    those of mixup with Beta(alpha, alpha).

    Args:
        rows: What distances are measured in, inputs or targets: ``(..., n, d)``.
        lam: A number in [0, 1], or a tensor of the leading shape ``(...)``.
        partners: The row that each row is mixed with, int64 ``(..., n)``.
        alpha: Concentration for a pair at the mean distance, greater than 0; a number or a tensor
            of the leading shape.
        width: Width of the kernel, greater than 0; a number or a tensor of the leading shape.
        mask: True where a value of ``rows`` is there, as in :func:`nearest_partners`.

    Returns:
        The shares in [0, 1], float64 ``(..., n)``; a constant to autograd.

    Example:
        >>> rows = torch.tensor([[0.0], [1.0], [5.0]])
        >>> warp_shares(rows, lam=0.1, partners=torch.tensor([1, 2, 0]), alpha=1.0, width=0.5)
        tensor([0.3234, 0.0635, 0.0003], dtype=torch.float64)
    """
    own = _comparable(rows, mask, name="rows")
    check_partners("partners", partners, rows.shape[:-1])
    leading = rows.shape[:-2]
    lam = _per_matrix(check_per_matrix("lam", lam, leading, low=0.0, high=1.0))
    alpha = _per_matrix(check_per_matrix("alpha", alpha, leading, low=0.0, open_low=True))
    width = _per_matrix(check_per_matrix("width", width, leading, low=0.0, open_low=True))
    others = select_rows(own, partners.to(rows.device))
    apart = (own[..., : partners.shape[-1], :] - others).double().square().sum(-1).cpu()
    mean = apart.mean(-1, keepdim=True)
    # Where nothing is apart every pair is at the mean distance.
    relative = torch.where(mean > 0.0, apart / mean, 1.0)
    # Not by the square of the width, which may be 0 where the width is not.
    tau = alpha * torch.exp((1.0 - relative) / width / width / 2.0)
    tau = tau.clamp(_WEAKEST, _STRONGEST)
    shares = _random.beta_at(tau.numpy(), lam.expand_as(tau).contiguous().numpy())
    return torch.from_numpy(shares).to(rows.device)


def _per_matrix(value: float | Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64, device="cpu")[..., None]


def _comparable(x: Tensor, mask: Tensor | None, name: str = "x") -> Tensor:
    """Return rows whose distances are in proportion to those of ``x``, and cannot overflow."""
    check_floating(name, x)
    if x.ndim < 2 or x.numel() == 0:
        raise ArgumentError(f"`{name}` must be (..., n, d) and not empty, got {tuple(x.shape)}.")
    rows = x.detach().to(working_dtype(x))
    if mask is not None:
        check_mask(mask, x, name)
        rows = torch.where(mask, rows, 0.0)
    check_finite(**{name: rows})
    largest = rows.abs().amax(dim=(-2, -1), keepdim=True)
    rows = rows / torch.where(largest > 0.0, largest, 1.0)
    if mask is None:
        return rows
    counts = mask.sum(dim=-2, keepdim=True).clamp(min=1)
    return torch.where(mask, rows, rows.sum(dim=-2, keepdim=True) / counts)


def _distances(a: Tensor, b: Tensor) -> Tensor:
    # Not by matrix products: rows that are equally far must be so in every stack, to the last bit,
    # or a run would depend on those beside it.
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def _check_row_numbers(name: str, numbers: Tensor, x: Tensor) -> None:
    if not isinstance(numbers, Tensor) or numbers.shape != x.shape[:-1]:
        came = tuple(numbers.shape) if isinstance(numbers, Tensor) else type(numbers).__name__
        raise ArgumentError(
            f"`{name}` must be a tensor with a number for each row, {tuple(x.shape[:-1])}, "
            f"got {came}."
        )
