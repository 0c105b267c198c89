"""Scores that somebody else has computed: one value of a metric that a training logs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from regaug.exceptions import ArgumentTypeError
from regaug.metrics.metric import is_logged
from regaug.metrics.scores import Scores


@dataclass(frozen=True)
class LoggedScores(Scores):
    """The value of a metric that a training of the user's has logged; no other metric is known.

    Attributes:
        logged: The value.

    Example:
        >>> scores = LoggedScores.of(0.25, n=100)
        >>> scores.value("min:test_loss"), scores.value("rmse")
        (0.25, None)
    """

    logged: float = math.nan

    @classmethod
    def of(cls, value: float, *, n: int) -> Self:
        """Return the scores of so many rows, of which one value is known."""
        return cls(n, math.nan, math.nan, None, 0, None, None, logged=value)

    def value(self, metric: str) -> float | None:
        """Return the value of a metric that is logged; None for any other."""
        is_known = is_logged(metric) and math.isfinite(self.logged)
        return self.logged if is_known else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return {"n": self.n, "logged": self.logged if math.isfinite(self.logged) else None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scores that :meth:`to_dict` wrote down."""
        n, value = values["n"], values["logged"]
        if not isinstance(n, int) or not isinstance(value, int | float | None):
            raise ArgumentTypeError(f"`logged` must be a number of rows, got {values!r}.")
        return cls.of(math.nan if value is None else float(value), n=n)


def read_scores(values: Mapping[str, Any]) -> Scores:
    """Return the scores that ``to_dict`` of either kind wrote down."""
    return (LoggedScores if "logged" in values else Scores).from_dict(values)
