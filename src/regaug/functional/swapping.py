"""Swapping of columns between rows: Feat-Mix (Chen et al., 2023) and swap noise."""

import torch
from torch import Tensor

from regaug._checks import check_floating, check_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.mixing import check_partners, select_rows
from regaug.functional.precision import cast, working_dtype


def feature_mix(
    x: Tensor,
    y: Tensor,
    *,
    partners: Tensor,
    swapped: Tensor,
    blocks: Tensor | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Give rows of a batch some columns of other rows of it.

    Columns that belong together are a block, and a block comes from one row as a whole. With
    :math:`s_{ib} = 1` where row :math:`i` has block :math:`b` from its partner :math:`j`, and 0
    elsewhere, its column :math:`c` of that block and its target become

    .. math:: x_{ic} + s_{ib} (x_{jc} - x_{ic}), \qquad
        y_i + \Lambda_i (y_j - y_i), \quad \Lambda_i = \sum_b w_b s_{ib}.

    Args:
        x: Inputs of shape ``(..., n, d)``.
        y: Targets of shape ``(..., n, m)``.
        partners: The row that each row has columns from, from 0 to n - 1: int64, ``(..., n)``.
        swapped: True where a block is the partner's: bool, ``(..., n, blocks)``.
        blocks: The block of each column, counted from 0: int64, ``(d,)`` or ``(..., d)``. Every
            column is one of its own if None.
        weights: What each block is worth to each target, ``(..., blocks, m)``, or
            ``(..., blocks, 1)`` for all of them alike: at least 0, and 1 at most in sum. All blocks
            are worth the same if None; zeros keep the targets as they are.

    Returns:
        New inputs and targets; shapes, dtypes and device are kept.

    Example:
        >>> x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.0], [8.0]])
        >>> swapped = torch.tensor([[True, False], [False, False]])
        >>> feature_mix(x, y, partners=torch.tensor([1, 0]), swapped=swapped)
        (tensor([[3., 2.], [3., 4.]]), tensor([[4.], [8.]]))
    """
    check_rows(x, y)
    check_partners("partners", partners, x.shape[:-1])
    if partners.shape[-1] != x.shape[-2]:
        raise ArgumentError(
            f"`partners` must have one for each of the {x.shape[-2]} rows, got "
            f"{partners.shape[-1]}."
        )
    blocks = _check_blocks(blocks, swapped, x)
    weights = _check_weights(weights, swapped.shape[-1], x, y)
    swapped, partners = swapped.to(x.device), partners.to(x.device)
    taken = swapped
    if blocks is not None:
        taken = swapped.gather(-1, blocks.to(x.device)[..., None, :].expand(x.shape))
    new_x = torch.where(taken, select_rows(x, partners), x)
    dtype = working_dtype(y)
    share = _sum_up(swapped, weights).to(dtype)
    own, others = y.to(dtype), select_rows(y, partners).to(dtype)
    return new_x, cast(torch.lerp(own, others, share), y.dtype)


def _sum_up(swapped: Tensor, weights: Tensor | None) -> Tensor:
    """Return the share of the partners in the targets, ``(..., n, m)`` or ``(..., n, 1)``."""
    if weights is None:
        return swapped.sum(dim=-1, keepdim=True).double() / swapped.shape[-1]
    # Weights that sum to one do so up to rounding.
    return (swapped.double() @ weights.to(swapped.device).double()).clamp(0.0, 1.0)


def _check_blocks(blocks: Tensor | None, swapped: Tensor, x: Tensor) -> Tensor | None:
    if not isinstance(swapped, Tensor) or swapped.dtype != torch.bool:
        came = swapped.dtype if isinstance(swapped, Tensor) else type(swapped).__name__
        raise ArgumentTypeError(f"`swapped` must be a tensor of torch.bool, got {came}.")
    *rows, columns = x.shape
    if list(swapped.shape[:-1]) != rows or not swapped.shape[-1]:
        raise ArgumentError(
            f"`swapped` must be (..., n, blocks) for inputs of shape {tuple(x.shape)}, got "
            f"{tuple(swapped.shape)}."
        )
    count = swapped.shape[-1]
    if blocks is None:
        if count != columns:
            raise ArgumentError(
                f"`swapped` must have a flag for each of the {columns} columns, got {count}. Say "
                "which of them belong together: `blocks`."
            )
        return None
    if not isinstance(blocks, Tensor) or blocks.dtype != torch.int64:
        came = blocks.dtype if isinstance(blocks, Tensor) else type(blocks).__name__
        raise ArgumentTypeError(f"`blocks` must be an int64 tensor of block numbers, got {came}.")
    if blocks.shape not in ((columns,), (*rows[:-1], columns)):
        raise ArgumentError(
            f"`blocks` must have a number for each of the {columns} columns, got shape "
            f"{tuple(blocks.shape)}."
        )
    lowest, highest = (int(bound) for bound in blocks.aminmax())
    if lowest < 0 or highest >= count:
        raise ArgumentError(
            f"`blocks` must be numbers of the {count} blocks of `swapped`, from 0 to {count - 1}, "
            f"got {lowest if lowest < 0 else highest}."
        )
    return blocks


def _check_weights(weights: Tensor | None, blocks: int, x: Tensor, y: Tensor) -> Tensor | None:
    if weights is None:
        return None
    check_floating("weights", weights)
    leading, targets = tuple(x.shape[:-2]), y.shape[-1]
    *before, count, width = weights.shape if weights.ndim > 1 else (0, 0)
    if count != blocks or width not in (1, targets) or tuple(before) not in ((), leading):
        raise ArgumentError(
            f"`weights` must be (..., {blocks}, {targets}), a row for each block, got "
            f"{tuple(weights.shape)}."
        )
    weights = weights.detach()
    low, most = float(weights.amin()), float(weights.sum(dim=-2).amax())
    if not (low >= 0.0 and most <= 1.01):  # NaN is none of it; half precision rounds
        raise ArgumentError(
            "`weights` must be at least 0 and 1 at most in sum, got a smallest one of "
            f"{low:g} and a sum of {most:g}."
        )
    return weights
