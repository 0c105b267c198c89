"""Which rows the nets of an estimator train on, stop on and are compared on."""

from dataclasses import dataclass

import numpy as np

from regaug.data.base import Part, Rows, Split
from regaug.data.duplicates import as_bits, find_equal
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
        rows, units = np.arange(len(whole)), _units(whole)
        return [_split(whole, rows, own) for own in self._deal(rows, units, nets, seed)]

    def inner_splits(self, whole: Part, seed: int) -> list[Split]:
        """Return splits whose test rows neither training nor stopping has seen."""
        rows, units, splits = np.arange(len(whole)), _units(whole), []
        for fold in deal(units, INNER_FOLDS, seed, folds=INNER_FOLDS):
            rest = np.setdiff1d(rows, fold)
            splits.append(_split(whole, rest, self._deal(rest, units, 1, seed)[0], fold))
        return splits

    def _deal(self, rows: Rows, units: Rows, nets: int, seed: int) -> list[Rows]:
        folds = round(1 / self.share)
        if not self.wanted or len(rows) < FEWEST_TO_STOP_ON * folds:
            return [_NONE] * nets
        return [rows[fold] for fold in deal(units[rows], nets, seed, folds=folds)]


def _units(whole: Part) -> Rows:
    """Return a number for every row, the same for duplicates, which stay together."""
    x, y = (np.asarray(own[:], dtype=np.float64) for own in (whole.x, whole.y))
    columns = x.reshape(len(x), -1).T
    return find_equal(map(as_bits, columns), map(as_bits, y.T), len(x)).units


def _split(whole: Part, rows: Rows, stopping: Rows, test: Rows = _NONE) -> Split:
    train = np.setdiff1d(rows, stopping)
    return Split(whole.take(train), whole.take(stopping), whole.take(test))
