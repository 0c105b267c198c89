"""Batch samplers: which samples share a batch."""

from regaug._registry import Registry
from regaug.exceptions import ArgumentTypeError
from regaug.samplers.base import BatchSampler
from regaug.samplers.kernel_pairs import KernelPairSampler
from regaug.samplers.nearest import NearestBatchSampler
from regaug.samplers.random import RandomBatchSampler
from regaug.samplers.rare import RareSampler
from regaug.samplers.weighted import WeightedBatchSampler

__all__ = [
    "SAMPLERS",
    "BatchSampler",
    "KernelPairSampler",
    "NearestBatchSampler",
    "RandomBatchSampler",
    "RareSampler",
    "WeightedBatchSampler",
    "register",
]


def _check_sampler(name: str, sampler: type[BatchSampler]) -> None:
    if not isinstance(sampler, type) or not issubclass(sampler, BatchSampler):
        raise ArgumentTypeError(
            "`sampler` must be a class that derives from regaug.samplers.BatchSampler, got "
            f"{sampler!r}."
        )


# Every sampler by its name in settings; the contract tests go through this table.
SAMPLERS: Registry[type[BatchSampler]] = Registry(
    "sampler",
    "regaug.samplers",
    {
        "random": RandomBatchSampler,
        "nearest": NearestBatchSampler,
        "weighted": WeightedBatchSampler,
        "kernel-pairs": KernelPairSampler,
        "rare": RareSampler,
    },
    check=_check_sampler,
)


def register(name: str, sampler: type[BatchSampler], *, replace: bool = False) -> None:
    """Make a batch sampler of your own known by a name, for the setting ``sampler``.

    See :func:`regaug.methods.register`; the group of entry points is ``regaug.samplers``.
    """
    SAMPLERS.register(name, sampler, replace=replace)
