"""Trainings that are not ours: a study knows of them what they log, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from regaug.training.results import Ending, versions
from regaug.training.settings import Settings


@dataclass(frozen=True)
class LoggedFacts:
    """What is known of somebody else's training after a look at it, before it is begun.

    Attributes:
        sizes: Numbers of training, validation and test rows; 0 where that cannot be known.
        inputs: Shape of the inputs of a row.
        targets: Number of targets of a row.
        batch_size: Rows in a training batch.
        step_seconds: Time that a training step takes, its share of validation included.
        judged_by: Name of the metric that runs are compared by, as it is logged.
        has_test: Whether it is of test rows; otherwise validation rows judge as well as choose.
        can_sample: Whether a sampler of ours can decide who shares a batch.
        notes: What a reader should know, in sentences.
    """

    sizes: tuple[int, int, int]
    inputs: tuple[int, ...]
    targets: int
    batch_size: int
    step_seconds: float
    judged_by: str
    has_test: bool
    can_sample: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class LoggedResult:
    """One training of somebody else's: how it went, and what it has logged.

    Attributes:
        validation: The value of the metric that chooses, at the best epoch; NaN if it never was a
            number.
        test: The value of the metric that is compared, of the weights of that epoch.
        history: The value that chooses, after every validation.
        best_epoch: Counted from 1; 0 if there is none.
        epochs: How many it took.
        ending: ``"finished"`` all epochs, ``"early"``, or ``"diverged"``.
        seconds: Time it took.
        made_by: Versions of what it was made with.
        weights: The state of the module at its best epoch, by name.
    """

    validation: float
    test: float
    history: Sequence[float]
    best_epoch: int
    epochs: int
    ending: Ending
    seconds: float
    made_by: Mapping[str, str] = field(default_factory=versions, repr=False)
    weights: Mapping[str, Tensor] = field(default_factory=dict, repr=False)


class LoggedTraining(Protocol):
    """Somebody else's training, once for every method, settings and seed."""

    epochs: int

    @property
    def varies(self) -> bool:
        """Whether every split has other rows; otherwise repetitions differ in their seeds."""

    @property
    def facts(self) -> LoggedFacts:
        """What a look at it has shown: it is begun and ended after a few batches, once."""

    def leave_out(self, methods: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
        """Try some methods for a few batches; return those that work, and why others do not."""

    def adapt(self, method_settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings of a method that can act here, at a place that there is."""

    def make_net(self, split: int, seed: int) -> nn.Module:
        """Make a fresh module."""

    def train(self, split: int, method: str, settings: Settings) -> LoggedResult:
        """Train once; the seed of the settings decides everything."""

    def identity(self) -> str:
        """Return a text that differs for other options of the training."""
