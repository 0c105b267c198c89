"""Successive halving: runs that are far behind others of their split end before their time."""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

from regaug.metrics import METRICS
from regaug.training.stacked.training import Training

# Shares of its epochs after which the worse half of the runs end: where the rate of the schedule
# "waves" is zero, so that a run is seen at its best.
MARKS = (3 / 15, 7 / 15)


class Halving:
    """Ends the worse half of the runs of each split at every mark, if their settings allow it.

    A run is judged by its best validation error so far, beside the runs of the stack that learn
    from the same split and have come as far, or had ended by themselves before. What a stack
    contains depends on what was asked for alone, and so does who ends.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], dict[int, float]] = defaultdict(dict)

    def end(self, runs: Sequence[Training]) -> None:
        """Look at runs after an epoch, and end those that are behind."""
        for mark in MARKS:
            reached = [run for run in runs if _is_at(run, mark)]
            for run in reached:
                self._seen[id(run.split), mark][run.number] = _error(run)
            going = [run for run in reached if _may_end(run, mark)]
            going.sort(key=lambda run: id(run.split))
            for split, members in groupby(going, lambda run: id(run.split)):
                seen = self._seen[split, mark]
                best = sorted(seen, key=lambda number: (seen[number], number))
                kept = set(best[: math.ceil(len(best) / 2)])
                for run in members:
                    if run.number not in kept:
                        run.ending = "behind"


def _may_end(run: Training, mark: float) -> bool:
    return run.settings.halve and run.ending is None and _is_due(run, mark)


def _is_due(run: Training, mark: float) -> bool:
    return len(run.history) == math.ceil(mark * run.settings.epochs)


def _is_at(run: Training, mark: float) -> bool:
    """Tell whether a run has just come to a mark, or has ended by itself before it."""
    has_ended = run.ending not in (None, "behind")
    return _is_due(run, mark) or (
        has_ended and len(run.history) < math.ceil(mark * run.settings.epochs)
    )


def _error(run: Training) -> float:
    """Return the best validation error so far; lower is better for every metric."""
    if not run.best_epoch:
        return math.inf
    error = run.history[run.best_epoch - 1].validation
    return METRICS[run.settings.metric].sign * error
