"""What the ensembles of a study are made and judged by: the targets of its splits, in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._files import write_bytes
from regaug._tensors import dump_tensors, read_tensors
from regaug.data.base import Split
from regaug.ensemble.scale import Bounds
from regaug.exceptions import FileError, StoreError
from regaug.problems import Problem
from regaug.runs.predictions import MOST_NUMBERS
from regaug.training.scores import own_targets

TARGETS = "targets.safetensors"
_NAMES = ("validation", "test", "low", "high")


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a split, in their own units, float64.

    Attributes:
        validation: Those that weights are chosen by, ``(n, m)``.
        test: Those that ensembles are judged by, ``(n, m)``.
        low: The lowest training target, ``(m,)``.
        high: The highest one, ``(m,)``.
        groups: Label of every test row's group, where there are groups.
    """

    validation: Tensor
    test: Tensor
    low: Tensor
    high: Tensor
    groups: NDArray[np.str_] | None = None

    @classmethod
    def of(cls, split: Split) -> Self:
        """Return the targets of a split."""
        train, validation, test = (
            own_targets(split, part).double().clone()
            for part in (split.train, split.validation, split.test)
        )
        groups = split.test.groups
        labels = None if groups is None else np.array([str(label) for label in groups], np.str_)
        return cls(validation, test, train.amin(dim=0), train.amax(dim=0), labels)

    def clamp(self, predicted: Tensor) -> Tensor:
        """Return predictions in the range of the training targets, and as much beyond."""
        return Bounds.around(self.low, self.high).clamp(predicted.double())


def make_targets(problem: Problem) -> list[Targets] | None:
    """Return the targets of every split; None if runs keep no predictions, as of too many rows.

    Reads every split of a problem whose splits are made when they are asked for.
    """
    found = []
    if problem.kind == "lightning":  # its runs keep no predictions
        return None
    for split in problem.splits:
        if (len(split.validation) + len(split.test)) * split.test.y.shape[1] > MOST_NUMBERS:
            return None
        found.append(Targets.of(split))
    return found


def write_targets(folder: str | Path, targets: Sequence[Targets]) -> Path:
    """Write the targets into the folder of a study; the file is whole or as it was."""
    tensors: dict[str, Tensor] = {}
    labels: list[list[str] | None] = []
    for number, own in enumerate(targets):
        tensors |= {f"{number}.{name}": getattr(own, name).contiguous() for name in _NAMES}
        labels.append(None)
        if own.groups is not None:
            known, places = np.unique(own.groups, return_inverse=True)
            labels[-1] = known.tolist()
            tensors[f"{number}.groups"] = torch.from_numpy(places.astype(np.int64))
    path = Path(folder, TARGETS)
    # Several processes may start one study at once; the last one's file stays, and all are equal.
    write_bytes(path, dump_tensors(tensors, {"groups": labels})[0])
    return path


def read_targets(folder: str | Path) -> list[Targets] | None:
    """Read the targets from the folder of a study; None if it has none."""
    path = Path(folder, TARGETS)
    if not path.exists():
        return None
    try:
        tensors, document = read_tensors(path)
        return _read(tensors, document)
    except FileError as error:
        raise StoreError(f"{error} {_WAY_OUT}") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"Cannot use {path}: it holds no targets of a study. {_WAY_OUT}"
        ) from error


_WAY_OUT = "Delete it, and run the command that started the study again, which writes it anew."


def _read(tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> list[Targets]:
    labels = document["groups"]
    expected = {f"{i}.{name}" for i in range(len(labels)) for name in _NAMES}
    expected |= {f"{i}.groups" for i, own in enumerate(labels) if own is not None}
    if not labels or tensors.keys() != expected:
        raise ValueError("other tensors than those of the splits")
    found = []
    for number, names in enumerate(labels):
        validation, test, low, high = (tensors[f"{number}.{name}"] for name in _NAMES)
        columns = test.shape[1]
        shapes = {"validation": (len(validation), columns), "test": (len(test), columns)}
        for name, values in zip(_NAMES, (validation, test, low, high), strict=True):
            if values.shape != shapes.get(name, (columns,)) or values.dtype != torch.float64:
                raise ValueError(f"{name} of another shape or type")
            if not values.numel() or not bool(values.isfinite().all()):
                raise ValueError(f"{name} is empty or not finite")
        if bool((low > high).any()):
            raise ValueError("a lowest target above the highest")
        groups = None
        if names is not None:
            groups = _read_groups(names, tensors[f"{number}.groups"], len(test))
        found.append(Targets(validation, test, low, high, groups))
    return found


def _read_groups(names: Sequence[str], places: Tensor, rows: int) -> NDArray[np.str_]:
    if places.shape != (rows,) or places.dtype != torch.int64:
        raise ValueError("not a group for every test row")
    if not all(isinstance(name, str) for name in names) or not isinstance(names, list):
        raise TypeError("groups must have names")
    if int(places.min()) < 0:
        raise ValueError("a group that there is not")
    labels: NDArray[np.str_] = np.array(names, np.str_)[places.numpy()]
    return labels
