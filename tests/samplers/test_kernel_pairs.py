"""Kernel pairs: the exact distribution of partners, speed, memory, ranks."""

import time
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import chisquare
from sklearn.neighbors import KernelDensity

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.samplers.kernel_pairs import KernelPairSampler


def make_targets(n, targets=1, seed=0):
    y = np.random.default_rng(seed).normal(size=(n, targets))
    return y[:, 0] if targets == 1 else y


def make_clusters(targets=1, n=500, seed=0):
    """A wide cluster, a tight one five and a half away, duplicates, a grid, one far from all."""
    rng = np.random.default_rng(seed)
    wide, tight, grid = n // 2, n // 4, n // 8
    same = n - wide - tight - grid - 1
    return np.concatenate(
        [
            rng.normal(0.0, 0.5, (wide, targets)),
            rng.normal(5.5 / np.sqrt(targets), 0.05, (tight, targets)),
            rng.integers(-4, 5, (grid, targets)),
            np.full((same, targets), 1.25),
            np.full((1, targets), -9.0 / np.sqrt(targets)),
        ]
    )


def split(batch):
    half = len(batch) // 2
    return batch[:half], batch[half:]


def count_partners(y, bandwidth, epochs):
    """Return how often each sample got each partner."""
    sampler = KernelPairSampler(y, len(y), bandwidth=bandwidth)
    counts = np.zeros((len(y), len(y)))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        [batch] = sampler
        np.add.at(counts, split(batch), 1)
    return counts


def probabilities(y, bandwidth):
    rows = y.reshape(len(y), -1)
    weights = np.exp(-0.5 * (cdist(rows, rows) / bandwidth) ** 2)
    return weights / weights.sum(axis=1, keepdims=True)


def chi_square_p(counts, expected):
    """Test all rows together, the rare cells of a row merged until each is expected often."""
    observed_cells, expected_cells = [], []
    for row, expected_row in zip(counts, expected, strict=True):
        order = np.argsort(expected_row)
        starts = starts_of_cells(np.cumsum(expected_row[order]))
        observed_cells.append(np.add.reduceat(row[order], starts))
        expected_cells.append(np.add.reduceat(expected_row[order], starts))
    observed, wanted = np.concatenate(observed_cells), np.concatenate(expected_cells)
    assert len(observed) > len(counts)
    ddof = len(counts) - 1  # the sum of every row is given
    return chisquare(observed, wanted, ddof=ddof).pvalue


def starts_of_cells(cumulative, at_least=5.0):
    """Cut a row into cells that are expected at least so often."""
    starts, before = [0], 0.0
    while True:
        end = int(np.searchsorted(cumulative, before + at_least)) + 1
        if end >= len(cumulative) or cumulative[-1] - cumulative[end - 1] < at_least:
            return starts
        starts.append(end)
        before = cumulative[end - 1]


@pytest.mark.parametrize("bandwidth", [0.1, 1.0, 3.0])
def test_partners_follow_the_kernel(bandwidth):
    y = make_clusters()[:, 0]
    counts = count_partners(y, bandwidth, epochs=300)
    assert chi_square_p(counts, 300 * probabilities(y, bandwidth)) > 1e-4
    # The same counts do not follow a slightly different kernel.
    assert chi_square_p(counts, 300 * probabilities(y, 1.15 * bandwidth)) < 1e-4


@pytest.mark.parametrize("targets", [2, 8])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0])
def test_partners_follow_the_kernel_of_several_targets(targets, bandwidth):
    y = make_clusters(targets, n=120)
    counts = count_partners(y, bandwidth, epochs=400)
    assert chi_square_p(counts, 400 * probabilities(y, bandwidth)) > 1e-4
    assert chi_square_p(counts, 400 * probabilities(y, 1.2 * bandwidth)) < 1e-4


