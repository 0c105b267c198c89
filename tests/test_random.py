"""Draws that depend on a seed or generator alone."""

import numpy as np
import pytest
import torch
from scipy import stats

from regaug import _random


@pytest.mark.parametrize("alpha", [0.02, 0.3, 1.0, 1.4, 20.0])
def test_beta_has_its_distribution(alpha):
    generator = _random.make_generator(1)
    draws = np.array([_random.beta(alpha, generator) for _ in range(4000)])
    assert draws.min() >= 0.0
    assert draws.max() <= 1.0
    for place in (1e-12, 1e-6, 1e-2, 0.3, 0.5, 0.9):
        share = stats.beta(alpha, alpha).cdf(place)
        error = np.sqrt(share * (1 - share) / len(draws))
        assert np.mean(draws <= place) == pytest.approx(share, abs=4 * error + 1e-12)


def test_a_beta_draw_takes_one_number_from_the_generator():
    one, two = _random.make_generator(3), _random.make_generator(3)
    _random.beta(1.4, one)
    _random.uniform(0.0, 1.0, two)
    assert torch.equal(one.get_state(), two.get_state())


def test_seeded_restores_the_global_generator():
    before = torch.get_rng_state()
    with _random.seeded(5):
        first = torch.rand(3)
    with _random.seeded(5):
        assert torch.equal(torch.rand(3), first)
    with _random.seeded(6):
        assert not torch.equal(torch.rand(3), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_seeded_restores_the_global_generator_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), _random.seeded(5):
        torch.rand(3)
        _ = 1 / 0
    assert torch.equal(torch.get_rng_state(), before)


def test_derived_seeds_differ_for_every_tuple():
    seeds = {_random.derive(*entropy) for entropy in np.ndindex(5, 5, 5)}
    assert len(seeds) == 125
    assert all(0 <= seed < 2**62 for seed in seeds)
