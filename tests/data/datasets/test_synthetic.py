import numpy as np
import pytest
import torch

from regaug import two_nn
from regaug._random import Stream, numpy_generator
from regaug.data.datasets.synthetic import KINDS, make_manifold
from regaug.data.splits import random_split
from regaug.exceptions import ArgumentError

DIMENSIONS = {
    "line": 1,
    "circle": 1,
    "sine": 1,
    "swiss-roll": 2,
    "sphere": 2,
    "paraboloid": 2,
    "plane": 2,
}


def joint(data):
    return np.hstack([data.x, data.y])


def test_every_kind_is_listed():
    assert set(KINDS) == set(DIMENSIONS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimated_dimension_is_the_known_one(kind):
    draws = [make_manifold(kind, n=2000, seed=seed) for seed in range(8)]
    assert {data.dimension for data in draws} == {DIMENSIONS[kind]}
    # A single estimate scatters by 3 %, the mean of eight by 1 %.
    estimate = np.mean([two_nn(joint(data)).dimension for data in draws])
    assert estimate == pytest.approx(DIMENSIONS[kind], rel=0.05)


@pytest.mark.parametrize("dimension", [1, 3, 5])
def test_a_plane_has_the_dimension_asked_for(dimension):
    data = make_manifold("plane", dimension=dimension)
    assert data.dimension == dimension
    assert data.x.shape == (1000, 40)
    assert np.linalg.matrix_rank(joint(data)) == dimension
    assert two_nn(data.x).dimension == pytest.approx(dimension, rel=0.15)


@pytest.mark.parametrize(
    ("kind", "zero"),
    [
        ("line", lambda x, y: y - x / 2),
        ("circle", lambda x, y: x**2 + y**2 - 1),
        ("sine", lambda x, y: y - np.sin(x)),
        ("swiss-roll", lambda x, y: np.hypot(x[:, [0]], x[:, [2]]) - y),
        ("sphere", lambda x, y: (x**2).sum(1, keepdims=True) + y**2 - 1),
        ("paraboloid", lambda x, y: (x**2).sum(1, keepdims=True) - y),
    ],
)
def test_the_points_solve_the_equation_of_the_manifold(kind, zero):
    data = make_manifold(kind, n=200)
    np.testing.assert_allclose(zero(data.x, data.y), 0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_moves_every_coordinate_by_its_deviation(kind):
    clean, noisy = make_manifold(kind, n=4000), make_manifold(kind, n=4000, noise=0.1)
    moved = joint(noisy) - joint(clean)
    np.testing.assert_allclose(moved.std(axis=0), 0.1, rtol=0.08)
    np.testing.assert_allclose(moved.mean(axis=0), 0, atol=0.01)


def test_noise_fills_the_space():
    assert two_nn(joint(make_manifold("line", n=2000, noise=0.5))).dimension > 1.6


@pytest.mark.parametrize("kind", KINDS)
def test_points_depend_on_the_seed_alone(kind):
    first, again, other = (make_manifold(kind, n=50, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(joint(first), joint(again))
    assert not np.array_equal(joint(first), joint(other))


def test_points_and_noise_are_not_drawn_from_the_same_stream():
    clean, noisy = make_manifold("sphere"), make_manifold("sphere", noise=0.1)
    moved = (noisy.x - clean.x).ravel()
    # Both come from normal draws, in this order: from one stream they would be nearly parallel.
    assert abs(np.corrcoef(moved, joint(clean).ravel()[: len(moved)])[0, 1]) < 0.1


def test_points_are_not_drawn_from_the_stream_of_the_split():
    points = make_manifold("line", n=50, seed=4).x
    with_split = numpy_generator(Stream.SPLIT, 4)
    held = np.sort(numpy_generator(Stream.SPLIT, 4).permutation(50)[:30])
    assert np.array_equal(held, random_split(50, seed=4)[0])  # it is that stream
    assert not np.array_equal(points, with_split.uniform(-1.0, 1.0, (50, 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_manifold_splits_like_a_table(kind):
    split = make_manifold(kind, n=100).split(seed=2)
    assert [len(part) for part in (split.train, split.validation, split.test)] == [60, 20, 20]
    assert split.train.x.dtype == torch.float32
    assert split.train.y.shape == (60, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "torus"}, "`kind` must be one of 'line', .*'plane', got 'torus'"),
        ({"kind": "line", "n": 2}, "`n` must be at least 3, got 2"),
        ({"kind": "line", "noise": -1.0}, "`noise` must be at least 0, got -1.0"),
        ({"kind": "line", "dimension": 2}, "`dimension` must be None for 'line', got 2"),
        ({"kind": "plane", "dimension": 41}, "`dimension` must be from 1 to 40, got 41"),
    ],
)
def test_an_error_says_what_must_be_and_what_came(options, message):
    with pytest.raises(ArgumentError, match=message):
        make_manifold(**options)
