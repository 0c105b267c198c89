"""Data augmentation for regression in PyTorch."""

from regaug import data, functional, methods, metrics, models, report, training
from regaug.augment import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Identity, Mixup
from regaug.dimension import linear_dimension, two_nn
from regaug.problems import Problem
from regaug.samplers import (
    KernelPairSampler,
    NearestBatchSampler,
    RandomBatchSampler,
    WeightedBatchSampler,
)
from regaug.studies.auto import fit
from regaug.studies.compare import compare

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
    "Problem",
    "RandomBatchSampler",
    "WeightedBatchSampler",
    "compare",
    "data",
    "fit",
    "functional",
    "linear_dimension",
    "methods",
    "metrics",
    "models",
    "report",
    "training",
    "two_nn",
]
