"""Data augmentation for regression in PyTorch."""

from regaug import data, functional, methods
from regaug.augment import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Identity, Mixup
from regaug.dimension import linear_dimension, two_nn
from regaug.samplers import (
    KernelPairSampler,
    NearestBatchSampler,
    RandomBatchSampler,
    WeightedBatchSampler,
)

__version__ = "0.1.0"

__all__ = [
    "ADA",
    "CEMS",
    "FOMA",
    "CMixup",
    "Compose",
    "GaussianNoise",
    "Identity",
    "KernelPairSampler",
    "Mixup",
    "NearestBatchSampler",
    "RandomBatchSampler",
    "WeightedBatchSampler",
    "data",
    "functional",
    "linear_dimension",
    "methods",
    "two_nn",
]
