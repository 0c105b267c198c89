"""Rare targets: the exact rates, the draws that follow them, speed, memory, ranks, odd targets."""

import time
import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.samplers import RandomBatchSampler, RareSampler


def make_mixture(n, seed=0):
    """Nine in ten around 0, one in ten around 6 and half as wide; and the density at each."""
    rng = np.random.default_rng(seed)
    is_near = rng.random(n) < 0.9
    y = np.where(is_near, rng.normal(size=n), 6.0 + 0.5 * rng.normal(size=n))
    return y, 0.9 * norm.pdf(y) + 0.1 * norm.pdf(y, 6.0, 0.5)


def slow_rates(y, alpha, bandwidth):
    """All pairs, from the formula."""
    densities = []
    for column in np.asarray(y, float).reshape(len(y), -1).T:
        u = np.abs(column[:, None] - column) / bandwidth
        densities.append(((1 + 2 * u) * np.exp(-2 * u)).mean(axis=1))
    rates = np.prod(densities, axis=0) ** (-alpha / len(densities))
    return rates / rates.mean()


def count_draws(sampler, epochs, n):
    return sum(np.bincount(np.concatenate(list(sampler)), minlength=n) for _ in range(epochs))


# Rates


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("bandwidth", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("targets", [1, 3])
def test_rates_are_the_inverse_density(alpha, bandwidth, targets):
    rng = np.random.default_rng(0)
    y = np.column_stack([make_mixture(400, seed)[0] for seed in range(targets)])
    y[rng.integers(400, size=50)] = y[0]  # some of them are equal
    rates = RareSampler(y, 32, alpha=alpha, bandwidth=bandwidth).rates
    np.testing.assert_allclose(rates, slow_rates(y, alpha, bandwidth), rtol=1e-9)


def test_the_bandwidth_is_silvermans():
    y = np.random.default_rng(0).standard_t(2, size=500)
    low, high = np.quantile(y, [0.25, 0.75])
    bandwidth = 0.9 * min(y.std(), (high - low) / 1.34) * 500**-0.2
    rates = RareSampler(y, 32, alpha=1.0).rates
    np.testing.assert_allclose(rates, slow_rates(y, 1.0, bandwidth), rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_rates_are_within_3_percent_of_a_known_density(alpha, n):
    y, density = make_mixture(n)
    ratios = RareSampler(y, 32, alpha=alpha).rates * density**alpha
    ratios /= np.median(ratios)
    # Where there are enough targets for a density: all but one in two hundred.
    is_dense = density > 0.005
    assert is_dense.mean() > 0.99
    by_tenth = [part.mean() for part in np.array_split(ratios[np.argsort(y)], 10)][1:-1]
    np.testing.assert_allclose(by_tenth, 1.0, atol=0.03)
    off = np.abs(ratios[is_dense] - 1.0)
    print(f"off by {off.mean():.2%} on average; {(off > 0.03).mean():.2%} by more than 3 %")
    assert off.mean() < 0.03 / 2
    assert (off > 0.03).mean() < (0.15 if n < 1_000_000 else 0.01)


@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.integers(0, 99))
def test_units_of_the_targets_do_not_matter(scale, shift, seed):
    y = np.random.default_rng(seed).gamma(1.0, size=50)
    rates = RareSampler(y, 8).rates
    np.testing.assert_allclose(RareSampler(scale * y + shift, 8).rates, rates, rtol=1e-5)
    np.testing.assert_allclose(RareSampler(y[::-1].copy(), 8).rates, rates[::-1], rtol=1e-9)


# Draws


def test_samples_come_as_often_as_their_rate_says():
    y, _ = make_mixture(200)
    sampler = RareSampler(y, 16, alpha=1.0)
    low, high = np.floor(sampler.rates), np.ceil(sampler.rates)
    counts, epochs = np.zeros(200), 2000
    for _ in range(epochs):
        own = count_draws(sampler, 1, 200)
        assert ((own >= low) & (own <= high)).all()
        counts += own
    part = sampler.rates - low
    spread = np.sqrt(part * (1 - part) / epochs)
    assert (np.abs(counts / epochs - sampler.rates) <= 5 * spread + 1e-9).all()


def test_samples_with_equal_rates_come_independently_of_their_places():
    # Steps of a fixed length through a fixed order would never draw two neighbors together.
    y = np.array([0.0] * 100 + [100.0] * 4)
    sampler = RareSampler(y, 8, alpha=0.3)
    together = 0
    for _ in range(1000):
        own = count_draws(sampler, 1, len(y))
        together += own[0] == own[1] == 1
    share = float(sampler.rates[0])
    assert share < 0.97
    assert together / 1000 == pytest.approx(share**2, abs=0.07)


def test_without_a_power_every_sample_comes_once():
    y, _ = make_mixture(101)
    assert sorted(np.concatenate(list(RareSampler(y, 8, alpha=0.0)))) == list(range(101))


def test_at_one_the_drawn_targets_are_spread_evenly():
    y = np.random.default_rng(0).beta(2.0, 8.0, size=20_000)  # few above 0.6
    drawn = y[np.concatenate(list(RareSampler(y, 32, alpha=1.0)))]
    counts = np.histogram(drawn, np.linspace(0.05, 0.55, 11))[0]
    np.testing.assert_allclose(counts / counts.mean(), 1.0, atol=0.15)
    assert (y > 0.4).mean() < 0.08


def test_two_values_come_equally_often():
    y = np.array([0.0] * 90 + [1.0] * 10)
    counts = count_draws(RareSampler(y, 10, alpha=1.0), 10, 100)
    assert counts[:90].sum() == pytest.approx(500, abs=10)


@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_share_the_batches_and_agree_on_the_rates(world_size):
    y, _ = make_mixture(103)
    make = partial(RareSampler, y, 8, seed=4, alpha=1.0)
    alone = [tuple(batch) for batch in make()]
    ranks = [make(rank=rank, world_size=world_size) for rank in range(world_size)]
    assert all((rank.rates == make().rates).all() for rank in ranks)
    shares = [[tuple(batch) for batch in rank] for rank in ranks]
    assert {len(share) for share in shares} == {len(alone) // world_size}
    together = [batch for share in shares for batch in share]
    assert len(set(together)) == len(together)
    assert set(together) <= set(alone)


def test_two_ranks_together_draw_by_the_rates():
    y, _ = make_mixture(96)
    ranks = [RareSampler(y, 8, alpha=1.0, rank=rank, world_size=2) for rank in (0, 1)]
    epochs = 400
    counts = sum(count_draws(rank, epochs, 96) for rank in ranks)
    assert np.abs(counts / epochs - ranks[0].rates).max() < 0.15
    assert counts.sum() == 96 * epochs


def test_a_group_has_as_many_draws_as_samples_and_rare_ones_have_more_of_them():
    y = torch.tensor(([0.0] * 9 + [5.0]) * 10)
    labels = torch.arange(100) // 50
    sampler = RareSampler(y, 10, alpha=1.0, groups=labels, pairs_within="group")
    drawn = torch.tensor([index for batch in sampler for index in batch])
    assert (labels[drawn] == 0).sum() == 50
    assert (y[drawn] == 5.0).sum() == 50


# Odd targets


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(12),
        np.full(12, 3e300),
        np.array([7.0]),
        np.ones((6, 3)),
        np.array([1.0, 2.0]),  # both as rare
    ],
)
def test_where_no_target_is_rarer_than_another_all_come_once(y):
    sampler = RareSampler(y, 1, alpha=1.0)
    np.testing.assert_allclose(sampler.rates, 1.0)
    assert sorted(np.concatenate(list(sampler))) == list(range(len(y)))


