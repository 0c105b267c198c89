"""The public surface: names, types, import time."""

import importlib.metadata
from pathlib import Path

import regaug

PUBLIC = {
    "ADA",
    "CEMS",
    "CMixup",
    "Compose",
    "GaussianNoise",
    "Identity",
    "KernelPairSampler",
    "Mixup",
    "compare",
    "fit",
    "methods",
    "metrics",
    "models",
    "training",
    "FOMA",
    "NearestBatchSampler",
    "Problem",
    "RandomBatchSampler",
    "Study",
    "WeightedBatchSampler",
    "data",
    "functional",
    "linear_dimension",
    "two_nn",
}
HEAVY = [
    "pyarrow",
    "pooch",
    "sklearn",
    "scipy",
    "PIL",
    "lightning",
    "lightning_fabric",
    "pytorch_lightning",
    "skorch",
    "imblearn",
    "accelerate",
    "optuna",
    "ray",
    "matplotlib",
    "pandas",
    "typer",
    "rich",
    "torch._dynamo",
]


def test_public_names_are_those_of_the_contract():
    assert set(regaug.__all__) == PUBLIC
    assert all(hasattr(regaug, name) for name in PUBLIC)


def test_version_is_that_of_the_installed_package():
    assert regaug.__version__ == importlib.metadata.version("regaug")


def test_the_package_is_typed():
    assert (Path(regaug.__file__).parent / "py.typed").is_file()


def test_import_is_light(fresh):
    code = f"import sys, regaug; print([name for name in {HEAVY} if name in sys.modules])"
    assert fresh(code) == "[]"
