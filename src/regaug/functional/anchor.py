"""ADA as a function of a batch, its clusters and a strength (Schneider et al., NeurIPS 2023)."""

import math

import torch
from torch import Tensor

from regaug._checks import check_finite, check_per_matrix, check_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.precision import cast, working_dtype


def ada(x: Tensor, y: Tensor, *, clusters: Tensor, gamma: float | Tensor) -> tuple[Tensor, Tensor]:
    r"""Move the rows of every cluster toward their mean or away from it.

    With :math:`P` the orthogonal projection on the one-hot columns of the clusters,
    :math:`s = \sqrt\gamma - 1` and :math:`\mu` the mean of the batch, Anchor Data Augmentation is

    .. math:: \mu + \frac{(I + s P)(X - \mu)}{1 + s P \mathbf 1}.

    Row i of :math:`P X` is the mean of row i's cluster within the batch. The one-hot columns add up
    to a column of ones, so :math:`P \mathbf 1 = \mathbf 1` and :math:`\mu` cancels out:

    .. math:: P X + (X - P X) / \sqrt\gamma.

    The mean of every cluster, and so of the batch, stays where it is; so does a row that is alone
    in its cluster.

    Args:
        x: Inputs of shape ``(..., n, d)``.
        y: Targets of shape ``(..., n, m)``.
        clusters: Cluster of each row, whole numbers of shape ``(..., n)``. They need not be
            contiguous, and a cluster need not have a row in the batch.
        gamma: Strength, greater than 0: above 1 rows come closer to their cluster's mean, below 1
            they move away, 1 leaves the batch as it is. A number or a tensor ``(...)``.

    Returns:
        New inputs and targets; shapes, dtypes and device are kept.

    Example:
        >>> x, y = torch.tensor([[0.0], [2.0], [9.0]]), torch.tensor([[0.0], [1.0], [5.0]])
        >>> new_x, new_y = ada(x, y, clusters=torch.tensor([0, 0, 7]), gamma=4.0)
        >>> new_x.flatten(), new_y.flatten()
        (tensor([0.5000, 1.5000, 9.0000]), tensor([0.2500, 0.7500, 5.0000]))
    """
    check_rows(x, y)
    _check_clusters(clusters, x.shape[:-1])
    gamma = check_per_matrix("gamma", gamma, x.shape[:-2], low=0.0, open_low=True)
    if isinstance(gamma, float) and gamma == 1.0:
        return x, y

    labels, groups = torch.unique(clusters, return_inverse=True)
    n_groups = len(labels) * math.prod(x.shape[:-2])
    if x.ndim > 2:  # the same label in two batches of a stack means two groups
        offsets = torch.arange(0, n_groups, len(labels), device=groups.device)
        groups = groups + offsets.reshape(*x.shape[:-2], 1)
    dtype = working_dtype(x, y)
    rows = torch.cat([x.to(dtype), y.to(dtype)], dim=-1)
    means = group_means(rows.reshape(-1, rows.shape[-1]), groups.flatten(), n_groups)
    if not bool(means.isfinite().all()):
        check_finite(x=x, y=y)
    if isinstance(gamma, Tensor):
        share: float | Tensor = gamma.double().rsqrt().to(rows)[..., None, None]
    else:
        share = 1.0 / math.sqrt(gamma)
        if share > torch.finfo(dtype).max:
            least = torch.finfo(dtype).max ** -2.0
            raise ArgumentError(f"`gamma` must be at least {least:.1g} in {dtype}, got {gamma!r}.")
    new = means.to(dtype)[groups].lerp(rows, share)
    new_x, new_y = new.split_with_sizes((x.shape[-1], y.shape[-1]), -1)
    return cast(new_x, x.dtype), cast(new_y, y.dtype)


def group_means(rows: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """Return the mean row of each group in float64, ``(n_groups, d)``; zeros for an empty one.

    Sums of many rows lose digits, hence float64. Adding by index needs neither an n x n projection
    nor a matrix product, which autocast would carry out in half precision.
    """
    sums = rows.new_zeros(n_groups, rows.shape[1], dtype=torch.float64)
    sums = sums.index_add(0, groups, rows.double())
    return sums / groups.bincount(minlength=n_groups).clamp(min=1)[:, None]


def _check_clusters(clusters: Tensor, shape: torch.Size) -> None:
    if not isinstance(clusters, Tensor):
        raise ArgumentTypeError(
            f"`clusters` must be a torch.Tensor, got {type(clusters).__name__}. "
            "Convert it with torch.as_tensor(clusters)."
        )
    if clusters.is_floating_point() or clusters.is_complex() or clusters.dtype == torch.bool:
        raise ArgumentTypeError(
            f"`clusters` must hold whole numbers, got {clusters.dtype}. "
            "Convert it with clusters.long()."
        )
    if clusters.shape != shape:
        raise ArgumentError(
            f"`clusters` must have one number for each row, shape {tuple(shape)}, "
            f"got shape {tuple(clusters.shape)}."
        )
