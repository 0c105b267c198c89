"""What a study knows of a row beside the metric that decides: other metrics, and times."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from regaug.metrics import METRICS
from regaug.runs.record import RunRecord


@dataclass(frozen=True)
class Details:
    """What is told of a row of the leaderboard, and decides nothing.

    Attributes:
        scores: Other metrics on the test rows, means over the splits; only those that every split
            has a finite value of.
        fit_seconds: Time that it takes to fit it on a split, mean over the splits; None if unknown.
        predict_seconds: Time that it takes to predict one row of data; None if unknown.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float | None = None
    predict_seconds: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file."""
        return asdict(self)


def describe_rows(chosen: Mapping[str, Sequence[RunRecord]], metric: str) -> dict[str, Details]:
    """Return what the chosen runs of every row say beside the metric that decides.

    ``chosen`` has a record for every split; ``metric`` is the one that is left out.
    """
    others = [name for name in METRICS if name != metric]
    return {
        name: Details(
            {other: mean for other in others if (mean := _mean(own, other)) is not None},
            fit_seconds=fmean(record.seconds for record in own),
        )
        for name, own in chosen.items()
        if own
    }


def _mean(records: Sequence[RunRecord], metric: str) -> float | None:
    values = [record.score("test", metric) for record in records]
    known = [value for value in values if value is not None and math.isfinite(value)]
    return fmean(known) if len(known) == len(values) else None
