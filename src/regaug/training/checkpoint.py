"""Checkpoints of a training: what they hold, what they belong to, and weights that must fit."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from torch import Size, Tensor, nn
from torch.optim import Optimizer

from regaug._checks import check_integer
from regaug._files import entry, remove_leftovers
from regaug.data.base import Part, Split
from regaug.data.several import Several, digest_inputs
from regaug.exceptions import ArgumentError, CheckpointError, DataError, FileError
from regaug.training.results import Epoch
from regaug.training.settings import Settings
from regaug.training.state import read_state, write_state

EPOCH = re.compile(r"epoch-(\d+)\.safetensors")
SHOWN = 3  # names in an error


class Checkpoints:
    """The saved states of one training, a file ``epoch-00007.safetensors`` for each.

    One process writes. The last two are kept. A process killed at any moment, or a full disk,
    leaves the earlier ones as they are, and never a checkpoint that is half there.

    A training saves after every epoch and is never asked to pause; a child may say otherwise
    (:meth:`is_due`, :meth:`is_over`).
    """

    # Whether a machine that loses its power must not lose a checkpoint either.
    _sync = True
    # Seconds after which what a killed process has left half-written is nobody's.
    _age = 0.0

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def is_due(self) -> bool:
        """Tell whether to save after the epoch that has just ended."""
        return True

    def is_over(self) -> bool:
        """Tell whether the training is to end with its last epoch, and go on some other time."""
        return False

    def save(self, epoch: int, state: Mapping[str, object]) -> None:
        """Write the state after so many epochs, then remove all others but the one before it."""
        epoch = check_integer("epoch", epoch, 0)
        remove_leftovers(self.folder, "epoch-*.safetensors", age=self._age)
        try:
            write_state(self.path(epoch), state, sync=self._sync)
        except FileError as error:
            last = self._epochs()[-1:]
            left = f" The checkpoint of epoch {last[0]} is untouched." if last else ""
            raise CheckpointError(f"{error}{left}") from error
        before = [other for other in self._epochs() if other < epoch]
        with suppress(OSError):  # the state is safe, and the next call tries again
            self._remove_all_but({epoch, *before[-1:]})

    def latest(self, most: int | None = None) -> tuple[int, dict[str, object]] | None:
        """Return the newest epoch, not after epoch ``most``, and its state; None if there is none.

        A damaged one is an error, which names the file to delete to go on from the one before.
        """
        epochs = [epoch for epoch in self._epochs() if most is None or epoch <= most]
        if not epochs:
            return None
        file = self.path(epochs[-1])
        try:
            return epochs[-1], read_state(file)
        except FileError as error:
            raise CheckpointError(f"{error} {_way_out(file)}") from error

    def clear(self) -> None:
        """Remove all checkpoints; other files in the folder stay."""
        remove_leftovers(self.folder, "epoch-*.safetensors")
        try:
            self._remove_all_but(set())
        except OSError as error:
            raise CheckpointError(
                f"Could not remove the checkpoints in {self.folder}: {error.strerror or error}."
            ) from error

    def path(self, epoch: int) -> Path:
        """Return the file of an epoch."""
        return self.folder / f"epoch-{epoch:05d}.safetensors"

    def _epochs(self) -> list[int]:
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise CheckpointError(
                f"Could not read the checkpoints in {self.folder}: {error.strerror or error}."
            ) from error
        return sorted(int(match[1]) for match in map(EPOCH.fullmatch, names) if match)

    def _remove_all_but(self, kept: set[int]) -> None:
        for epoch in set(self._epochs()) - kept:
            self.path(epoch).unlink()


@dataclass(frozen=True)
class TrainingState:
    """What a training goes on from."""

    configuration: Mapping[str, object]  # which training it is; see describe
    weights: Mapping[str, Tensor]  # after the last epoch
    best_epoch: int  # 0 if there is none
    best_weights: Mapping[str, Tensor]
    optimizer: Mapping[int, Mapping[str, Tensor]]  # by the parameter's number
    precision: Mapping[str, object]  # of the gradient scaler, where there is one
    history: tuple[Epoch, ...]
    seconds: float
    cuts: tuple[tuple[int, int, int], ...] = ()  # of FOMA, so far

    def to_dict(self) -> dict[str, object]:
        """Return what :meth:`Checkpoints.save` takes."""
        listed = {"history": [vars(epoch) for epoch in self.history], "cuts": list(self.cuts)}
        return vars(self) | listed

    @classmethod
    def read(cls, values: Mapping[str, object], file: Path) -> Self:
        """Return the state that :meth:`to_dict` gave, every value checked."""
        try:
            state = cls(
                configuration=entry(values, "configuration", dict),
                weights=_tensors(values, "weights"),
                best_epoch=entry(values, "best_epoch", int),
                best_weights=_tensors(values, "best_weights"),
                optimizer=_by_parameter(entry(values, "optimizer", dict)),
                precision=entry(values, "precision", dict),
                history=tuple(map(_read_epoch, entry(values, "history", list))),
                seconds=entry(values, "seconds", float),
                cuts=tuple(map(_read_cut, entry(values, "cuts", list))),
            )
            check_integer("best_epoch", state.best_epoch, 0, len(state.history))
        except (ArgumentError, DataError) as error:
            raise unusable(file, str(error)) from error
        return state


def unusable(file: Path, reason: str) -> CheckpointError:
    """Return the error for a checkpoint from which a training cannot go on."""
    return CheckpointError(f"Cannot use {file}: {reason} {_way_out(file)}")


def _way_out(file: Path) -> str:
    way = "to continue from an earlier checkpoint, or from the start if there is none."
    return f"Delete {file} {way}"


def _read_epoch(line: object) -> Epoch:
    values = entry({"history": line}, "history", dict)
    train, test = (
        None if values.get(part, 0) is None else entry(values, part, float)
        for part in ("train", "test")
    )
    loss, validation = (entry(values, name, float) for name in ("loss", "validation"))
    return Epoch(loss=loss, train=train, validation=validation, test=test)


def _read_cut(line: object) -> tuple[int, int, int]:
    k, values, count = entry({"cuts": line}, "cuts", tuple)
    return int(k), int(values), int(count)


def _tensors(values: Mapping[str, object], key: str) -> dict[str, Tensor]:
    tensors = entry(values, key, dict)
    return {name: entry(tensors, name, Tensor) for name in tensors}


def _by_parameter(values: Mapping[str, object]) -> dict[int, dict[str, Tensor]]:
    return {entry({"optimizer": i}, "optimizer", int): _tensors(values, i) for i in values}


def describe(method: str, settings: Settings, split: Split) -> dict[str, object]:
    """Return plain values that say which training this is, wherever it pauses."""
    options = replace(settings, stop_after=None).to_dict()
    own = options.pop("method_settings")
    options.pop("stop_after", None)  # whoever goes on from here may pause elsewhere
    return {
        "method": method,
        **{f"settings.{name}": value for name, value in options.items()},
        **{f"method_settings.{name}": value for name, value in own.items()},
        "training rows": _describe_rows(split.train),
        "validation rows": _describe_rows(split.validation),
        **({} if split.pairs_within is None else {"pairs within": split.pairs_within}),
        **({} if split.mask is None else {"mask": True}),
    }


def check_configuration(
    saved: Mapping[str, object], now: Mapping[str, object], folder: Path
) -> None:
    """Refuse to go on from the state of a different training."""
    different = [
        f"{name!s:.60} was {saved.get(name)!r:.80} and is {now.get(name)!r:.80}"
        for name in dict.fromkeys([*saved, *now])
        if saved.get(name) != now.get(name)
    ]
    if different:
        raise CheckpointError(
            f"The checkpoint in {folder} belongs to another training: {'; '.join(different[:4])}. "
            "Give another folder, or delete that one to start anew."
        )


def _describe_rows(part: Part) -> str:
    # Inputs that are not in memory are known by their shape: reading them all takes too long.
    is_known = isinstance(part.x, Tensor | Several)
    inputs = f", inputs {digest_inputs(part.x):08x}" if is_known else ""
    return f"{tuple(part.x.shape)}{inputs}, targets {digest_inputs(part.y):08x}"


def load_optimizer(
    optimizer: Optimizer, state: Mapping[int, Mapping[str, Tensor]], file: Path
) -> None:
    """Give an optimizer of the Adam family what it knew of its parameters, if all of it fits."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for number, values in state.items():
        shape = parameters[number].shape if 0 <= number < len(parameters) else None
        shapes = {name: tensor.shape for name, tensor in values.items()}
        if shapes != {"step": Size(), "exp_avg": shape, "exp_avg_sq": shape}:
            raise unusable(file, f"`optimizer` must fit the model, not so its entry {number}.")
    # What the settings say stays as they say it.
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": dict(state), "param_groups": groups})


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Copy weights into a module if all names and shapes agree; otherwise leave it untouched."""
    check_weights(module, weights, source=source)
    module.load_state_dict(weights)


def check_weights(module: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Refuse weights that are not those of such a module."""
    here, there = (
        {name: _form(value) for name, value in values.items()}
        for values in (module.state_dict(), weights)
    )
    other = [name for name in here if name in there and there[name] != here[name]]
    differences = [
        _listed("missing there: ", [name for name in here if name not in there]),
        _listed("unknown here: ", [name for name in there if name not in here]),
        _listed("", [f"{name} is {there[name]} there and {here[name]} here" for name in other]),
    ]
    if any(differences):
        raise CheckpointError(
            f"The weights of {source} belong to another architecture than this "
            f"{type(module).__name__}: {'; '.join(filter(None, differences))}. "
            "Build the model as it was when they were saved, or start again in another folder."
        )


def _form(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _listed(title: str, items: list[str]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return f"{title}{', '.join(items[:SHOWN])}{more}" if items else ""
