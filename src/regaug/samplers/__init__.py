"""Batch samplers: which samples share a batch."""

from regaug.samplers.base import BatchSampler
from regaug.samplers.nearest import NearestBatchSampler
from regaug.samplers.random import RandomBatchSampler
from regaug.samplers.weighted import WeightedBatchSampler

__all__ = ["BatchSampler", "NearestBatchSampler", "RandomBatchSampler", "WeightedBatchSampler"]
