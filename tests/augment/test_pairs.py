"""Batches that are said to be pairs and are none."""

import warnings
from itertools import count, cycle, islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regaug import (
    CMixup,
    Compose,
    KernelPairSampler,
    Mixup,
    NearestBatchSampler,
    RandomBatchSampler,
    WeightedBatchSampler,
    methods,
)
from regaug.augment.pairs import CHANCE, ENOUGH, NEVER, UNRELATED

TARGETS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "skewed": lambda rng, n: rng.lognormal(sigma=1.5, size=n),
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
    "yes or no": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "levels": lambda rng, n: rng.integers(0, 6, n).astype(float),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.random(n)),
    "three targets": lambda rng, n: rng.standard_normal((n, 3)),
    "constant": lambda rng, n: np.ones(n),
}


def make_targets(kind="normal", n=400, seed=0):
    y = torch.from_numpy(TARGETS[kind](np.random.default_rng(seed), n))
    spread = y.std(dim=0)
    return y / torch.where(spread > 0, spread, 1.0)


def endless(sampler):
    for epoch in count():
        sampler.set_epoch(epoch)
        yield from sampler


def warned(augmentation, sampler, y, pairs=2 * ENOUGH):
    """What is said while an augmentation sees so many pairs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in islice(endless(sampler), pairs // (sampler.batch_size // 2)):
            augmentation(y[batch].reshape(len(batch), -1), y[batch])
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    "make", [RandomBatchSampler, NearestBatchSampler, WeightedBatchSampler], ids=str
)
@pytest.mark.parametrize("kind", ["normal", "skewed", "three targets"])
def test_batches_that_no_pair_sampler_made_are_found(make, kind):
    y = make_targets(kind)
    [message] = warned(CMixup(paired=True), make(y, 32, drop_last=True), y)
    assert "KernelPairSampler(y, batch_size, bandwidth=...)" in message
    assert "leave out `paired`" in message


def test_most_are_found_in_a_few_epochs():
    found = 0
    for seed in range(8):
        y = make_targets(n=300, seed=seed)
        sampler = RandomBatchSampler(y, 32, seed=seed, drop_last=True)
        found += len(warned(CMixup(paired=True), sampler, y, pairs=1_200))
    assert found >= 5


@pytest.mark.parametrize("kind", TARGETS)
def test_pairs_are_not_taken_for_chance_early(kind):
    for seed in range(4):
        y = make_targets(kind, seed=seed)
        sampler = KernelPairSampler(y, 32, bandwidth=2.0, seed=seed, drop_last=True)
        assert warned(CMixup(paired=True), sampler, y, pairs=ENOUGH - 100) == []


@pytest.mark.parametrize("kind", ["yes or no", "levels", "mostly zero"])
def test_equal_targets_hide_nothing(kind):
    y = make_targets(kind)
    sampler = RandomBatchSampler(y, 32, drop_last=True)
    assert len(warned(CMixup(paired=True), sampler, y, pairs=8 * ENOUGH)) == 1


def test_rows_in_order_are_found():
    y = torch.linspace(0, 1, 320)
    in_order = [list(range(start, start + 32)) for start in range(0, 320, 32)]
    augmentation = CMixup(paired=True)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for batch in islice(cycle(in_order), ENOUGH // 14):
            augmentation(y[batch][:, None], y[batch])
    assert len(found) == 1


drawn = given(seed=st.integers(0, 10**6), bandwidth=st.sampled_from([0.01, 0.3, 1.0, 1.5, 2.0]))


def check_left_alone(kind, bandwidth, seed):
    y = make_targets(kind, seed=seed)
    sampler = KernelPairSampler(y, 32, bandwidth=bandwidth, seed=seed, drop_last=True)
    assert warned(CMixup(paired=True), sampler, y) == []


@settings(max_examples=3)
@drawn
@pytest.mark.parametrize("kind", TARGETS)
def test_pairs_are_left_alone(kind, bandwidth, seed):
    check_left_alone(kind, bandwidth, seed)


@pytest.mark.slow
@settings(max_examples=10)
@drawn
@pytest.mark.parametrize("kind", TARGETS)
def test_many_pairs_are_left_alone(kind, bandwidth, seed):
    check_left_alone(kind, bandwidth, seed)


@pytest.mark.parametrize("kind", ["normal", "skewed", "heavy tails", "three targets"])
def test_chance_and_pairs_are_far_apart(kind):
    """The limits lie between them by many standard deviations of what decides."""
    share, correlation = 0.5 / ENOUGH**0.5, 1 / ENOUGH**0.5
    assert 6 * share < CHANCE - 0.5
    assert 3.5 * correlation < UNRELATED
    assert 6 * share < 0.5 - NEVER
    for seed in range(3):
        y = make_targets(kind, n=1000, seed=seed).reshape(1000, -1)
        for bandwidth, far in ((1.0, 12), (2.0, 3)):
            [batch] = KernelPairSampler(y, 1000, bandwidth=bandwidth, seed=seed)
            one, two = (y[rows] - y.mean(0) for rows in (batch[:1000], batch[1000:]))
            found = (one * two).sum() / (one.square().sum() * two.square().sum()).sqrt()
            assert found - UNRELATED > far * correlation


def test_plain_batches_are_not_paired_unless_somebody_says_so():
    y = make_targets()
    sampler = RandomBatchSampler(y, 32, drop_last=True)
    assert not CMixup().paired
    for augmentation in (CMixup(), CMixup(paired=True).eval(), Mixup(paired=True)):
        assert warned(augmentation, sampler, y) == []


def test_a_part_of_a_chain_looks_too():
    y = make_targets()
    sampler = RandomBatchSampler(y, 32, drop_last=True)
    assert len(warned(Compose(CMixup(paired=True)), sampler, y)) == 1


def test_whoever_makes_the_pairs_may_be_trusted():
    y = make_targets()
    wide = KernelPairSampler(y, 32, bandwidth=100.0, drop_last=True)
    trusted = CMixup(paired=True)
    trusted.trust_pairs()
    assert warned(trusted, wide, y) == []
    ready = methods.get("c-mixup").prepare({"bandwidth": 100.0, "anneal": None})
    assert warned(ready.augmentation, ready.sampler(y, 32, drop_last=True), y) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_precision_is_looked_at(dtype):
    y = make_targets().to(dtype)
    sampler = RandomBatchSampler(y, 32, drop_last=True)
    assert len(warned(CMixup(paired=True), sampler, y)) == 1


def test_batches_of_one_pair_tell_nothing():
    y = make_targets()
    sampler = RandomBatchSampler(y, 2)
    assert warned(CMixup(paired=True), sampler, y, pairs=ENOUGH + 100) == []
