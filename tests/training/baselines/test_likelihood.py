"""The kernel and the likelihood: against scikit-learn, the textbook and finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern

from regaug.training.baselines.likelihood import FLOOR, START, Kernel, Posterior, matern

SEEDS = st.integers(0, 10**6)


def draw(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


@given(SEEDS, st.integers(1, 6), st.integers(1, 6), st.integers(1, 5))
def test_the_correlation_is_that_of_scikit_learn(seed, n, m, d):
    a, b = draw(seed, n, d), draw(seed + 1, m, d)
    length = draw(seed + 2, d).exp()
    expected = Matern(length_scale=length.numpy(), nu=2.5)(a.numpy(), b.numpy())
    torch.testing.assert_close(matern(a, b, length), torch.from_numpy(expected))


@given(SEEDS, st.integers(1, 5))
def test_a_row_is_like_itself_and_unlike_one_far_away(seed, d):
    x = draw(seed, 4, d)
    assert matern(x, x, torch.ones(d).double()).diagonal().min() > 1 - 1e-12
    for far in (1e3, 1e9, 1e300):
        there = matern(x, x + far, torch.full((d,), 1e-3, dtype=torch.float64))
        assert there.max() < 1e-300


def test_huge_numbers_and_tiny_lengths_leave_it_finite():
    x = torch.tensor([[1e300, -1e300], [-1e300, 1.0], [0.0, 0.0]], dtype=torch.float64)
    found = matern(x, x, torch.tensor([1e-300, 1e-8], dtype=torch.float64))
    assert bool(((found >= 0) & (found <= 1)).all())


@given(SEEDS, st.integers(2, 8), st.integers(1, 4))
def test_the_value_is_the_density_of_the_targets_and_the_priors(seed, n, d):
    x, y = draw(seed, n, d), draw(seed + 1, n)
    logs = np.random.default_rng(seed).standard_normal(d + 3)
    value, _ = Posterior(x, y, center=0.3, spread=0.7)(logs)
    smooth, noise, linear = np.exp(logs[-3:])
    covariance = smooth * Matern(np.exp(logs[:-3]), nu=2.5)(x.numpy())
    covariance += linear / d * x.numpy() @ x.numpy().T + (noise + FLOOR) * np.eye(n)
    normal = torch.distributions.MultivariateNormal(
        torch.zeros(n).double(), torch.tensor(covariance)
    )
    constant = 0.5 * n * math.log(2 * math.pi)
    priors = np.square((logs[:-3] - 0.3) / 0.7).sum() + ((logs[-2] - START[1]) / 3.0) ** 2
    assert value == pytest.approx(-normal.log_prob(y).item() - constant + 0.5 * priors, rel=1e-9)


@given(SEEDS, st.integers(2, 8), st.integers(1, 4), st.booleans())
def test_the_gradient_is_that_of_finite_differences(seed, n, d, has_twins):
    x, y = draw(seed, n, d), draw(seed + 1, n)
    if has_twins:  # equal rows with unequal targets
        x[1] = x[0]
    logs = np.random.default_rng(seed).standard_normal(d + 3)
    posterior = Posterior(x, y, center=0.3, spread=0.7)
    step = 1e-5
    numeric = [
        (posterior(logs + step * unit)[0] - posterior(logs - step * unit)[0]) / (2 * step)
        for unit in np.eye(d + 3)
    ]
    np.testing.assert_allclose(posterior(logs)[1], numeric, rtol=1e-5, atol=1e-6)


def test_the_covariance_is_that_of_the_posterior():
    x = draw(0, 5, 2)
    kernel = Kernel.of(np.array([0.1, 0.2, 0.3, -1.0, -2.0]))
    expected = math.exp(0.3) * matern(x, x, torch.tensor([math.exp(0.1), math.exp(0.2)]).double())
    expected += math.exp(-2.0) / 2 * x @ x.T + (math.exp(-1.0) + FLOOR) * torch.eye(5)
    torch.testing.assert_close(kernel.covariance(x), expected)
