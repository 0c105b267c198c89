"""How many dimensions a cloud of points really has: TwoNN and the linear dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug._checks import as_numbers, check_finite, check_integer, check_list, check_range
from regaug.exceptions import ArgumentError, TooFewPointsError
from regaug.functional.decomposition import rank_at_share

# A tree beats comparing all pairs up to about this many columns, and from this many points on.
TREE_COLUMNS, TREE_POINTS = 15, 1_000
# Above this many columns matrix products beat comparing pairs, however few points there are.
_LONG = 64
# Neighbors that are measured again exactly after a search by matrix products.
_CANDIDATES = 8
# Points nearer than this, as a square and beside the size of the set, lose digits in products.
_CLOSE = 1e-6
Values = NDArray[np.float64]
Points = NDArray[Any] | Tensor


@dataclass(frozen=True, eq=False)
class TwoNN:
    """An intrinsic dimension and what it was read from.

    Attributes:
        dimension: Slope of the line through the origin that fits the two coordinates below.
        dimension_ml: The maximum-likelihood estimate, N / sum(log mu), over all usable points.
        n_dropped: Points left out because another point lies exactly on them.
        log_mu: log(r2 / r1) of the points in the fit, ascending.
        neg_log_survival: -log(1 - F) of the same points, F being the empirical distribution of mu.
    """

    dimension: float
    dimension_ml: float
    n_dropped: int
    log_mu: NDArray[np.float64]
    neg_log_survival: NDArray[np.float64]


def two_nn(
    points: Points, *, keep: float = 0.9, max_points: int | None = None, seed: int = 0
) -> TwoNN:
    r"""Estimate the intrinsic dimension of a set of points (Facco et al., 2017).

    With :math:`r_1 \le r_2` the distances of a point to its two nearest neighbors,
    :math:`\mu = r_2 / r_1` has the distribution :math:`F(\mu) = 1 - \mu^{-d}`: :math:`d` is the
    slope of :math:`-\log(1 - F)` against :math:`\log \mu`. Neighbors are exact and no matrix of
    all distances is held. The boundary of a set pulls the estimate down: a uniform cube in 10
    dimensions comes out about 13 % low.

    Args:
        points: ``(n, *features)``, a NumPy array or a tensor; at least three of them different.
        keep: Share of the points with the smallest mu that the line is fitted to.
        max_points: Use a random part of this many points if there are more. All are used by
            default: a million points are quick up to 15 columns, where a tree finds the neighbors.
        seed: Seed of that choice.

    Example:
        >>> t = np.random.default_rng(0).uniform(0, 6.28, 2000)
        >>> circle = np.column_stack([np.cos(t), np.sin(t)])
        >>> round(two_nn(circle).dimension)
        1
    """
    keep = check_range("keep", keep, 0.0, 1.0, open_low=True)
    rows = _as_rows(points)
    if max_points is not None and len(rows) > check_integer("max_points", max_points, 3):
        rng = _random.numpy_generator(_random.Stream.POINTS, seed)
        chosen = rng.choice(len(rows), max_points, replace=False)
        rows = rows[torch.from_numpy(np.sort(chosen)).to(rows.device)]
    nearest, second = _two_nearest(rows)
    is_usable = (nearest > 0) & np.isfinite(nearest) & np.isfinite(second)
    log_mu = np.sort(np.log(second[is_usable]) - np.log(nearest[is_usable]))
    n = len(log_mu)
    if n < 3:
        raise TooFewPointsError(
            f"`points` must have at least 3 rows without a duplicate, got {n} of {len(rows)}."
        )
    used = min(int(keep * n), n - 1)  # never the last: there 1 - F is zero
    neg_log_survival = -np.log1p(-np.arange(1, used + 1) / n)
    log_mu_sum, fitted = float(log_mu.sum()), log_mu[:used]
    square = float(fitted @ fitted)
    # Points on a regular grid have mu = 1 everywhere: no finite slope fits them.
    dimension = float(fitted @ neg_log_survival) / square if square > 0 else np.inf
    dimension_ml = n / log_mu_sum if log_mu_sum > 0 else np.inf
    return TwoNN(dimension, dimension_ml, len(rows) - n, fitted, neg_log_survival)


def two_nn_of_each(points: Tensor, *, keep: float = 0.9) -> Values:
    """Return ``two_nn(one, keep=keep).dimension`` of every set of few points ``(sets, n, d)``.

    All distances of a set are computed at once. NaN stands for a set with fewer than three points
    without a duplicate.
    """
    n_sets, n, _ = points.shape
    if n < 3:
        return np.full(n_sets, np.nan)
    squares = _squared_distances(points.detach().double()).cpu().numpy()
    nearest = np.partition(squares, 2, axis=-1)[:, :, :2]
    nearest.sort(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mu = 0.5 * (np.log(nearest[:, :, 1]) - np.log(nearest[:, :, 0]))
    is_usable = (nearest[:, :, 0] > 0) & np.isfinite(log_mu)
    log_mu[~is_usable] = np.inf
    log_mu.sort(axis=1)
    count = is_usable.sum(axis=1)[:, None]
    rank = np.arange(1, n + 1)
    is_fitted = rank <= np.minimum((keep * count).astype(np.int64), count - 1)
    log_mu[~is_fitted] = 0.0
    survival = np.where(is_fitted, rank / np.maximum(count, 1), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope: Values = -(log_mu * np.log1p(-survival)).sum(axis=1) / np.square(log_mu).sum(axis=1)
    # On a regular grid mu is 1 everywhere: no finite slope fits.
    slope[np.isnan(slope)] = np.inf
    slope[count[:, 0] < 3] = np.nan
    return slope


def linear_dimension(
    points: Points, *, shares: Sequence[float] = (0.9, 0.95, 0.99)
) -> tuple[int, ...]:
    """Count, for each share, the singular values that together make up at most that share.

    This is the linear dimension of the paper's appendix and the ``k`` of FOMA_rho for the whole
    set. The points are taken as they are; subtract their mean first for principal components.

    Args:
        points: ``(n, *features)``, a NumPy array or a tensor.
        shares: Shares of the sum of singular values, each in [0, 1].

    Example:
        >>> linear_dimension(np.diag([6.0, 3.0, 1.0]), shares=(0.5, 0.9, 1.0))
        (0, 2, 3)
    """
    own = check_list("shares", shares)
    singular_values = torch.linalg.svdvals(_as_rows(points))
    return tuple(int(rank_at_share(singular_values, share)) for share in own)


def _as_rows(points: Points) -> Tensor:
    """Return the points as the rows of a finite float64 tensor."""
    rows = as_numbers("points", points)
    if rows.ndim < 2 or rows.numel() == 0:
        raise ArgumentError(
            f"`points` must be (n, *features) and not empty, got shape {tuple(rows.shape)}."
        )
    rows = rows.reshape(len(rows), -1).double()
    check_finite(points=rows)
    return rows


def _two_nearest(rows: Tensor, *, block: int = 2**22) -> tuple[Values, Values]:
    """Return the distances of every row to its nearest and to its second nearest other row.

    A block of them is held in memory at a time (32 MB), whatever the number of points.
    """
    n, columns = rows.shape
    if n < 3:
        return np.full(n, np.inf), np.full(n, np.inf)
    if columns <= TREE_COLUMNS and n > TREE_POINTS:
        return _search_by_tree(rows.cpu().numpy())
    is_small = n <= TREE_POINTS and columns <= _LONG
    search = _search_directly if is_small else _search_by_products
    rows = rows - rows.mean(dim=0)
    blocks = torch.split(torch.arange(n, device=rows.device), max(block // n, 1))
    nearest = torch.cat([search(indices, rows) for indices in blocks]).cpu().numpy()
    return nearest[:, 0], nearest[:, 1]


def _squared_distances(sets: Tensor) -> Tensor:
    """Return the squares of all distances within every set; infinity from a point to itself."""
    sets = sets - sets.mean(dim=1, keepdim=True)
    products = sets @ sets.mT
    own = products.diagonal(dim1=1, dim2=2)
    squares = (own.unsqueeze(1) + own.unsqueeze(2)).sub_(products, alpha=2.0)
    squares.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    # This loses the digits that count when two points are close: those sets are measured again.
    is_close = squares.amin(dim=(1, 2)) <= _CLOSE * own.amax(dim=1)
    if bool(is_close.any()):
        some = sets[is_close]
        apart = torch.cdist(some, some, compute_mode="donot_use_mm_for_euclid_dist").square_()
        apart.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        squares[is_close] = apart
    return squares


def _search_by_tree(rows: Values) -> tuple[Values, Values]:
    from scipy.spatial import KDTree

    tree = KDTree(rows, balanced_tree=False)
    order = tree.indices  # asking for neighbors side by side in the tree finds it in the cache
    found = tree.query(rows[order], k=3, workers=torch.get_num_threads())[0]
    distances = np.empty_like(found)
    distances[order] = found
    return distances[:, 1], distances[:, 2]


def _search_directly(indices: Tensor, rows: Tensor) -> Tensor:
    """Return the two smallest distances of some rows to the others, from all of them."""
    distances = torch.cdist(rows[indices], rows, compute_mode="donot_use_mm_for_euclid_dist")
    distances[torch.arange(len(indices), device=rows.device), indices] = torch.inf
    return distances.topk(2, largest=False).values


def _search_by_products(indices: Tensor, rows: Tensor) -> Tensor:
    """Like :func:`_search_directly` for many rows: find candidates fast, then measure those.

    The fast distance |x|^2 + |y|^2 - 2 xy loses the digits that count when two points are close.
    """
    block, squares = rows[indices], rows.square().sum(1)
    rough = torch.addmm(squares, block, rows.T, alpha=-2.0)
    rough[torch.arange(len(indices), device=rows.device), indices] = torch.inf
    candidates = rough.topk(min(_CANDIDATES, len(rows) - 1), largest=False).indices
    exact = [torch.linalg.vector_norm(rows[column] - block, dim=1) for column in candidates.T]
    return torch.stack(exact, dim=1).topk(2, largest=False).values
