"""What is to be done: one training of a problem, or a baseline on one of its splits."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import index
from typing import Any, Literal, Self, get_args

from regaug._files import JSON, canonical, dump
from regaug.methods import BOTH
from regaug.training.settings import Settings

Stage = Literal["recipe", "method"]


@dataclass(frozen=True)
class Run:
    """One training of a problem, or a baseline on one of its splits.

    Attributes:
        problem: Name of the problem.
        method: The method, or the baseline.
        split: Number of the split.
        seed: Seed of the run.
        settings: Settings of the training, whatever their seed; None for a baseline.
        trial: Its place among the settings of the method that are tried; None if none are.
        log: Whether the logarithm of the target is fitted.
        stage: The part of a study that it belongs to: one of those that find a recipe, or one that
            compares the methods; None for a baseline, and outside of a study.
    """

    problem: str
    method: str
    split: int
    seed: int
    settings: Settings | None = None
    trial: int | None = None
    log: bool = False
    stage: Stage | None = None

    def __post_init__(self) -> None:
        if self.settings is not None and self.settings.seed != self.seed:
            object.__setattr__(self, "settings", replace(self.settings, seed=self.seed))

    @property
    def is_baseline(self) -> bool:
        """Whether it is no training of a net."""
        return self.settings is None

    @property
    def can_stack(self) -> bool:
        """Whether the run may train beside others, if it is one of the table net."""
        return self.settings is not None and self.settings.method_settings.get("place") != BOTH

    @cached_property
    def key(self) -> str:
        """What a store knows this run by."""
        return run_key(self.to_dict())

    def to_dict(self) -> dict[str, JSON]:
        """Return all that makes this run, as plain values."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        if self.stage is None:  # the keys of runs that have none are older than stages
            del plain["stage"]
        return plain | {"settings": None if self.settings is None else self.settings.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the run that :meth:`to_dict` wrote down."""
        settings, trial, stage = values["settings"], values["trial"], values.get("stage")
        if stage is not None and stage not in get_args(Stage):
            raise ValueError(f"unknown stage {stage!r}")
        return cls(
            problem=str(values["problem"]),
            method=str(values["method"]),
            split=index(values["split"]),
            seed=index(values["seed"]),
            settings=None if settings is None else Settings.from_dict(settings),
            trial=None if trial is None else index(trial),
            log=bool(values["log"]),
            stage=stage,
        )


def run_key(configuration: Mapping[str, JSON]) -> str:
    """Return a name for a configuration that is the same in every process and on every machine.

    Equal configurations (dicts with strings as keys, lists, tuples, finite numbers, strings, bools
    and None, nested at will) have equal keys: the order of the entries does not count, a tuple is
    the list of its items, and numbers that are equal are the same (1 and 1.0, but not 1 and True).

    Example:
        >>> run_key({"method": "foma", "batch_size": 32})
        '65b332f4f4e8b2e345154b3d96a9ab3d'
    """
    text = dump(canonical("configuration", configuration), sort_keys=True)
    return hashlib.sha256(text).hexdigest()[:32]
