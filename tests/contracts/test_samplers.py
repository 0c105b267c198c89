"""What every sampler keeps to. A new one is covered by being in the table."""

import pickle

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from regaug.samplers import SAMPLERS


def make_targets(n, targets=1):
    y = torch.randn(n, targets, generator=torch.Generator().manual_seed(0))
    return y[:, 0] if targets == 1 else y


@pytest.fixture(params=SAMPLERS)
def sampler(request):
    return SAMPLERS[request.param]


def samples(sampler):
    """The batches without the partners that a sampler of pairs adds."""
    return [batch[: len(batch) // 2] if is_paired(sampler) else batch for batch in sampler]


def is_paired(sampler):
    return type(sampler) is SAMPLERS["kernel-pairs"]


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("n", "batch_size"), [(50, 8), (48, 8), (5, 5), (1, 1), (7, 1)])
def test_every_sample_is_used_once(sampler, targets, drop_last, n, batch_size):
    made = sampler(make_targets(n, targets), batch_size, drop_last=drop_last)
    batches = samples(made)
    assert len(batches) == len(made)
    used = [index for batch in batches for index in batch]
    assert len(used) == len(set(used)) == (n - n % batch_size if drop_last else n)
    assert sum(len(batch) != batch_size for batch in batches) <= (not drop_last)


@pytest.mark.parametrize("targets", [1, 3])
def test_seed_and_epoch_decide(sampler, targets):
    y = make_targets(60, targets)
    one, same, other = sampler(y, 8, seed=1), sampler(y, 8, seed=1), sampler(y, 8, seed=2)
    first = list(one)
    assert first == list(same) != list(other)
    assert first != list(one)
    one.set_epoch(0)
    assert first == list(one)


@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_share_the_batches(sampler, world_size):
    y = make_targets(101)
    whole = {tuple(batch) for batch in sampler(y, 8)}
    ranks = [sampler(y, 8, rank=rank, world_size=world_size) for rank in range(world_size)]
    shares = [[tuple(batch) for batch in rank] for rank in ranks]
    assert {len(share) for share in shares} == {len(whole) // world_size} == {len(ranks[0])}
    together = [batch for share in shares for batch in share]
    assert len(together) == len(set(together))
    assert set(together) <= whole


def test_survives_the_way_to_another_process(sampler):
    made = sampler(make_targets(40), 8, seed=5)
    assert list(pickle.loads(pickle.dumps(made))) == list(made)


def test_a_loader_takes_it(sampler):
    x, y = torch.randn(40, 3), make_targets(40)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler(y, 8))
    assert sum(len(batch) for _, batch in loader) in (40, 80)


def test_constant_targets_are_fine(sampler):
    assert len(list(sampler(torch.ones(40), 8))) == 5
