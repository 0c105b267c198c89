"""Data augmentation for regression in PyTorch."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from regaug._version import __version__ as __version__

if TYPE_CHECKING:
    from regaug import data, functional, methods, metrics, models, samplers, testing, training
    from regaug.augment import (
        ADA,
        CEMS,
        FOMA,
        SMOGN,
        CMixup,
        Compose,
        FeatureMix,
        GaussianNoise,
        Identity,
        Mixup,
        SKMixup,
        TeacherRows,
    )
    from regaug.dimension import linear_dimension, two_nn
    from regaug.ensemble.entry import fit
    from regaug.problems import Problem
    from regaug.samplers import (
        KernelPairSampler,
        NearestBatchSampler,
        RandomBatchSampler,
        RareSampler,
        WeightedBatchSampler,
    )
    from regaug.studies.compare import compare
    from regaug.studies.study import Study

__all__ = [
    "ADA",
    "CEMS",
    "FOMA",
    "SMOGN",
    "CMixup",
    "Compose",
    "FeatureMix",
    "GaussianNoise",
    "Identity",
    "KernelPairSampler",
    "Mixup",
    "NearestBatchSampler",
    "Problem",
    "RandomBatchSampler",
    "RareSampler",
    "SKMixup",
    "Study",
    "TeacherRows",
    "WeightedBatchSampler",
    "compare",
    "data",
    "fit",
    "functional",
    "linear_dimension",
    "methods",
    "metrics",
    "models",
    "samplers",
    "testing",
    "training",
    "two_nn",
]
# Where the names are that are no modules.
_HOMES = (
    "augment",
    "samplers",
    "dimension",
    "problems",
    "ensemble",
    "studies.compare",
    "studies.study",
)

if not TYPE_CHECKING:  # who checks types is to refuse a name that there is not

    def __getattr__(name: str) -> object:
        """Import a name when it is asked for: the command line shows its help without torch."""
        if name in __all__:
            if find_spec(f"regaug.{name}"):
                return import_module(f"regaug.{name}")
            for home in _HOMES:
                found = getattr(import_module(f"regaug.{home}"), name, None)
                if found is not None:
                    globals()[name] = found
                    return found
        raise AttributeError(f"module 'regaug' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
