"""Augmentations: modules that turn a batch into a new batch."""

from typing import Any

from regaug.augment.ada import ADA
from regaug.augment.base import Augmentation
from regaug.augment.cems import CEMS
from regaug.augment.compose import Compose, Identity
from regaug.augment.foma import FOMA
from regaug.augment.mixup import CMixup, Mixup
from regaug.augment.noise import GaussianNoise

# Every augmentation by its name; the contract tests go through this table.
AUGMENTATIONS: dict[str, type[Augmentation[Any]]] = {
    "identity": Identity,
    "noise": GaussianNoise,
    "mixup": Mixup,
    "c-mixup": CMixup,
    "ada": ADA,
    "foma": FOMA,
    "cems": CEMS,
    "compose": Compose,
}

__all__ = [
    "ADA",
    "AUGMENTATIONS",
    "CEMS",
    "FOMA",
    "Augmentation",
    "CMixup",
    "Compose",
    "GaussianNoise",
    "Identity",
    "Mixup",
]
