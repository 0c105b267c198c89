"""A model by the place where it is written: ``module:make`` or ``file.py:make``."""

import importlib
import importlib.util
import os
import sys
import traceback
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from regaug._registry import unknown
from regaug._scripts import import_script, is_script
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.training.estimators import call_factory, is_regressor


@dataclass(frozen=True)
class Factory:
    """Makes a model with a function of the user's, in whatever process it is called.

    What is sent to another process is where the function is written, not what it is made of.

    Attributes:
        place: ``module:make``, or ``path/file.py:make``; ``make`` may be a model, too, as it is.
        folder: The folder from which modules are imported and files are named.

    Example:
        >>> type(Factory("sklearn.linear_model:Ridge")()).__name__
        'Ridge'
    """

    place: str
    folder: str = field(default_factory=os.getcwd)

    def __call__(self, split: Any = None, seed: int = 0) -> Any:
        """Make a fresh model for a split."""
        thing = self.find()
        return thing if is_regressor(thing) else call_factory(thing, split, seed)

    def find(self) -> Any:
        """Return what stands there."""
        where, _, name = self.place.rpartition(":")
        if not where or not name:
            raise ArgumentError(
                f"`model` must be written module:make or file.py:make, got {self.place!r}."
            )
        module = _load(where, self.folder)
        thing = getattr(module, name, None)
        if thing is None:
            own = [known for known in vars(module) if not known.startswith("_")]
            raise UnknownNameError(f"`model`: {unknown(f'name in {where}', name, own)}")
        if not callable(thing) and not is_regressor(thing):
            raise ArgumentError(
                f"`model` must be a function that makes a model, or a regressor, got "
                f"{type(thing).__name__} in {self.place!r}."
            )
        return thing


@cache
def _load(where: str, folder: str) -> ModuleType:
    """Import a module by its name, or a file by its path."""
    if is_script(where):
        if not (path := Path(folder, where)).is_file():
            raise UnknownNameError(f"`model`: there is no file {where!r}.")
        return import_script(path)
    if folder not in sys.path:  # as `python -m` has it; commands do not
        sys.path.insert(0, folder)
    if _is_missing(where):
        raise UnknownNameError(
            f"`model`: there is no module {where!r}. Name a file by its path: "
            f"{where.replace('.', '/')}.py:make."
        )
    try:
        return importlib.import_module(where)
    except Exception as error:
        raise ArgumentError(_say(error, where)) from error


def _is_missing(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except ModuleNotFoundError:  # of a package that it would be in
        return True


def _say(error: Exception, where: str) -> str:
    """Return what is wrong in a file of the user's, with the line."""
    if isinstance(error, SyntaxError):
        line, text = error.lineno, (error.text or "").strip()
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if one.filename.endswith(Path(where).name)] or frames[-1:]
        line, text = own[-1].lineno, (own[-1].line or "").strip()
    return f"`model`: {where}, line {line}: {text}: {type(error).__name__}: {error}"
