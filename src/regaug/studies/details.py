"""What a study knows of a row beside the metric that decides: other metrics, times, epochs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean

from regaug._files import JSON
from regaug.metrics import METRICS, Scores
from regaug.runs.record import RunRecord

BySplit = Sequence[Sequence[RunRecord]]
# What is told of every target by itself.
SHOWN = ("rmse", "mae", "r2")


@dataclass(frozen=True)
class Details:
    """What is told of a row of the leaderboard, and decides nothing.

    Attributes:
        scores: Other metrics on the test rows, means over the splits; only those that every split
            has a finite value of.
        fit_seconds: Time that it takes to fit it on a split, all its nets together, mean over the
            splits; None if unknown.
        predict_seconds: Time that it takes to predict one row of data; None if unknown.
        single: What the single nets are worth that the splits have chosen, mean of the metric that
            decides; None for other rows, and if one has failed.
        epochs: Epochs that were spent on it, on all splits together; None if it has none.
        targets: RMSE, MAE and R2 of every target by its name, in its own units, means over the
            splits; empty if there is one target only.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    single: float | None = None
    epochs: int | None = None
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)


def describe_rows(
    scores: Mapping[str, Sequence[Scores | None]],
    used: Mapping[str, BySplit],
    *,
    metric: str,
    chosen: Mapping[str, Sequence[RunRecord]] | None = None,
    tried: Mapping[str, BySplit] | None = None,
    target_names: Sequence[str] = (),
) -> dict[str, Details]:
    """Return what is known of every row beside the metric that decides.

    Args:
        scores: Scores of every row on the test rows of each split.
        used: The records that these are made of, by split.
        metric: The metric that decides, which is left out of the others.
        chosen: For every method the single net that each split has chosen.
        tried: For every method all its records that count, by split.
        target_names: Names of the targets, where they are several.
    """
    others = [name for name in METRICS if name != metric]
    chosen, tried = chosen or {}, {**used, **(tried or {})}
    found = {}
    for name, own in scores.items():
        if not own:
            continue
        nets = [record.scores.get("test") for record in chosen.get(name, ())]
        found[name] = Details(
            {other: mean for other in others if (mean := _mean(own, other)) is not None},
            fit_seconds=fmean(sum(record.seconds for record in split) for split in used[name]),
            predict_seconds=_predict_seconds(used[name]),
            single=_mean(nets, metric) if nets else None,
            epochs=sum(record.epochs for split in tried[name] for record in split) or None,
            targets=_by_target(own, target_names),
        )
    return found


def _predict_seconds(used: BySplit) -> float | None:
    """Return the time of one row through all that a split has, mean over splits that know it."""
    times = [[own.predict_seconds for own in split] for split in used]
    known = [sum(filter(None, own)) for own in times if own and None not in own]
    return fmean(known) if known else None


def _by_target(
    scores: Sequence[Scores | None], names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return the means of every target's own scores; nothing where a split has none."""
    known = [own.targets for own in scores if own is not None]
    if len(known) < len(scores) or any(len(own) != len(names) for own in known):
        return {}
    by_target = {name: [own[place] for own in known] for place, name in enumerate(names)}
    return {
        name: {metric: mean for metric in SHOWN if (mean := _mean(own, metric)) is not None}
        for name, own in by_target.items()
    }


def _mean(scores: Sequence[Scores | None], metric: str) -> float | None:
    values = [None if own is None else own.value(metric) for own in scores]
    known = [value for value in values if value is not None and math.isfinite(value)]
    return fmean(known) if len(known) == len(values) else None