def test_grids_whose_steps_are_band_edges_are_drawn_right():
    # sqrt(6) bandwidths is where the first band ends, so rounding decides where samples lie.
    y = 0.1 * np.sqrt(6.0) * np.arange(40)
    counts = count_partners(y, 0.1, epochs=1000)
    assert chi_square_p(counts, 1000 * probabilities(y, 0.1)) > 1e-4


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("bandwidth", [1e4, 1e200, 1e308])
def test_a_huge_bandwidth_makes_all_partners_equally_likely(targets, bandwidth):
    y = make_targets(50, targets)
    counts = count_partners(y, bandwidth, epochs=500)
    assert chi_square_p(counts, np.full((50, 50), 10.0)) > 1e-4


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("bandwidth", [1e-9, 1e-200, 5e-324])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_tiny_bandwidth_leaves_the_sample_and_its_duplicates(targets, bandwidth, offset):
    y = make_targets(40, targets).repeat(2, axis=0) + offset
    counts = count_partners(y, bandwidth, epochs=100)
    pairs = np.kron(np.eye(40), np.ones((2, 2)))
    assert (counts[pairs == 0] == 0).all()
    assert chi_square_p(counts, 50 * pairs) > 1e-4


@pytest.mark.parametrize("y", [np.zeros(30), np.array([-1e308, 1e308, 0.0]), np.array([2.0])])
def test_equal_extreme_and_single_targets_work(y):
    with np.errstate(over="ignore"):
        weights = np.abs(y[:, None] - y) == 0  # anything else is too far away
    samples, partners = split(next(iter(KernelPairSampler(y, len(y)))))
    assert sorted(samples) == list(range(len(y)))
    assert weights[samples, partners].all()


