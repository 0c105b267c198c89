"""About what trainings take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from regaug.models.mlp import NetForm
from regaug.training.recipe import HIDDEN

# Seconds that a step of a table net takes in a stack, and that a row takes for each of its weights,
# on the machine of regaug.runs.speed.
_STEP, _WEIGHT = 1.8e-5, 2.6e-10


@dataclass(frozen=True)
class Cost:
    """About what an epoch takes on one core, in seconds.

    Attributes:
        step: For each step of the optimizer.
        sample: For each training sample.
    """

    step: float = 3.3e-4
    sample: float = 0.0

    @classmethod
    def of_table(cls, columns: int, targets: int, hidden: Sequence[int] = HIDDEN) -> Self:
        """Return what the net of a table takes, trained beside others."""
        periodic = tuple(range(columns))
        return cls(_STEP, _WEIGHT * NetForm(columns, targets, tuple(hidden), 0.1, periodic).size)
