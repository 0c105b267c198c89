"""Samplers against what the released scripts do, and a million samples against forty thousand."""

from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from sklearn.neighbors import KernelDensity

from benchmarks.timing import Row, interleaved
from regaug import KernelPairSampler, NearestBatchSampler, WeightedBatchSampler


def by_matrix(y: torch.Tensor) -> torch.Tensor:
    """What the released scripts do before the first batch: all distances, all sorted."""
    return (y[:, None] - y[None, :]).abs().argsort(dim=1)


def by_density(y: torch.Tensor, bandwidth: float, rows: int) -> None:
    """What C-Mixup's script does for every sample: a kernel density of its own."""
    column = y.numpy()[:, None]
    for i in range(rows):
        density = KernelDensity(kernel="gaussian", bandwidth=bandwidth).fit(column[i : i + 1])
        rate = np.exp(density.score_samples(column))
        rate /= rate.sum()


def nearest(y: torch.Tensor) -> None:
    deque(NearestBatchSampler(y, 32), maxlen=0)


def pairs(y: torch.Tensor) -> None:
    deque(KernelPairSampler(y, 32, bandwidth=0.3), maxlen=0)


def weighted(y: torch.Tensor) -> None:
    deque(WeightedBatchSampler(y, 32), maxlen=0)


def measure() -> Iterator[Row]:
    small, middle, large = (
        torch.randn(n, generator=torch.Generator().manual_seed(0))
        for n in (10_000, 40_000, 1_000_000)
    )
    plain, ours = interleaved([lambda: by_matrix(small), lambda: nearest(small)], 3)
    yield Row("nearest batches, 10,000 samples, against the matrix", plain, ours, budget=50.0)
    rows = 40
    plain, ours = interleaved([lambda: by_density(middle, 0.3, rows), lambda: pairs(middle)], 3)
    plain *= len(middle) / rows
    yield Row("kernel pairs, 40,000 samples, against densities", plain, ours, budget=100.0)
    for name, epoch, bars in (
        ("nearest batches", nearest, (2.0, 1.0)),
        ("kernel pairs", pairs, (2.0, 1.0)),
        ("weighted batches", weighted, (None, None)),
    ):
        few, many = interleaved([partial(epoch, middle), partial(epoch, large)], 3)
        few, many = few / len(middle), many / len(large)
        name += ", time per sample, 1,000,000 against "
        yield Row(name + "40,000", few, many, faster=False, budget=bars[0])
        yield Row(name + "10 microseconds", 10e-6, many, faster=False, budget=bars[1])
