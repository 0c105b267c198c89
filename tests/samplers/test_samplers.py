"""What every sampler keeps to, and what each of them means by a batch."""

import multiprocessing
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch.utils.data import DataLoader, TensorDataset

from regaug import NearestBatchSampler, RandomBatchSampler, WeightedBatchSampler
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.samplers import nearest
from regaug.samplers.weighted import _Line

SAMPLERS = [RandomBatchSampler, NearestBatchSampler, WeightedBatchSampler]


def make_targets(n, targets=1, seed=0, levels=None):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randn(n, targets, generator=generator)
    y = y.mul(levels).round() if levels else y
    return y[:, 0] if targets == 1 else y


@pytest.mark.parametrize("sampler", SAMPLERS)
@given(
    n=st.integers(1, 60),
    batch_size=st.integers(1, 20),
    targets=st.sampled_from([1, 2, 5]),
    levels=st.sampled_from([None, 1]),
    drop_last=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_index_is_used_once_in_batches_of_the_right_size(
    sampler, n, batch_size, targets, levels, drop_last, seed
):
    batch_size = min(batch_size, n)
    y = make_targets(n, targets, seed, levels)
    sampler = sampler(y, batch_size, seed=seed, drop_last=drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler) == (n // batch_size if drop_last else -(-n // batch_size))
    used = [index for batch in batches for index in batch]
    assert len(used) == len(set(used))
    assert set(used) <= set(range(n))
    if not drop_last:
        assert len(used) == n
    sizes = sorted(map(len, batches))
    assert all(size == batch_size for size in sizes[1:])
    assert sizes[0] == batch_size or (not drop_last and sizes[0] == n % batch_size)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("targets", [1, 3])
def test_seed_and_epoch_decide(sampler, targets):
    y = make_targets(50, targets)
    first, same, other = sampler(y, 8, seed=1), sampler(y, 8, seed=1), sampler(y, 8, seed=2)
    start = list(first)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 (the global generator must not matter)
    assert list(same) == start
    assert list(other) != start
    assert list(first) == list(same) != start  # the next epoch
    first.set_epoch(0)
    assert list(first) == start


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("n", [96, 101])
def test_ranks_have_disjoint_shares_of_equal_length(sampler, world_size, n):
    y = make_targets(n)
    whole = {tuple(batch) for batch in sampler(y, 8)}
    shares = []
    for rank in range(world_size):
        mine = sampler(y, 8, rank=rank, world_size=world_size)
        shares.append([tuple(batch) for batch in mine])
        assert len(shares[-1]) == len(mine) == len(whole) // world_size
    batches = [batch for share in shares for batch in share]
    assert len(set(batches)) == len(batches)
    assert set(batches) <= whole
    used = [index for batch in batches for index in batch]
    assert len(used) == len(set(used))


def _worker(rank, world_size, store, queue):
    sampler = NearestBatchSampler(make_targets(96), 8)  # made before the process group is
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world_size
    )
    queue.put((rank, [list(sampler) for _ in range(3)]))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.serial
@pytest.mark.parametrize(
    ("world_size", "start"),
    [(2, "fork"), (3, "fork"), pytest.param(2, "spawn", marks=pytest.mark.slow)],
)
def test_the_process_group_is_asked_for_rank_and_world_size(tmp_path, world_size, start):
    context = multiprocessing.get_context(start)
    queue = context.Queue()
    arguments = [(rank, world_size, tmp_path / "store", queue) for rank in range(world_size)]
    processes = [context.Process(target=_worker, args=each) for each in arguments]
    for process in processes:
        process.start()
    shares = dict(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for rank in range(world_size):
        expected = NearestBatchSampler(make_targets(96), 8, rank=rank, world_size=world_size)
        assert shares[rank] == [list(expected) for _ in range(3)]
    for own in zip(*shares.values(), strict=True):  # in every epoch
        used = [index for share in own for batch in share for index in batch]
        assert len(used) == len(set(used))


def brute_force_is_nearest(y, batches, batch_size):
    """Check the batches in an order in which they can have been made.

    A batch made earlier saw more unused samples. So, going back from the end, each batch has an
    anchor among its members such that no sample in a later batch is closer than its farthest.
    """
    y = y.reshape(len(y), -1).double()
    distance = torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist")
    later: list[int] = []
    for batch in reversed(batches):
        if later:
            inside = distance[batch][:, batch].max(dim=1).values
            outside = distance[batch][:, later].min(dim=1).values
            assert (inside <= outside + 1e-12).any(), (batch, later)
        later += batch


@pytest.mark.parametrize("targets", [1, 2, 4])
@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("few", [0, nearest.FEW])
@pytest.mark.parametrize("seed", range(5))
def test_nearest_batches_are_truly_nearest(targets, levels, few, seed, monkeypatch):
    monkeypatch.setattr(nearest, "FEW", few)
    y = make_targets(70, targets, seed, levels)
    sampler = NearestBatchSampler(y, 8, seed=seed)
    order = sampler._order(np.random.default_rng(seed)).tolist()
    batches = [order[i : i + 8] for i in range(0, len(order), 8)]
    brute_force_is_nearest(y, batches, 8)


def test_nearest_batches_follow_the_anchor_exactly(monkeypatch):
    # Small enough to redo by hand: the anchor of a batch comes first in the order of many.
    monkeypatch.setattr(nearest, "FEW", 0)
    y = make_targets(40, seed=3)
    sampler = NearestBatchSampler(y, 5)
    order = sampler._order(np.random.default_rng(0)).tolist()
    unused = set(range(40))
    for start in range(0, 40, 5):
        batch = order[start : start + 5]
        expected = sorted(unused, key=lambda i: abs(y[i] - y[batch[0]]).item())[:5]
        assert set(batch) == set(expected)
        unused -= set(batch)


def test_windows_are_the_nearest_of_their_anchors():
    """The anchors are what the numbers say: unused samples, in the order of their targets."""
    y, rng = make_targets(43, seed=3), np.random.default_rng(0)
    order = NearestBatchSampler(y, 5)._order(rng).tolist()
    rng = np.random.default_rng(0)
    rng.permutation(43)  # of equal targets
    unused = y.argsort().tolist()
    for start, number in zip(range(0, 40, 5), rng.random(8), strict=True):
        anchor = y[unused[int(number * len(unused))]]
        expected = sorted(unused, key=lambda i: abs(y[i] - anchor).item())[:5]
        assert set(order[start : start + 5]) == set(expected)
        unused = [i for i in unused if i not in expected]
    assert order[40:] == unused


@pytest.mark.parametrize("few", [0, nearest.FEW])
def test_every_sample_is_as_likely_to_be_with_the_extreme_ones(few, monkeypatch):
    """Whoever is an anchor is drawn evenly: the first batch has the lowest sample so often."""
    monkeypatch.setattr(nearest, "FEW", few)
    y = torch.arange(12.0)
    sampler = NearestBatchSampler(y, 3)
    orders = [sampler._order(np.random.default_rng(seed))[:3] for seed in range(2_000)]
    share = sum(0 in order for order in orders) / len(orders)
    assert share == pytest.approx(2 / 12, abs=0.03)  # the anchor is sample 0 or 1


@pytest.mark.parametrize("few", [0, nearest.FEW])
def test_equal_targets_are_shuffled_too(few, monkeypatch):
    monkeypatch.setattr(nearest, "FEW", few)
    sampler = NearestBatchSampler(torch.zeros(64), 8)
    first = {frozenset(batch) for batch in sampler}
    assert first != {frozenset(batch) for batch in sampler}


def test_batches_come_in_random_order():
    # The batches made last are left-overs from everywhere; they must not come last in each epoch.
    y = make_targets(512)
    spreads = torch.zeros(64)
    for epoch in range(20):
        sampler = NearestBatchSampler(y, 8, seed=epoch)
        spreads += torch.tensor([y[batch].max() - y[batch].min() for batch in sampler])
    assert spreads[:32].sum() == pytest.approx(spreads[32:].sum().item(), rel=0.25)


def test_weighted_partners_are_drawn_by_one_over_distance():
    y = torch.tensor([0.0, 1.0, 2.0, 4.0, 8.0])
    counts = torch.zeros(5)
    for seed in range(4000):
        order = WeightedBatchSampler(y, 2)._order(np.random.default_rng(seed))
        pair = set(order[:2].tolist())
        anchor = np.random.default_rng(seed).permutation(5)[0]
        if anchor == 0:
            counts[(pair - {0}).pop()] += 1
    weights = torch.tensor([0.0, 1.0, 0.5, 0.25, 0.125])
    expected = weights / weights.sum()
    found = counts / counts.sum()
    spread = (expected * (1 - expected) / counts.sum()).sqrt()
    assert ((found - expected).abs() <= 4 * spread + 1e-9).all()


def draw_company(values, used, here, count, seed, **options):
    line = _Line(np.sort(values), np.random.default_rng(seed), **options)
    line.is_unused[used] = False
    return line._company(here, count)


def assert_frequencies(counts, expected):
    counts, expected = np.asarray(counts, float), np.asarray(expected) * np.sum(counts)
    is_large = expected >= 5
    counts = np.append(counts[is_large], counts[~is_large].sum())
    expected = np.append(expected[is_large], expected[~is_large].sum())
    if expected[-1] == 0:
        counts, expected = counts[:-1], expected[:-1]
    assert chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize("used", [[0], [0, 1, 2, 9]], ids=["fresh", "near ones used"])
@pytest.mark.parametrize("rounds", [20, 0], ids=["by proposals", "from all"])
def test_weighted_draws_are_exact(used, rounds):
    # Near, far and very near: 1e-9 away is a band of its own, and once used holds nearly all mass.
    values = np.array([0.0, 1e-9, 0.3, 0.31, 0.7, 1.0, 2.0, 4.0, 4.5, 30.0])
    free = [i for i in range(10) if i not in used]
    weights = np.zeros(10)
    weights[free] = 1 / values[free]
    first, second = np.zeros(10), np.zeros(10)
    for seed in range(3000):
        one, two = draw_company(values, used, 0.0, 2, seed, rounds=rounds)
        first[one] += 1
        second[two] += 1
    expected_second = np.zeros(10)
    for i in free:  # the first one is gone when the second is drawn
        left = weights.copy()
        left[i] = 0
        expected_second += weights[i] / weights.sum() * left / left.sum()
    if rounds:  # the explicit way draws a set, without order
        assert_frequencies(first, weights / weights.sum())
        assert_frequencies(second, expected_second)
    assert_frequencies(first + second, (weights / weights.sum() + expected_second) / 2)


@pytest.mark.parametrize("sampler", [NearestBatchSampler, WeightedBatchSampler])
def test_extreme_targets_are_fine(sampler):
    for y in ([-1.7e308, 0.0, 1.7e308, 1.0], [0.0, 5e-324, 1e-300, 1.0], [3.0] * 4):
        assert sorted(index for batch in sampler(y, 2) for index in batch) == [0, 1, 2, 3]


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_sample_needs_less_than_300_bytes(n):
    y = make_targets(n)
    tracemalloc.start()
    sampler = NearestBatchSampler(y, 32)
    batches = iter(sampler)
    assert len(next(batches)) == 32
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * n
    assert len(sampler) == n // 32


def test_a_loader_takes_them():
    x, y = torch.randn(50, 3), make_targets(50)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=NearestBatchSampler(y, 8))
    assert sum(len(batch[1]) for batch in loader) == 50


def test_lightning_finds_set_epoch():
    sampler = RandomBatchSampler(make_targets(10), 2)
    assert sampler.sampler is sampler
    sampler.sampler.set_epoch(3)
    assert sampler.epoch == 3


@pytest.mark.parametrize(
    "y", [np.arange(6.0), [0.0, 1, 2, 3, 4, 5], torch.arange(6), np.ones((6, 2))]
)
def test_arrays_lists_and_integers_are_targets_too(y):
    assert sum(map(len, NearestBatchSampler(y, 2))) == 6


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_bad_arguments_are_named(sampler):
    y = make_targets(10)
    for batch_size in (0, -1, 11):
        with pytest.raises(
            ArgumentError, match=rf"`batch_size` must be from 1 to 10, got {batch_size}"
        ):
            sampler(y, batch_size)
    with pytest.raises(ArgumentTypeError, match="`batch_size` must be a whole number"):
        sampler(y, 2.5)
    with pytest.raises(NonFiniteError, match="`y` must be finite, got nan"):
        sampler(y * torch.nan, 2)
    with pytest.raises(ArgumentError, match="`y` must be .* not empty"):
        sampler(y[:0], 2)
    with pytest.raises(ArgumentError, match="`seed` must be at least 0, got -1"):
        sampler(y, 2, seed=-1)
    with pytest.raises(ArgumentError, match="`rank` must be from 0 to 1, got 2"):
        sampler(y, 2, rank=2, world_size=2)
    with pytest.raises(ArgumentError, match="`rank` and `world_size` go together"):
        sampler(y, 2, rank=1)
    with pytest.raises(ArgumentError, match="leave a batch for each of 3 processes"):
        len(sampler(y, 5, rank=0, world_size=3))


@pytest.mark.parametrize("kind", [RandomBatchSampler, NearestBatchSampler])
def test_a_trainer_that_puts_in_its_own_sampler_is_told_what_to_set(kind):
    own = torch.utils.data.DistributedSampler(range(40), num_replicas=2, rank=0)
    # What Lightning and Fabric call by default when several processes train.
    with pytest.raises(TypeError, match=r"got DistributedSampler.*use_distributed_sampler=False"):
        kind(own, batch_size=8, drop_last=False)
