"""Augmentations: modules that turn a batch into a new batch."""

from regaug.augment.base import Augmentation
from regaug.augment.foma import FOMA, FOMAParams

__all__ = ["FOMA", "Augmentation", "FOMAParams"]
