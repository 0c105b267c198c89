"""The public surface: every public name, and how it is called.

    python -m tests.surface        writes tests/api_surface.json

A change of it shows in the difference of that file, so that nobody changes it by accident.
"""

import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "api_surface.json"
MODULES = (
    "regaug",
    "regaug.augment",
    "regaug.data",
    "regaug.functional",
    "regaug.methods",
    "regaug.metrics",
    "regaug.models",
    "regaug.samplers",
    "regaug.testing",
    "regaug.training",
    "regaug.exceptions",
    "regaug.integrations.lightning",
    "regaug.integrations.sklearn",
    "regaug.integrations.skorch",
)


def surface() -> dict[str, dict[str, Any]]:
    """Return what is public of every public module."""
    return {name: dict(sorted(_names(name))) for name in MODULES}


def _names(module: str) -> Iterator[tuple[str, Any]]:
    loaded = import_module(module)
    for name in getattr(loaded, "__all__", None) or _defined(loaded):
        yield name, _describe(getattr(loaded, name))


def _defined(module: Any) -> list[str]:
    """Return the public classes and functions that a module without `__all__` defines."""
    members = inspect.getmembers(module, lambda own: inspect.isclass(own) or inspect.isroutine(own))
    return [
        name
        for name, own in members
        if not name.startswith("_") and own.__module__ == module.__name__
    ]


def _describe(own: Any) -> Any:
    if inspect.ismodule(own):
        return "module"
    if inspect.isclass(own):
        bases = [base.__name__ for base in own.__bases__ if base is not object]
        return {"call": _call(own), "is a": bases, "members": dict(sorted(_members(own)))}
    return _call(own) if callable(own) else type(own).__name__


def _members(own: type) -> Iterator[tuple[str, str]]:
    """Give what a class makes public itself, beside what it has from other public ones."""
    for name, member in _vars(own).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield name, "property"
        elif isinstance(member, classmethod | staticmethod):
            yield name, _call(member.__func__)
        elif inspect.isfunction(member):
            yield name, _call(member)


def _vars(own: type) -> dict[str, Any]:
    """Return the attributes of a class, and those of the bases of ours that nobody imports."""
    listed = {part for base in own.__mro__[1:] if base in _public() for part in base.__mro__}
    hidden = [base for base in own.__mro__[1:] if base.__module__.startswith("regaug.")]
    parts = (own, *(base for base in hidden if base not in listed))
    return {name: member for part in reversed(parts) for name, member in vars(part).items()}


@cache
def _public() -> set[type]:
    loaded = map(import_module, MODULES)
    names = ((own, name) for own in loaded for name in getattr(own, "__all__", ()))
    found = (getattr(own, name) for own, name in names)
    return {own for own in found if inspect.isclass(own)}


def _call(own: Any) -> str:
    """Return the names of the parameters and their defaults; types are not a part of it."""
    try:
        parameters = inspect.signature(own).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    plain = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    text = str(inspect.Signature(plain))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


if __name__ == "__main__":
    FILE.write_text(json.dumps(surface(), indent=1) + "\n")
