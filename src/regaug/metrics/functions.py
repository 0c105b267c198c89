"""RMSE, MAE, MAPE, R2 and Pearson's R, of all targets together: one number for each run."""

import torch
from torch import Tensor

from regaug.exceptions import ArgumentError, ArgumentTypeError


def rmse(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the root of the mean squared error, over all rows and targets together.

    As all the metrics here, it takes one run or a stack of runs, computes in float64, and is NaN or
    infinite for a run whose predictions are.

    Args:
        prediction: ``(..., n, m)``.
        target: The same shape.
        rows: Which rows count, bool, ``(..., n)``; the others may hold anything. None counts all.

    Returns:
        A number for each run, ``(...)``, float64.

    Example:
        >>> rmse(torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [9.0]])).item()
        5.0
    """
    prediction, target, n = counted(prediction, target, rows)
    squares = (prediction - target).square().sum(dim=(-2, -1))
    return (squares / (n * target.shape[-1])).sqrt()


def mae(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the mean absolute error, over all rows and targets together; see :func:`rmse`.

    Example:
        >>> mae(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [4.0]])).item()
        1.0
    """
    prediction, target, n = counted(prediction, target, rows)
    return (prediction - target).abs().sum(dim=(-2, -1)) / (n * target.shape[-1])


def mape(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the mean absolute error as a percentage of the target; see :func:`rmse`.

    Targets that are zero have no such percentage and are left out; NaN if all are.

    Example:
        >>> mape(torch.tensor([[1.0], [2.0], [7.0]]), torch.tensor([[1.0], [4.0], [0.0]])).item()
        25.0
    """
    prediction, target, _ = counted(prediction, target, rows)
    # Rows that do not count have become zeros, so this leaves them out as well.
    is_zero = target == 0
    share = (prediction - target).abs() / target.abs()
    total = share.masked_fill(is_zero, 0.0).sum(dim=(-2, -1))
    return 100.0 * total / (~is_zero).sum(dim=(-2, -1))


def r2(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the share of the targets' variance that is explained; see :func:`rmse`.

    It is computed for each target and averaged over the targets that vary; NaN if none does.

    Example:
        >>> target = torch.tensor([[1.0], [2.0], [3.0]])
        >>> r2(target.flip(0), target).item()
        -3.0
    """
    prediction, target, _ = counted(prediction, target, rows)
    spread = centered(target, rows).square().sum(dim=-2)
    left = (prediction - target).square().sum(dim=-2)
    return mean_over_varying(1.0 - left / spread, spread)


def pearson(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return Pearson's correlation of predictions and targets; see :func:`rmse`.

    It is computed for each target and averaged over the targets that vary; NaN if none does. A
    prediction that does not vary says nothing of a target that does: their correlation counts as 0.

    Example:
        >>> target = torch.tensor([[1.0], [2.0], [3.0]])
        >>> round(pearson(7 - 2 * target, target).item(), 6)
        -1.0
    """
    prediction, target, _ = counted(prediction, target, rows)
    p, t = centered(prediction, rows), centered(target, rows)
    p_norm, t_norm = (torch.linalg.vector_norm(v, dim=-2, keepdim=True) for v in (p, t))
    # Each side is divided by its own norm, because a product of the two could under- or overflow.
    r = ((p / p_norm) * (t / t_norm)).sum(dim=-2).clamp(-1.0, 1.0)
    return mean_over_varying(r.masked_fill(p_norm.squeeze(-2) == 0, 0.0), t_norm.squeeze(-2))


def spreads(target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the standard deviation of each target among the rows that count; 1 for a constant one.

    From ``(..., n, m)`` to ``(..., m)``, float64.

    Example:
        >>> spreads(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
        tensor([1., 1.], dtype=torch.float64)
    """
    _, target, n = counted(target, target, rows)
    count = n if isinstance(n, int) else n.unsqueeze(-1)
    found = (centered(target, rows).square().sum(dim=-2) / count).sqrt()
    return torch.where(found == 0, 1.0, found)


def check_tensors(prediction: Tensor, target: Tensor) -> None:
    """Refuse what is not two tensors."""
    for name, value in (("prediction", prediction), ("target", target)):
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"`{name}` must be a torch.Tensor, got {type(value).__name__}. "
                f"Convert it with torch.as_tensor({name})."
            )


def check_shapes(prediction: Tensor, target: Tensor) -> None:
    """Refuse what is not two tensors of one shape ``(..., n, m)`` that is not empty."""
    check_tensors(prediction, target)
    if prediction.shape != target.shape or target.ndim < 2:
        raise ArgumentError(
            "`prediction` and `target` must have one shape, (..., n, m), "
            f"got {tuple(prediction.shape)} and {tuple(target.shape)}."
        )
    if target.shape[-2] == 0 or target.shape[-1] == 0:
        raise ArgumentError(
            f"`prediction` and `target` must not be empty, got shape {tuple(target.shape)}."
        )


def counted(
    prediction: Tensor, target: Tensor, rows: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | int]:
    """Return both in float64, with zeros in the rows that do not count, and how many do count."""
    check_shapes(prediction, target)
    prediction, target = prediction.detach().double(), target.detach().double()
    if rows is None:
        return prediction, target, target.shape[-2]
    is_tensor = isinstance(rows, Tensor)
    if not is_tensor or rows.dtype != torch.bool or rows.shape != target.shape[:-1]:
        came = f"{rows.dtype} of shape {tuple(rows.shape)}" if is_tensor else type(rows).__name__
        raise ArgumentError(
            f"`rows` must be a bool mask of shape {tuple(target.shape[:-1])}, got {came}."
        )
    left_out = ~rows[..., None]
    prediction, target = (v.masked_fill(left_out, 0.0) for v in (prediction, target))
    return prediction, target, rows.sum(dim=-1)


def centered(values: Tensor, rows: Tensor | None) -> Tensor:
    """Subtract each column's mean; a constant column becomes exactly zero."""
    # A mean of equal numbers is rounded; the mean of their distances to one of them is zero.
    if rows is None:
        shifted = values - values[..., :1, :]
        return shifted - shifted.mean(dim=-2, keepdim=True)
    first = rows.int().argmax(dim=-1)[..., None, None]
    left_out = ~rows[..., None]
    shifted = (values - values.take_along_dim(first, dim=-2)).masked_fill(left_out, 0.0)
    mean = shifted.sum(dim=-2, keepdim=True) / rows.sum(dim=-1)[..., None, None]
    return (shifted - mean).masked_fill(left_out, 0.0)


def mean_over_varying(values: Tensor, spread: Tensor) -> Tensor:
    """Average over the targets (last axis) whose spread is not zero; NaN if there are none."""
    is_constant = spread == 0
    return values.masked_fill(is_constant, 0.0).sum(dim=-1) / (~is_constant).sum(dim=-1)
