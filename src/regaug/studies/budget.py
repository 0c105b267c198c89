"""How large the study of a network is: what was asked for, what a problem allows, what is done."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self, get_args

from regaug._checks import check_choice, check_integer, check_range
from regaug._files import JSON
from regaug.exceptions import StoreError
from regaug.problems import Problem
from regaug.runs.run import Run
from regaug.runs.tasks import estimate_baseline
from regaug.studies.config import REFERENCE, Fair
from regaug.studies.eligibility import find_baselines
from regaug.studies.selection import reach
from regaug.training.pace import Pace

# A study that was planned to fit, and does not, is over after this times its minutes.
_LATEST = 1.2
# Seconds before the first run begins, and for every process.
_START = 4.0


@dataclass(frozen=True)
class Asked:
    """What somebody wants of the study of a network; None leaves it to the plan.

    The same wish has the same plan, once it is kept in a folder.
    """

    methods: tuple[str, ...] | None = None
    trials: int | None = None
    splits: int | None = None
    epochs: int | None = None
    fair: Fair = "epochs"
    max_minutes: float | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        for name in ("trials", "splits", "epochs"):
            if (value := getattr(self, name)) is not None:
                check_integer(name, value, 1)
        check_choice("fair", self.fair, get_args(Fair))
        if self.max_minutes is not None:
            check_range("max_minutes", self.max_minutes, 0.0, open_low=True)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        methods = None if self.methods is None else list(self.methods)
        return {**asdict(self), "methods": methods}


@dataclass(frozen=True)
class Extent:
    """What a problem allows.

    Attributes:
        splits: How many splits it has; 1 can be repeated as often as one likes.
        rows: Rows of all parts of a split.
        train_rows: Training rows of a split.
        baselines: What each baseline takes on a split, in seconds, by its name.
    """

    splits: int
    rows: int
    train_rows: int
    baselines: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Look at the first split of a problem."""
        first = problem.splits[0]
        sizes = [len(part) for part in (first.train, first.validation, first.test)]
        seconds = {name: estimate_baseline(name, first.train) for name in find_baselines(problem)}
        splits = 1 if problem.has_one_split else len(problem.splits)
        return cls(splits, sum(sizes), sizes[0], seconds)

    def slowed(self, times: float) -> Self:
        """Return the same on a machine that is so many times as slow."""
        return replace(self, baselines={name: times * v for name, v in self.baselines.items()})


@dataclass(frozen=True)
class Budget:
    """How large a study of a network is.

    Attributes:
        methods: What is compared.
        baselines: What stands beside.
        splits: Splits, or repetitions of a single one.
        trials: Settings of every method.
        recipes: Recipes of the first stage; 0 without one.
        epochs: Epochs of every method's trainings.
        rows: Rows of a split that are looked at; None for all.
        fair: What every method gets the same of.
        paces: How long trainings take by method; empty if nothing was measured.
        notes: What was planned and what was left out, in sentences.
    """

    methods: tuple[str, ...]
    baselines: tuple[str, ...]
    splits: int
    trials: int
    recipes: int
    epochs: tuple[int, ...]
    rows: int | None = None
    fair: Fair = "epochs"
    paces: Mapping[str, Pace] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def longest(self) -> int:
        """Epochs of plain training."""
        return self.epochs[self.methods.index(REFERENCE)]

    @property
    def rungs(self) -> tuple[int, ...]:
        """Epochs after which the worse half of the recipes ends.

        Example:
            >>> Budget(("erm",), (), 3, 1, 4, (20,)).rungs
            (5, 10)
        """
        shares = {0: (), 1: (), 2: (2,), 3: (2,)}.get(self.recipes, (4, 2))
        rungs = dict.fromkeys(math.ceil(self.longest / share) for share in shares)
        return tuple(rung for rung in rungs if rung < self.longest)

    @property
    def trainings(self) -> int:
        """How many nets are trained, those that end early among them."""
        return self.splits * (self.recipes + self.trials * len(self.methods))

    def seconds(self, runs: Sequence[Run]) -> float:
        """Return about how long some trainings take one worker, those that are halved included."""
        share = self._recipe_share()
        total = 0.0
        for run in runs:
            if run.settings is not None and run.method in self.paces:
                epochs = min(run.settings.epochs, reach(run))
                own = self.paces[run.method].seconds(epochs)
                total += own * share if run.stage == "recipe" else own
        return total

    def wall(self, jobs: int, beside: float = 0.0) -> float:
        """Return about how long so many workers take for all; ``beside`` is what else they do.

        Workers wait for the last one at the end of a round.
        """
        plain, total, last = self.paces[REFERENCE], beside, 0.0
        for going, epochs in self._segments():
            last += plain.seconds(epochs)
            total += self.splits * going * plain.seconds(epochs)
        own = [
            self.paces[name].seconds(n) for name, n in zip(self.methods, self.epochs, strict=True)
        ]
        total += self.splits * self.trials * sum(own)
        return _START * jobs + total / jobs + (last + max(own)) * (jobs - 1) / jobs

    def latest(self, max_minutes: float, spent: float = 0.0) -> float:
        """Return for how many minutes something new may be started, so that it ends in time.

        Args:
            max_minutes: What the study was planned for.
            spent: Minutes that the warm-up has taken.
        """
        own = zip(self.methods, self.epochs, strict=True)
        longest = max((self.paces[m].seconds(n) for m, n in own if m in self.paces), default=0.0)
        end = max(_LATEST * max_minutes - longest / 60, 0.9 * max_minutes)
        return end - min(spent, 0.5 * max_minutes)

    def _segments(self) -> list[tuple[int, int]]:
        """Return how many recipes of a split are trained for how many epochs, rung by rung."""
        if not self.recipes:
            return []
        segments, going, before = [], self.recipes, 0
        for rung in (*self.rungs, self.longest):
            segments.append((going, rung - before))
            going, before = (going + 1) // 2, rung
        return segments

    def _recipe_share(self) -> float:
        """Return what a recipe takes on average, as a share of a whole training."""
        spent = sum(going * epochs for going, epochs in self._segments())
        return spent / max(1, self.recipes * self.longest)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        paces = {name: pace.to_dict() for name, pace in self.paces.items()}
        lists = ("methods", "baselines", "epochs", "notes")
        return {**vars(self), **{name: list(getattr(self, name)) for name in lists}, "paces": paces}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the budget that :meth:`to_dict` wrote down."""
        try:
            paces = {str(name): Pace.from_dict(own) for name, own in values["paces"].items()}
            lists = ("methods", "baselines", "epochs", "notes")
            known = {**values, **{name: tuple(values[name]) for name in lists}, "paces": paces}
            return cls(**known)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise StoreError(
                "The plan of the study cannot be read: its folder is damaged, or of another "
                "version of regaug. Give another folder (--out)."
            ) from error
