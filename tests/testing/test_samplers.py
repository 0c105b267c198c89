"""The checks of a sampler of one's own."""

import numpy as np
import pytest

from regaug import RandomBatchSampler
from regaug.exceptions import ArgumentTypeError, ContractError
from regaug.samplers import BatchSampler
from regaug.testing import check_sampler
from regaug.testing.samplers import keeps_groups_apart


class Descending(BatchSampler):
    """From the largest target to the smallest, starting anywhere: as one would write it."""

    def _order(self, rng):
        return np.roll(np.argsort(-self.y[:, 0], kind="stable"), rng.integers(len(self.y)))


def test_one_that_is_right_passes():
    check_sampler(Descending)
    check_sampler(lambda y, batch_size, **options: Descending(y, batch_size, **options))


class Fixed(BatchSampler):
    def _order(self, rng):
        return np.arange(len(self.y))

    def epoch_batches(self):
        whole = [
            np.arange(len(self.y))[i : i + self.batch_size]
            for i in range(0, len(self.y), self.batch_size)
        ]
        rank, world_size = self._place()
        return whole[rank : len(self) * world_size : world_size]


class Repeats(BatchSampler):
    def _order(self, rng):
        return rng.integers(len(self.y), size=len(self.y))


class Global(BatchSampler):
    def _order(self, rng):
        return np.random.permutation(len(self.y))  # noqa: NPY002


class KnowsNoRanks(RandomBatchSampler):
    def _place(self):
        return 0, 1


class Stuck(RandomBatchSampler):
    def __iter__(self):
        return (batch.tolist() for batch in self.epoch_batches())


class WrongLength(RandomBatchSampler):
    def __len__(self):
        return 3


class KnowsNoGroups(RandomBatchSampler):
    def _order_groups(self, rng):
        return self._order(rng)


class LosesGroups(RandomBatchSampler):
    def _groups_of(self):
        return super()._groups_of()[1:]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Fixed, "Another seed must give other batches"),
        (Repeats, "An epoch must use 50 samples once each, and does not"),
        (Global, "Equal seeds must give equal batches: draw from the generator of `_order`"),
        (KnowsNoRanks, "Each of 2 ranks must have 6 batches"),
        (Stuck, "The next epoch must have other batches: leave `__iter__` to the base class"),
        (WrongLength, "len() must be the 7 batches, got 3"),
        (KnowsNoGroups, "rows of one group only may be used together"),
        (LosesGroups, "With groups an epoch must use every sample once"),
    ],
)
def test_one_that_is_wrong_is_told_why(wrong, words):
    with pytest.raises(ContractError) as caught:
        check_sampler(wrong)
    assert f"{wrong.__name__} does not do all that a sampler must" in str(caught.value)
    assert words in str(caught.value)


def test_one_that_takes_no_groups_may_do_without():
    class Plain(RandomBatchSampler):
        def __init__(self, y, batch_size, *, seed=0, drop_last=False, rank=None, world_size=None):
            options = {"seed": seed, "drop_last": drop_last, "rank": rank, "world_size": world_size}
            super().__init__(y, batch_size, **options)

    assert list(keeps_groups_apart(Plain)) == []


def test_other_things_are_no_samplers():
    with pytest.raises(ArgumentTypeError, match=r"derives from .*BatchSampler.* got list"):
        check_sampler(lambda y, batch_size: [1])
    with pytest.raises(ArgumentTypeError, match="got int"):
        check_sampler(3)
