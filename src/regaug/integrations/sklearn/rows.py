"""Which rows the nets of an estimator train on, stop on and are compared on."""

from dataclasses import dataclass

import numpy as np

from regaug.data.base import Part, Rows, Split
from regaug.ensemble.rows import deal

FEWEST_TO_STOP_ON = 5  # with fewer rows the best epoch is a matter of luck
INNER_FOLDS = 5
_NONE: Rows = np.arange(0)


@dataclass(frozen=True)
class StoppingRule:
    """Whether a net is stopped on rows that it does not train on, and on how many."""

    wanted: bool  # where there are enough rows
    share: float  # of the rows, in (0, 0.5]

    def splits(self, whole: Part, nets: int, seed: int) -> list[Split]:
        """Return a split for each net. They stop on different rows, in turn on all of them."""
        rows = np.arange(len(whole))
        return [_split(whole, rows, stopping) for stopping in self._deal(rows, nets, seed)]

    def inner_splits(self, whole: Part, seed: int) -> list[Split]:
        """Return splits whose test rows neither training nor stopping has seen."""
        rows, splits = np.arange(len(whole)), []
        for fold in deal(rows, INNER_FOLDS, seed, folds=INNER_FOLDS):
            rest = np.setdiff1d(rows, fold)
            splits.append(_split(whole, rest, self._deal(rest, 1, seed)[0], fold))
        return splits

    def _deal(self, rows: Rows, nets: int, seed: int) -> list[Rows]:
        folds = round(1 / self.share)
        if not self.wanted or len(rows) < FEWEST_TO_STOP_ON * folds:
            return [_NONE] * nets
        return [rows[fold] for fold in deal(rows, nets, seed, folds=folds)]


def _split(whole: Part, rows: Rows, stopping: Rows, test: Rows = _NONE) -> Split:
    train = np.setdiff1d(rows, stopping)
    return Split(whole.take(train), whole.take(stopping), whole.take(test))
