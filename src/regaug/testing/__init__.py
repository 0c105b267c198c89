"""The contract of an augmentation, a sampler and a method, as checks of your own ones.

Each of them raises one error that says in words all that is missing, and returns nothing if nothing
is. They need no test framework.
"""

from regaug.testing.augmentations import check_augmentation
from regaug.testing.methods import check_method
from regaug.testing.samplers import check_sampler

__all__ = ["check_augmentation", "check_method", "check_sampler"]
