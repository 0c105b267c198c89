"""Batch samplers: which samples share a batch."""

from regaug.samplers.base import BatchSampler
from regaug.samplers.kernel_pairs import KernelPairSampler
from regaug.samplers.nearest import NearestBatchSampler
from regaug.samplers.random import RandomBatchSampler
from regaug.samplers.weighted import WeightedBatchSampler

# Every sampler by its name in settings; the contract tests go through this table.
SAMPLERS: dict[str, type[BatchSampler]] = {
    "random": RandomBatchSampler,
    "nearest": NearestBatchSampler,
    "weighted": WeightedBatchSampler,
    "kernel-pairs": KernelPairSampler,
}

__all__ = [
    "SAMPLERS",
    "BatchSampler",
    "KernelPairSampler",
    "NearestBatchSampler",
    "RandomBatchSampler",
    "WeightedBatchSampler",
]
