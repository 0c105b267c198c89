"""Data augmentation for regression in PyTorch."""

import regaug.report  # noqa: F401 - it makes itself known to studies
from regaug import data, functional, methods, metrics, models, training
from regaug._version import __version__ as __version__
from regaug.augment import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Identity, Mixup
from regaug.dimension import linear_dimension, two_nn
from regaug.ensemble import fit
from regaug.problems import Problem
from regaug.samplers import (
    KernelPairSampler,
    NearestBatchSampler,
    RandomBatchSampler,
    WeightedBatchSampler,
)
from regaug.studies.compare import compare
from regaug.studies.study import Study

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
    "Study",
    "WeightedBatchSampler",
    "compare",
    "data",
    "fit",
    "functional",
    "linear_dimension",
    "methods",
    "metrics",
    "models",
    "training",
    "two_nn",
]
