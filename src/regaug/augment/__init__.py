"""Augmentations: modules that turn a batch into a new batch."""

from regaug.augment.ada import ADA
from regaug.augment.base import Augmentation
from regaug.augment.cems import CEMS
from regaug.augment.compose import Compose, Identity
from regaug.augment.feature_mix import FeatureMix
from regaug.augment.foma import FOMA
from regaug.augment.mixup import CMixup, Mixup
from regaug.augment.noise import GaussianNoise
from regaug.augment.sk_mixup import SKMixup
from regaug.augment.smogn import SMOGN
from regaug.augment.teacher_rows import TeacherRows

__all__ = [
    "ADA",
    "CEMS",
    "FOMA",
    "SMOGN",
    "Augmentation",
    "CMixup",
    "Compose",
    "FeatureMix",
    "GaussianNoise",
    "Identity",
    "Mixup",
    "SKMixup",
    "TeacherRows",
]