@pytest.mark.parametrize("far", [1e2, 1e9, 1e300])
def test_an_outlier_comes_often_and_does_not_hide_the_others(far):
    y = np.append(np.random.default_rng(0).normal(size=999), far)
    rates = RareSampler(y, 32, alpha=1.0).rates
    near = RareSampler(y[:-1], 32, alpha=1.0).rates
    assert rates[-1] == rates.max()
    assert rates[-1] < 0.2 * len(y)
    np.testing.assert_allclose(rates[:-1] / rates[0], near / near[0], rtol=0.02)


@pytest.mark.parametrize(
    "y",
    [
        [-1.7e308, 0.0, 1.7e308, 1.0],
        [0.0, 5e-324, 1e-300, 1.0],
        [0.0] * 30 + [1.0],  # no range of the middle half
        [[0.0, 1.0], [0.0, 2.0], [0.0, 9.0]],  # one of two targets is constant
    ],
)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1e3])
@pytest.mark.parametrize("bandwidth", [None, 1e-320, 1e-3, 1e300])
def test_extreme_targets_are_fine(y, alpha, bandwidth):
    sampler = RareSampler(y, 2, alpha=alpha, bandwidth=bandwidth)
    assert np.isfinite(sampler.rates).all()
    assert sampler.rates.mean() == pytest.approx(1.0)
    assert sum(map(len, sampler)) == len(y)


