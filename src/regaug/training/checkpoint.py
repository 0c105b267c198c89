"""Checkpoints of a training, and weights that must fit the model they are put into."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regaug._checks import check_integer
from regaug.exceptions import CheckpointError
from regaug.training.state_files import read_state, remove_state, write_state

EPOCH = re.compile(r"epoch-(\d+)(\.previous)?")
LEFTOVER = re.compile(r"\.epoch-\d+(\.previous)?\.\d+\.tmp")
SHOWN = 3  # names in an error


class Checkpoints:
    """The saved states of one training, a folder ``epoch-00007`` for each; one process writes.

    The last two are kept. A process killed at any moment, or a full disk, leaves the earlier ones
    as they are, and never a checkpoint that is half there.

    Args:
        folder: Where they are; made by the first :meth:`save`.

    Example:
        >>> import tempfile
        >>> checkpoints = Checkpoints(tempfile.mkdtemp())
        >>> for epoch in (1, 2, 3):
        ...     checkpoints.save(epoch, {"loss": 1.0 / epoch})
        >>> checkpoints.latest()
        (3, {'loss': 0.3333333333333333})
        >>> checkpoints.clear()
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def save(self, epoch: int, state: Mapping[str, Any]) -> None:
        """Write the state of an epoch, then remove all others but the one before it.

        Args:
            epoch: Number of finished epochs, at least 0.
            state: What :func:`~regaug.training.state_files.write_state` takes.
        """
        epoch = check_integer("epoch", epoch, 0)
        self._remove_leftovers()
        try:
            write_state(self._path(epoch), state)
        except CheckpointError as error:
            raise CheckpointError(f"{error}{self._what_is_left()}") from error.__cause__
        before = [other for other in self._epochs() if other < epoch]
        with suppress(OSError):  # the state is safe, and the next call tries again
            self._remove_all_but({epoch, *before[-1:]})

    def latest(self) -> tuple[int, dict[str, Any]] | None:
        """Return the newest epoch and its state; None if nothing was saved.

        A damaged one is an error, which names the folder to delete to go on from the one before.
        """
        epochs = self._epochs()
        return (epochs[-1], read_state(self._path(epochs[-1]))) if epochs else None

    def clear(self) -> None:
        """Remove all checkpoints; other files in the folder stay."""
        self._remove_leftovers()
        try:
            self._remove_all_but(set())
        except OSError as error:
            raise CheckpointError(
                f"Could not remove the checkpoints in {self.folder}: {error.strerror or error}."
            ) from error

    def _path(self, epoch: int) -> Path:
        return self.folder / f"epoch-{epoch:05d}"

    def _epochs(self) -> list[int]:
        matches = (EPOCH.fullmatch(name) for name in self._names())
        return sorted({int(match[1]) for match in matches if match})

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise CheckpointError(
                f"Could not read the checkpoints in {self.folder}: {error.strerror or error}."
            ) from error

    def _remove_all_but(self, kept: set[int]) -> None:
        for epoch in set(self._epochs()) - kept:
            remove_state(self._path(epoch))

    def _remove_leftovers(self) -> None:
        for name in self._names():
            if LEFTOVER.fullmatch(name):
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _what_is_left(self) -> str:
        epochs = self._epochs()
        return f" The checkpoint of epoch {epochs[-1]} is untouched." if epochs else ""


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Copy weights into a module if all names and shapes agree; otherwise leave it untouched.

    Args:
        module: Any module.
        weights: Parameters and buffers by name, as in ``module.state_dict()``.
        source: Where they come from, for the error.

    Example:
        >>> load_weights(nn.Linear(2, 1), nn.Linear(3, 1).state_dict(), source="run/epoch-00007")
        Traceback (most recent call last):
            ...
        regaug.exceptions.CheckpointError: The weights of run/epoch-00007 belong to another
        architecture than this Linear: weight is (1, 3) there and (1, 2) here. Build the model as
        it was when they were saved, or start again in another folder.
    """
    here = module.state_dict()
    differences = [
        _listed("missing there: ", [name for name in here if name not in weights]),
        _listed("unknown here: ", [name for name in weights if name not in here]),
        _listed("", _different_shapes(here, weights)),
    ]
    if any(differences):
        raise CheckpointError(
            f"The weights of {source} belong to another architecture than this "
            f"{type(module).__name__}: {'; '.join(filter(None, differences))}. "
            "Build the model as it was when they were saved, or start again in another folder."
        )
    module.load_state_dict(weights)


def _different_shapes(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {_form(there[name])} there and {_form(value)} here"
        for name, value in here.items()
        if name in there and _form(there[name]) != _form(value)
    ]


def _form(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _listed(title: str, items: list[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return f"{title}{', '.join(items[:SHOWN])}{more}" if items else ""
