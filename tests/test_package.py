"""The public surface: names, types, import time."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import regaug

PUBLIC = {
    "ADA",
    "CEMS",
    "CMixup",
    "Compose",
    "FeatureMix",
    "TeacherRows",
    "GaussianNoise",
    "Identity",
    "KernelPairSampler",
    "Mixup",
    "SKMixup",
    "SMOGN",
    "compare",
    "fit",
    "methods",
    "metrics",
    "models",
    "samplers",
    "testing",
    "training",
    "FOMA",
    "NearestBatchSampler",
    "Problem",
    "RandomBatchSampler",
    "RareSampler",
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
    code = f"from regaug import *; import sys; print([n for n in {HEAVY} if n in sys.modules])"
    assert fresh(code) == "[]"


def test_nothing_is_imported_before_it_is_asked_for():
    code = "import regaug, sys; print([name for name in sys.modules if name.startswith('regaug.')])"
    words = [sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "['regaug._version']\n"


def test_a_name_that_there_is_not_is_an_error():
    with pytest.raises(AttributeError, match="module 'regaug' has no attribute 'FOMO'"):
        regaug.FOMO  # noqa: B018
    assert set(dir(regaug)) >= PUBLIC


@pytest.mark.slow
def test_types_are_known_to_whoever_checks_a_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import regaug\nfrom regaug import compare\n"
        "reveal_type(compare(regaug.data.load('diabetes')))\nregaug.FOMO\n"
    )
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(program)]
    done = subprocess.run(
        [*words, "--cache-dir", str(tmp_path)],
        env=os.environ | {"MYPYPATH": str(Path(regaug.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert 'Revealed type is "regaug.studies.study.Study"' in done.stdout
    assert 'Module has no attribute "FOMO"' in done.stdout
