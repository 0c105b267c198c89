"""How much the columns of a table tell about its targets."""

import math

import torch
from torch import Tensor

from regaug._checks import check_finite, check_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError

# A cell of the table of two variables has so many rows on average, up to the largest table.
_ROWS_OF_A_CELL, _MOST_BINS = 5, 16
# Numbers that are looked at in one go, so that wide inputs do not fill the memory.
_SOME = 2**22


def mutual_information(x: Tensor, y: Tensor, *, blocks: Tensor | None = None) -> Tensor:
    r"""Estimate the mutual information of blocks of columns with targets, in nats.

    Columns and targets are cut into bins with equally many rows, equal values in one bin, and

    .. math:: I = \sum_{ab} p_{ab} \log \frac{p_{ab}}{p_a p_b}

    is taken over the cells :math:`ab` that a variable and a target have. What chance gives,
    :math:`(A - 1) (B - 1) / 2n` for so many bins, is subtracted. The columns of a block with two
    values each, such as those of a category, are one variable, whose values are the bins. Of
    several variables in a block the one that tells most counts.

    Args:
        x: Inputs of shape ``(n, d)``.
        y: Targets of shape ``(n, m)``.
        blocks: The block of each column, int64 ``(d,)``, all numbers from 0 on; every column is one
            of its own if None.

    Returns:
        A float64 tensor ``(blocks, m)``, at least 0; it is a constant to autograd.

    Example:
        >>> x = torch.tensor([0.0, 0.0, 1.0, 1.0]).repeat(500)[:, None]
        >>> mutual_information(x, x)  # all of it: the logarithm of 2
        tensor([[0.6929]], dtype=torch.float64)
    """
    check_rows(x, y)
    if x.ndim != 2:
        raise ArgumentError(f"`x` must be (n, d), got {tuple(x.shape)}.")
    check_finite(x=x, y=y)
    x, y, (n, columns) = x.detach(), y.detach(), x.shape
    if blocks is None:
        blocks = torch.arange(columns, device=x.device)
    else:
        _check_blocks(blocks, columns)
    blocks = blocks.to(x.device)
    bins = max(2, min(_MOST_BINS, math.isqrt(n // _ROWS_OF_A_CELL)))
    targets = _bins_of(y, bins)
    found = torch.zeros(int(blocks.max()) + 1, y.shape[1], dtype=torch.float64, device=x.device)

    def note(codes: Tensor, levels: int, owners: Tensor) -> None:
        told = torch.stack([_plug_in(codes, levels, own, bins) for own in targets], dim=1)
        found.scatter_reduce_(0, owners[:, None].expand_as(told), told, "amax")

    low, high = x.amin(dim=0), x.amax(dim=0)
    is_together = ((x == low) | (x == high)).all(dim=0) & (blocks.bincount()[blocks] > 1)
    for owner in torch.unique(blocks[is_together]):
        flags = x[:, is_together & (blocks == owner)]
        levels, codes = torch.unique(flags, dim=0, return_inverse=True)
        note(codes[None], len(levels), owner[None])
    for some in torch.split((~is_together).nonzero().squeeze(1), max(1, _SOME // n)):
        note(_bins_of(x[:, some], bins), bins, blocks[some])
    return found


def _check_blocks(blocks: Tensor, columns: int) -> None:
    if not isinstance(blocks, Tensor) or blocks.dtype != torch.int64:
        came = blocks.dtype if isinstance(blocks, Tensor) else type(blocks).__name__
        raise ArgumentTypeError(f"`blocks` must be an int64 tensor of block numbers, got {came}.")
    if blocks.shape != (columns,):
        raise ArgumentError(
            f"`blocks` must have a number for each of the {columns} columns, got shape "
            f"{tuple(blocks.shape)}."
        )
    lowest, highest = (int(bound) for bound in blocks.aminmax())
    if lowest < 0 or highest >= columns:
        wrong = lowest if lowest < 0 else highest
        raise ArgumentError(f"`blocks` must be numbers from 0 to {columns - 1}, got {wrong}.")


def _bins_of(values: Tensor, bins: int) -> Tensor:
    """Return the bins ``(d, n)`` of the values of columns ``(n, d)``."""
    own = values.T.contiguous()
    order = own.sort(dim=1).values
    below, through = (torch.searchsorted(order, own, right=right) for right in (False, True))
    # The middle of the ranks that equal values have: a frequent value does not hide the others.
    return (below + through).mul_(bins).div_(2 * len(values), rounding_mode="floor")


def _plug_in(codes: Tensor, levels: int, target: Tensor, bins: int) -> Tensor:
    """Return the information of variables ``(v, n)`` and a target ``(n,)``, both in bins."""
    count, n = codes.shape
    firsts = torch.arange(count, device=codes.device)[:, None] * levels
    cells = ((firsts + codes) * bins + target).flatten().bincount(minlength=count * levels * bins)
    share = cells.reshape(count, levels, bins).double() / n
    by_level, by_bin = share.sum(dim=2), share.sum(dim=1)
    degrees = ((by_level > 0).sum(dim=1) - 1) * ((by_bin > 0).sum(dim=1) - 1)
    both = _entropy(by_level) + _entropy(by_bin) - _entropy(share)
    return (both - degrees.double() / (2 * n)).clamp(min=0.0)


def _entropy(shares: Tensor) -> Tensor:
    found: Tensor = torch.special.entr(shares).flatten(1).sum(dim=1)
    return found
