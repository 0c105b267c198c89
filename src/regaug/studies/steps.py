"""How the error came down, step by step: from a single net to the blend."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Self

from regaug._files import JSON
from regaug._registry import lookup
from regaug.exceptions import ArgumentError
from regaug.formatting import Unit
from regaug.metrics import METRICS
from regaug.studies.changes import PairedTest, to_percent, to_values


@dataclass(frozen=True)
class Steps:
    """What each step contributed.

    Attributes:
        metric: What the errors are.
        names: What was done, the start first, such as ``"default recipe, single net"``,
            ``"best recipe"``, ``"ensemble"``, ``"augmentation"``, ``"blend"``.
        changes: For every step after the start, the mean over the splits of log(error / error of
            the step before); of the difference for R2 and Pearson's R.

    Example:
        >>> errors = {"single net": [2.0, 4.0], "ensemble": [1.0, 2.0], "blend": [0.9, 1.8]}
        >>> [round(change) for change in Steps.from_errors(errors).told]
        [-50, -10]
    """

    metric: str
    names: tuple[str, ...]
    changes: tuple[float, ...]

    def __post_init__(self) -> None:
        lookup("metric", self.metric, METRICS)
        if len(self.names) != len(self.changes) + 1:
            raise ArgumentError(
                "`changes` must have a value for every step after the start, got "
                f"{len(self.changes)} for {len(self.names)} names."
            )
        if not all(map(math.isfinite, self.changes)):
            raise ArgumentError(f"`changes` must be finite, got {self.changes}.")

    @classmethod
    def from_errors(
        cls, errors: Mapping[str, Sequence[float | None]], *, metric: str = "rmse"
    ) -> Self:
        """Make the steps from the errors on every split, in the order in which they were taken.

        A step that failed on a split is left out, and the next one is measured against what came
        before it.
        """
        test = PairedTest(metric, factor=1.0, level=0.95)
        table = {name: to_values(values) for name, values in errors.items()}
        known = {name: values for name, values in table.items() if not math.isnan(values.sum())}
        if not known:
            raise ArgumentError("`errors` must have a step that worked on every split, got none.")
        steps = (test.differences(known[name], known[before]) for before, name in pairwise(known))
        changes = tuple(float(own.mean()) for own in steps if own is not None)
        return cls(metric, tuple(known), changes)

    @property
    def unit(self) -> Unit:
        """In what changes are told."""
        return METRICS[self.metric].unit

    @property
    def told(self) -> tuple[float, ...]:
        """Every step's own change, against the step before, in its unit."""
        return tuple(self._tell(change) for change in self.changes)

    @property
    def totals(self) -> tuple[float, ...]:
        """The change against the start after every step, 0 for the start itself, in its unit."""
        sums = (math.fsum(self.changes[:place]) for place in range(len(self.names)))
        return tuple(self._tell(change) for change in sums)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    def _tell(self, change: float) -> float:
        return to_percent(change) if self.unit == "percent" else change
