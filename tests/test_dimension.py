"""TwoNN and the linear dimension on sets whose dimension is known, and against scikit-dimension."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug import dimension as module
from regaug import linear_dimension, two_nn
from regaug.exceptions import ArgumentError, NonFiniteError, TooFewPointsError


def make_sphere(d, rng, n=2000):
    points = rng.standard_normal((n, d + 1))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def make_flat(d, rng, n=2000):
    """Gaussian points in a d-dimensional subspace of 2 d + 3 dimensions."""
    basis = np.linalg.qr(rng.standard_normal((2 * d + 3, d)))[0]
    return rng.standard_normal((n, d)) @ basis.T


def make_swiss_roll(d, rng, n=2000):
    angle = 1.5 * np.pi * (1 + 2 * np.sqrt(rng.uniform((1 / 3) ** 2, 1, n)))
    return np.column_stack([angle * np.cos(angle), 21 * rng.uniform(size=n), angle * np.sin(angle)])


KNOWN = [
    (make_sphere, 1, 0.05),
    (make_sphere, 2, 0.05),
    (make_sphere, 5, 0.05),
    (make_sphere, 10, 0.10),
    (make_flat, 1, 0.05),
    (make_flat, 2, 0.05),
    (make_flat, 5, 0.05),
    (make_flat, 10, 0.10),
    (make_swiss_roll, 2, 0.05),
]


@pytest.mark.parametrize(("make", "d", "bound"), KNOWN)
def test_known_dimensions_are_found(make, d, bound):
    draws = [two_nn(make(d, np.random.default_rng(seed))).dimension for seed in range(10)]
    assert np.mean(draws) == pytest.approx(d, rel=bound)


@pytest.mark.filterwarnings("ignore")  # of the oracle's own making
@pytest.mark.parametrize(("make", "d", "bound"), KNOWN)
def test_agrees_with_scikit_dimension(make, d, bound):
    from skdim.id import TwoNN

    points = make(d, np.random.default_rng(0))
    assert two_nn(points).dimension == pytest.approx(TwoNN().fit(points).dimension_, rel=0.03)


def by_definition(points, keep=0.9):
    """Slow and obvious, from all distances."""
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = np.sort(distance, axis=1)[:, :2]
    nearest = nearest[nearest[:, 0] > 0]
    mu = np.sort(nearest[:, 1] / nearest[:, 0])
    n = len(mu)
    used = int(np.floor(keep * n))
    x, y = np.log(mu[:used]), -np.log(1 - np.arange(1, used + 1) / n)
    return (x @ y) / (x @ x), n / np.log(mu).sum()


@given(st.integers(20, 80), st.integers(1, 20), st.integers(0, 999))
def test_agrees_with_the_definition(n, d, seed):
    points = np.random.default_rng(seed).standard_normal((n, d))
    found = two_nn(points)
    slope, likelihood = by_definition(points)
    assert found.dimension == pytest.approx(slope, rel=1e-9)
    assert found.dimension_ml == pytest.approx(likelihood, rel=1e-9)


@pytest.mark.parametrize("columns", [3, 40])
def test_all_ways_of_searching_find_the_same_neighbors(columns):
    # Far from the origin and in tight pairs: what a search by products alone would get wrong.
    rng = np.random.default_rng(0)
    points = 1e4 + rng.standard_normal((700, columns))
    points = np.concatenate([points, points + 1e-6 * rng.standard_normal(points.shape)])
    rows = torch.from_numpy(points)
    centered = rows - rows.mean(0)
    everything = torch.arange(len(rows))
    direct = module._search_directly(everything, centered)
    torch.testing.assert_close(module._search_by_products(everything, centered), direct)
    tree = torch.from_numpy(np.column_stack(module._search_by_tree(points)))
    torch.testing.assert_close(tree, direct, rtol=1e-4, atol=0)
    blocks = torch.from_numpy(np.column_stack(module._two_nearest(rows, block=5000)))  # several
    torch.testing.assert_close(blocks, direct, rtol=1e-4, atol=0)


def test_the_coordinates_lie_on_the_fitted_line():
    found = two_nn(make_flat(3, np.random.default_rng(0)))
    assert len(found.log_mu) == len(found.neg_log_survival) == 1800
    assert (np.diff(found.log_mu) >= 0).all()
    slope = found.log_mu @ found.neg_log_survival / (found.log_mu @ found.log_mu)
    assert found.dimension == pytest.approx(slope)
    assert found.n_dropped == 0


def test_duplicates_are_dropped_and_counted():
    points = make_flat(2, np.random.default_rng(0))
    doubled = np.concatenate([points, points[:20]])
    found = two_nn(doubled)
    assert found.n_dropped == 40
    assert found.dimension == pytest.approx(2, rel=0.1)


def test_constant_columns_and_scale_change_nothing():
    points = make_flat(2, np.random.default_rng(0))
    plain = two_nn(points).dimension
    padded = np.column_stack([points, np.full((2000, 3), 7.0)])
    assert two_nn(padded).dimension == pytest.approx(plain)
    for scale in (1e-12, 1e12):
        assert two_nn(points * scale).dimension == pytest.approx(plain, rel=1e-6)


def test_tensors_arrays_and_any_shape_are_points():
    points = make_sphere(2, np.random.default_rng(0)).astype(np.float32)
    plain = two_nn(points).dimension
    tensor = torch.from_numpy(points).requires_grad_()
    assert two_nn(tensor).dimension == plain
    assert two_nn(tensor.reshape(2000, 3, 1)).dimension == plain


def test_more_points_than_wanted_are_sampled():
    points = make_flat(2, np.random.default_rng(0))
    part = two_nn(points, max_points=500)
    assert len(part.log_mu) == 450
    assert part.dimension == pytest.approx(2, rel=0.15)
    assert part.dimension == two_nn(points, max_points=500).dimension
    assert part.dimension != two_nn(points, max_points=500, seed=1).dimension


def test_a_regular_grid_has_no_finite_slope():
    grid = np.arange(50.0)[:, None]
    assert np.isinf(two_nn(grid).dimension)


def test_keep_everything_but_the_last():
    points = make_flat(2, np.random.default_rng(0), n=100)
    found = two_nn(points, keep=1.0)
    assert len(found.log_mu) == 99
    assert np.isfinite(found.neg_log_survival).all()


@pytest.mark.parametrize("points", [np.ones((10, 3)), np.eye(2), np.ones((1, 3))])
def test_too_few_points_are_an_error(points):
    with pytest.raises(TooFewPointsError, match="`points` must have at least 3 rows without a dup"):
        two_nn(points)


def test_bad_arguments_are_named():
    points = np.random.default_rng(0).standard_normal((10, 2))
    with pytest.raises(NonFiniteError, match="`points` must be finite, got nan"):
        two_nn(points * np.nan)
    with pytest.raises(
        ArgumentError, match=r"`points` must be \(n, \*features\).*got shape \(5,\)"
    ):
        two_nn(np.ones(5))
    with pytest.raises(ArgumentError, match=r"`keep` must be in \(0, 1\], got 0.0"):
        two_nn(points, keep=0.0)
    with pytest.raises(ArgumentError, match="`max_points` must be at least 3, got 2"):
        two_nn(points, max_points=2)


def test_linear_dimension_counts_singular_values_not_their_squares():
    points = np.diag([6.0, 3.0, 1.0])
    assert linear_dimension(points) == (2, 2, 2)
    assert linear_dimension(points, shares=(0.6, 1.0)) == (1, 3)
    flat = make_flat(3, np.random.default_rng(0))
    assert linear_dimension(flat, shares=(0.2, 0.999999, 1.0)) == (0, 2, 9)
    with pytest.raises(ArgumentError, match="`rho` must be"):
        linear_dimension(points, shares=(1.5,))