@given(
    n=st.integers(1, 60),
    batch_size=st.integers(1, 20),
    targets=st.sampled_from([1, 2, 5]),
    drop_last=st.booleans(),
    seed=st.integers(0, 99),
)
def test_samples_come_first_each_once_then_their_partners(n, batch_size, targets, drop_last, seed):
    batch_size = min(batch_size, n)
    y = make_targets(n, targets, seed)
    sampler = KernelPairSampler(y, batch_size, seed=seed, drop_last=drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler) == (n // batch_size if drop_last else -(-n // batch_size))
    samples = [index for batch in batches for index in split(batch)[0]]
    partners = [index for batch in batches for index in split(batch)[1]]
    assert len(samples) == len(set(samples)) == len(partners)
    assert set(samples) | set(partners) <= set(range(n))
    assert drop_last or len(samples) == n
    sizes = sorted(map(len, batches))
    assert all(size == 2 * batch_size for size in sizes[1:])
    assert all(type(index) is int for batch in batches for index in batch)


@pytest.mark.parametrize("targets", [1, 3])
def test_seed_and_epoch_decide(targets):
    y = make_targets(50, targets)
    first, same, other = (KernelPairSampler(y, 8, seed=seed) for seed in (1, 1, 2))
    start = list(first)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 (the global generator must not matter)
    assert list(same) == start
    assert list(other) != start
    assert list(first) == list(same) != start  # the next epoch
    first.set_epoch(0)
    assert list(first) == start


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("targets", [1, 2])
def test_ranks_take_disjoint_shares_of_the_same_batches(world_size, targets):
    y = make_targets(103, targets)
    shares = [
        list(KernelPairSampler(y, 8, seed=4, rank=rank, world_size=world_size))
        for rank in range(world_size)
    ]
    alone = list(KernelPairSampler(y, 8, seed=4))
    assert {len(share) for share in shares} == {len(alone) // world_size}
    together = [batch for share in shares for batch in share]
    assert all(batch in alone for batch in together)
    samples = [index for batch in together for index in split(batch)[0]]
    assert len(samples) == len(set(samples))


def test_tensors_arrays_and_lists_give_the_same_pairs():
    y = make_targets(30)
    batches = list(KernelPairSampler(y, 8))
    assert list(KernelPairSampler(torch.from_numpy(y), 8)) == batches
    assert list(KernelPairSampler(y[:, None], 8)) == batches
    assert list(KernelPairSampler(y.tolist(), 8)) == list(KernelPairSampler(y.astype("f4"), 8))


def test_the_callers_targets_are_not_modified():
    y = make_targets(30)
    copy = y.copy()
    list(KernelPairSampler(y, 8))
    assert (y == copy).all()


def seconds_of_an_epoch(n, bandwidth):
    y = make_targets(n)
    start = time.perf_counter()
    n_batches = len(list(KernelPairSampler(y, 32, bandwidth=bandwidth)))
    seconds = time.perf_counter() - start
    assert n_batches == n // 32
    return seconds


@pytest.mark.serial
@pytest.mark.parametrize("n", [400_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("bandwidth", [0.01, 1.0])
def test_time_per_sample_hardly_grows_with_the_number_of_samples(bandwidth, n):
    few = min(seconds_of_an_epoch(40_000, bandwidth) for _ in range(3)) / 40_000
    many = min(seconds_of_an_epoch(n, bandwidth) for _ in range(3)) / n
    print(f"{1e6 * few:.2f} us per sample at 40,000; {1e6 * many:.2f} us at {n:,}")
    assert many < 3.0 * few
    assert many < 10e-6


@pytest.mark.serial
def test_a_sparse_sample_next_to_a_dense_cluster_is_no_slower():
    # Among the samples within 6 bandwidths of the sparse ones, one in 10,000 is a likely partner.
    sparse, dense = np.random.default_rng(0).normal(size=(2, 200_000)) * 0.01
    y = np.concatenate([sparse[:20], 5.5 + dense])
    start = time.perf_counter()
    list(KernelPairSampler(y, 32))
    assert (time.perf_counter() - start) / len(y) < 10e-6


@pytest.mark.serial
def test_far_faster_than_one_density_estimate_per_sample():
    y = make_targets(40_000)[:, None]
    start = time.perf_counter()
    for i in range(40):  # the C-Mixup script does this for every sample
        density = KernelDensity(kernel="gaussian", bandwidth=1.0).fit(y[i : i + 1])
        rates = np.exp(density.score_samples(y))
        rates /= rates.sum()
    theirs = (time.perf_counter() - start) * 1000
    ours = seconds_of_an_epoch(40_000, 1.0)
    print(f"preparation and an epoch: {ours:.3f} s against {theirs:.0f} s, {theirs / ours:.0f}x")
    assert theirs > 100 * ours


def peak_of_an_epoch(sampler):
    tracemalloc.start()
    try:
        for _ in sampler:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_a_few_numbers_per_sample():
    peaks = [peak_of_an_epoch(KernelPairSampler(make_targets(n), 500)) for n in (50_000, 200_000)]
    print(f"peaks of {peaks[0] / 1e6:.1f} and {peaks[1] / 1e6:.1f} MB")
    assert peaks[1] - peaks[0] < 40 * 150_000  # five numbers
    assert peaks[0] < 20e6


def test_memory_with_several_targets_is_a_block_of_distances():
    sampler = KernelPairSampler(make_targets(2000, 8), 500, bandwidth=0.1)
    sampler.block = 2**16
    peak = peak_of_an_epoch(sampler)
    assert peak < 8e6  # all distances would be 32e6


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bandwidth": 0.0}, ArgumentError, "`bandwidth` must be greater than 0, got 0.0"),
        ({"bandwidth": -1.0}, ArgumentError, "`bandwidth` must be greater than 0, got -1.0"),
        ({"bandwidth": "wide"}, ArgumentTypeError, "`bandwidth` must be a number, got 'wide'"),
        ({"batch_size": 9}, ArgumentError, "`batch_size` must be from 1 to 8, got 9"),
        ({"y": [1.0] * 7 + [np.nan]}, NonFiniteError, "`y` must be finite"),
        ({"y": []}, ArgumentError, "`y` must be .* not empty"),
        ({"rank": 1}, ArgumentError, "`rank` and `world_size` go together"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        KernelPairSampler(**({"y": list(range(8)), "batch_size": 4} | arguments))