def test_a_sample_is_rare_by_any_of_its_targets():
    common = np.random.default_rng(0).normal(size=(200, 2))
    y = np.vstack([common, [[0.0, 8.0], [8.0, 0.0], [0.0, 0.0]]])
    rates = RareSampler(y, 8).rates
    assert rates[-3] > 2 * rates[-1]
    assert rates[-2] > 2 * rates[-1]


def test_tensors_arrays_and_lists_give_the_same_batches():
    y = np.random.default_rng(0).normal(size=30)
    batches = list(RareSampler(y, 8))
    assert list(RareSampler(torch.from_numpy(y), 8)) == batches
    assert list(RareSampler(y[:, None], 8)) == batches
    assert list(RandomBatchSampler(y, 8)) != batches


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": -0.1}, ArgumentError, "`alpha` must be at least 0, got -0.1"),
        ({"alpha": "much"}, ArgumentTypeError, "`alpha` must be a number, got 'much'"),
        ({"bandwidth": 0.0}, ArgumentError, "`bandwidth` must be greater than 0, got 0.0"),
        ({"batch_size": 9}, ArgumentError, "`batch_size` must be from 1 to 8, got 9"),
        ({"y": [1.0] * 7 + [np.nan]}, NonFiniteError, "`y` must be finite, got nan at .*Remove"),
        ({"y": []}, ArgumentError, "`y` must be .* not empty"),
        ({"rank": 1}, ArgumentError, "`rank` and `world_size` go together"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        RareSampler(**({"y": list(range(8)), "batch_size": 4} | arguments))


# Speed and memory


def seconds_of_an_epoch(y):
    start = time.process_time()  # a busy machine takes longer, but no more work
    assert len(list(RareSampler(y, 32))) == len(y) // 32
    return time.process_time() - start


@pytest.mark.serial
@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tails", ["light", "heavy"])
def test_a_million_targets_take_less_than_5_seconds(n, tails):
    normal = np.random.default_rng(0).normal(size=n)
    y = normal if tails == "light" else np.exp(10.0 * normal)
    seconds = min(seconds_of_an_epoch(y) for _ in range(3))
    print(f"rates and an epoch of {n:,} targets: {seconds:.2f} s")
    assert seconds < 5.0 * n / 1_000_000


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_sample_needs_less_than_300_bytes(n):
    y = np.random.default_rng(0).normal(size=n)
    tracemalloc.start()
    assert len(next(iter(RareSampler(y, 32)))) == 32
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{peak / n:.0f} bytes for a sample")
    assert peak < 300 * n
