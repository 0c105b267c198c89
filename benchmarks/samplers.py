"""Nearest batches against the n x n matrix, and a million samples against forty thousand."""

from collections.abc import Iterator

import torch

from benchmarks.timing import Row, interleaved
from regaug import NearestBatchSampler


def by_matrix(y: torch.Tensor) -> torch.Tensor:
    """What the released scripts do before the first batch: all distances, all sorted."""
    return (y[:, None] - y[None, :]).abs().argsort(dim=1)


def epoch(y: torch.Tensor) -> list[list[int]]:
    return list(NearestBatchSampler(y, 32))


def measure() -> Iterator[Row]:
    small, middle, large = (
        torch.randn(n, generator=torch.Generator().manual_seed(0))
        for n in (10_000, 40_000, 1_000_000)
    )
    plain, ours = interleaved([lambda: by_matrix(small), lambda: epoch(small)], 3)
    yield Row("nearest batches, 10,000 samples, against the matrix", plain, ours, budget=50.0)
    few, many = interleaved([lambda: epoch(middle), lambda: epoch(large)], 5)
    few, many = few / len(middle), many / len(large)
    name = "nearest batches, time per sample, 1,000,000 against "
    yield Row(name + "40,000", few, many, faster=False, budget=2.0)
    yield Row(name + "10 microseconds", 10e-6, many, faster=False, budget=1.0)
