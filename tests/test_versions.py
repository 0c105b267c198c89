"""The versions that are promised are those that were tested."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
CHECKERS = {"mypy", "pre-commit", "ruff"}  # make check runs with the versions of constraints.txt


def floors():
    """Return the oldest version of everything that pyproject.toml names, but for the docs."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"]]
    named += [each for extra, own in extras.items() if extra != "docs" for each in own]
    found = {}
    for requirement in named:
        if not requirement.startswith("regaug["):
            name, version = requirement.split(">=")
            found[name] = version
    return {name: version for name, version in found.items() if name not in CHECKERS}


def pinned(file):
    lines = (PROJECT / file).read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {re.sub("[-_.]+", "-", name).lower(): version for name, version in pairs}


def numbers(version):
    """Return a version without the zeros at its end: 2.6 is 2.6.0."""
    return [int(part) for part in re.sub(r"(\.0)+$", "", version).split(".")]


def test_the_floors_are_the_oldest_versions_that_were_tested():
    tested = pinned("constraints-oldest.txt")
    for name, version in floors().items():
        assert numbers(tested[name]) == numbers(version), name


def test_no_floor_is_above_the_version_that_is_tested_every_day():
    tested = pinned("constraints.txt")
    for name, version in floors().items():
        assert numbers(version) <= numbers(tested[name]), name
