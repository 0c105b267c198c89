"""Studies that are drawn, not run: errors of methods between which there is no difference."""

import math

import numpy as np
import pytest


def draw_luck(rng, shape, *, n=50, n_test=10):
    """Noise ``(tables, rows, splits)``: each row is luckier with some samples than with others.

    The luck of a split is the mean over its test rows, so that two splits have as much of it in
    common as they have test rows: what the correction of Nadeau and Bengio expects.
    """
    tables, rows, splits = shape
    order = rng.permuted(np.tile(np.arange(n), (tables, 1, splits, 1)), axis=-1)
    luck = rng.standard_normal((tables, rows, 1, n))
    return np.take_along_axis(luck, order[..., :n_test], axis=-1).sum(axis=-1) / math.sqrt(n_test)


def to_errors(rng, noise, spread=0.02):
    """Errors of the same shape: the split's difficulty, then the noise, in logarithms."""
    tables, _, splits = noise.shape
    return np.exp(0.1 * rng.standard_normal((tables, 1, splits)) + spread * noise)


@pytest.fixture(scope="session")
def luck():
    """Noise of splits that share test rows; see :func:`draw_luck`."""
    return draw_luck


@pytest.fixture(scope="session")
def errors_of():
    """Errors from noise; see :func:`to_errors`."""
    return to_errors
