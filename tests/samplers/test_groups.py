"""Batches and partners of one group."""

import numpy as np
import pytest
import torch

from regaug import (
    KernelPairSampler,
    NearestBatchSampler,
    RandomBatchSampler,
    WeightedBatchSampler,
)
from regaug.exceptions import ArgumentError
from regaug.samplers import BatchSampler

LABELS = np.repeat(["a", "b", "c", "d"], [50, 33, 16, 1])
TARGETS = torch.randn(100, generator=torch.Generator().manual_seed(0))
IN_BATCHES = [RandomBatchSampler, NearestBatchSampler, WeightedBatchSampler]


def groups_of(batches):
    return [set(LABELS[batch].tolist()) for batch in batches]


@pytest.mark.parametrize("make", IN_BATCHES)
@pytest.mark.parametrize("targets", [1, 2])
def test_a_batch_has_one_group_if_it_must(make, targets):
    y = torch.stack([TARGETS] * targets, dim=1)
    sampler = make(y, 16, groups=LABELS, pairs_within="group")
    batches = list(sampler)
    assert all(len(groups) == 1 for groups in groups_of(batches))
    assert sorted(index for batch in batches for index in batch) == list(range(100))
    assert len(batches) == len(sampler) == 4 + 3 + 1 + 1
    assert sorted(map(len, batches)) == [1, 1, 2] + [16] * 6


@pytest.mark.parametrize("make", IN_BATCHES)
def test_no_group_is_left_out_as_a_whole(make):
    sampler = make(TARGETS, 16, groups=LABELS, pairs_within="group", drop_last=True)
    batches = list(sampler)
    assert len(batches) == len(sampler) == 3 + 2 + 1 + 1
    assert set().union(*groups_of(batches)) == {"a", "b", "c", "d"}
    assert sorted(map(len, batches)) == [1] + [16] * 6


@pytest.mark.parametrize("make", IN_BATCHES)
def test_without_pairs_within_batches_are_as_large_as_ever_and_hold_few_groups(make):
    batches = list(make(TARGETS, 16, groups=LABELS))
    assert sorted(map(len, batches)) == [4] + [16] * 6
    assert sorted(index for batch in batches for index in batch) == list(range(100))
    assert sorted(map(len, groups_of(batches))) == [1] * 6 + [3]


@pytest.mark.parametrize("make", IN_BATCHES)
def test_any_sample_may_be_left_out_and_none_always_is(make):
    sampler = make(TARGETS, 16, groups=LABELS, drop_last=True)
    used = np.zeros(100, dtype=int)
    for _ in range(60):
        batches = list(sampler)
        assert [len(batch) for batch in batches] == [16] * 6
        used[np.concatenate(batches)] += 1
    assert used.min() > 0
    assert used[-1] > 45  # the one that is alone as often as the others


def test_nearest_batches_are_those_of_the_group_alone():
    y = torch.tensor([0.0, 0.1, 5.0, 5.1, 0.05, 0.15, 5.05, 5.15])
    labels = [0, 0, 0, 0, 1, 1, 1, 1]
    found = {frozenset(batch) for batch in NearestBatchSampler(y, 2, groups=labels)}
    assert found == {frozenset(pair) for pair in ([0, 1], [2, 3], [4, 5], [6, 7])}


def test_many_small_groups_share_batches_in_pieces():
    labels = np.arange(99) // 3
    for batch in RandomBatchSampler(torch.randn(99), 9, groups=labels):
        assert len(set(labels[batch])) == 3


@pytest.mark.parametrize("options", [{}, {"pairs_within": "group"}])
def test_partners_are_of_the_group_and_batches_as_without_groups(options):
    sampler = KernelPairSampler(TARGETS, 16, bandwidth=0.5, groups=LABELS, **options)
    plain = KernelPairSampler(TARGETS, 16, bandwidth=0.5)
    assert len(sampler) == len(plain) == 7
    for batch, other in zip(sampler, plain, strict=True):
        half = len(batch) // 2
        assert batch[:half] == other[:half]
        assert (LABELS[batch[:half]] == LABELS[batch[half:]]).all()


@pytest.mark.parametrize("n", [40, 700])  # all pairs, and bands
def test_partners_within_a_group_are_drawn_by_the_kernel(n):
    # Each of two groups has targets 0 and 1: as likely as the kernel says, whatever the other has.
    y, labels = torch.arange(n) % 2 * 1.0, torch.arange(n) // 2 % 2
    sampler = KernelPairSampler(y, n, bandwidth=1.0, groups=labels)
    same = []
    for _ in range(4000 // n + 20):
        [batch] = sampler
        batch = torch.tensor(batch)
        assert (labels[batch[:n]] == labels[batch[n:]]).all()
        same.append((y[batch[:n]] == y[batch[n:]]).double().mean().item())
    assert np.mean(same) == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.05)


def test_groups_need_not_be_neighbors_in_the_data():
    order = np.random.default_rng(0).permutation(100)
    labels = LABELS[order]
    for make in IN_BATCHES:
        for batch in make(TARGETS, 16, groups=labels, pairs_within="group"):
            assert len(set(labels[batch])) == 1


def test_ranks_share_the_batches_of_groups():
    make = lambda rank: NearestBatchSampler(  # noqa: E731
        TARGETS, 16, groups=LABELS, pairs_within="group", rank=rank, world_size=2
    )
    shares = [[tuple(batch) for batch in make(rank)] for rank in (0, 1)]
    assert len(shares[0]) == len(shares[1]) == 4
    assert not set(shares[0]) & set(shares[1])


def test_without_groups_nothing_is_kept_apart():
    with pytest.raises(ArgumentError, match="`groups` must be given for pairs_within='group'"):
        RandomBatchSampler(TARGETS, 16, pairs_within="group")
    with pytest.raises(ArgumentError, match="`pairs_within` must be one of None, 'group'"):
        RandomBatchSampler(TARGETS, 16, groups=LABELS, pairs_within="city")
    with pytest.raises(ArgumentError, match="`groups` must have one label for each of the 100"):
        RandomBatchSampler(TARGETS, 16, groups=LABELS[1:])


def test_one_that_does_not_go_by_its_targets_is_refused():
    class Own(BatchSampler):
        def __init__(self, y, batch_size, **options):
            super().__init__(y, batch_size, **options)
            self.n = len(y)

        def _order(self, rng):
            return rng.permutation(self.n)

    with pytest.raises(ArgumentError, match="`groups` must be None for Own"):
        list(Own(TARGETS, 16, groups=LABELS))
