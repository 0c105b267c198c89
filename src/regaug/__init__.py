"""Data augmentation for regression in PyTorch."""

from regaug import functional
from regaug.augment import FOMA
from regaug.dimension import linear_dimension, two_nn
from regaug.samplers import NearestBatchSampler, RandomBatchSampler, WeightedBatchSampler

__version__ = "0.1.0"

__all__ = [
    "FOMA",
    "NearestBatchSampler",
    "RandomBatchSampler",
    "WeightedBatchSampler",
    "functional",
    "linear_dimension",
    "two_nn",
]
