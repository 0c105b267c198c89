"""Which rows of a table an ensemble calibrates on, and which each member stops on."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from regaug import _random
from regaug._checks import check_integer, check_range
from regaug.data.arrays import ArrayData
from regaug.data.base import Data, Rows
from regaug.data.splits import SplitRule, ThreeParts, group_split, random_split, time_split
from regaug.data.tabular.table import Table
from regaug.exceptions import ArgumentError, ArgumentTypeError

# What is put aside is not learned from: a tenth of a table, or a fifth of a small one.
CALIBRATION_SHARE, SMALL_SHARE = 0.1, 0.2
SMALL = 100  # rows
FEWEST = 9  # calibration rows: with fewer there is no 90 % interval
MOST = 2_000  # with more, the share of rows covered is hardly surer (its deviation is 0.7 %)
FOLDS = 8


def check_table(data: Data) -> Table | ArrayData:
    """Return the data if it is a table in memory, a row per sample."""
    if isinstance(data, ArrayData) and data.x.ndim != 2:
        raise ArgumentError(
            f"`data` must have inputs of shape (n, columns), got {data.x.shape}. Flatten them: "
            "x.reshape(len(x), -1)."
        )
    if not isinstance(data, Table | ArrayData):
        raise ArgumentTypeError(
            "`data` must be a table: regaug.data.read_table(...), or a named data set of that "
            f"kind, got {type(data).__name__}. Train other models with regaug.training.fit."
        )
    return data


def calibration_rows(data: Data, *, share: float | None = None, seed: int = 0) -> Rows:
    """Return the rows that a fit puts aside to calibrate its intervals on.

    They are whole groups where the data has groups, the last rows where it has times, and drawn at
    random otherwise, duplicates together. Whoever chooses a method or settings must do so without
    them: ``leave_out(data, calibration_rows(data))``.

    ``share`` is in (0, 0.5]; without it, a fifth of up to 100 rows, then 20 rows, and a tenth from
    200 rows on. They are 9 at least, but no more than a third, and if drawn at random 2,000 at
    most. The seed decides which, but for times.
    """
    data = check_table(data)
    n, (rule, codes) = len(data), _units(data)
    if share is None:
        share = max(CALIBRATION_SHARE, SMALL_SHARE * min(1.0, SMALL / n))
    share = check_range("share", share, 0.0, 0.5, open_low=True)
    share = max(share, min(FEWEST, n // 3) / n)
    if rule == "random":
        share = min(share, MOST / n)
    shares = ((1 - share) / 2, (1 - share) / 2, share)
    # Derived: the rows must not be the test rows of a split with the same seed.
    seed = _random.derive(_random.Stream.CALIBRATION, check_integer("seed", seed, 0))
    if rule == "time":
        return time_split(codes, shares=shares)[2]
    if rule == "group":
        return group_split(codes, shares=shares, seed=seed)[2]
    return random_split(n, shares=shares, units=codes, seed=seed)[2]


def leave_out(data: Data, rows: Rows) -> Table | ArrayData:
    """Return the same table without the rows of these numbers."""
    data = check_table(data)
    kept = np.setdiff1d(np.arange(len(data)), rows)
    if isinstance(data, Table):
        named = {*data.inputs, *data.targets, data.group, data.time}
        return Table(
            data.frame.iloc[kept],
            targets=data.targets,
            group=data.group,
            time=data.time,
            drop=[name for name in data.frame.columns if name not in named],
            name=data.info.name,
            readings=data.readings,
        )
    groups = None if data.groups is None else data.groups[kept]
    rule = partial(_split_again, units=data.units[kept], groups=groups)
    return ArrayData(data.x[kept], data.y[kept], info=data.info, rule=rule, groups=groups)


def some_rows(data: Data, most: int, *, seed: int) -> Data:
    """Return a table as it is, or so many of its rows, drawn at random, if it has more."""
    if len(data) <= most:
        return data
    order = _random.numpy_generator(_random.Stream.SUBSAMPLE, seed).permutation(len(data))
    return leave_out(data, order[most:])


def validation_rows(data: Table | ArrayData, rows: Rows, members: int, seed: int) -> list[Rows]:
    """Return the rows, of ``rows``, that each member stops on.

    The rows are dealt into folds, a fold to each member, and dealt anew when all folds are taken:
    every row trains all members but one in eight. Groups stay whole; where there are times a fold
    is a stretch of time.
    """
    rule, codes = _units(data)
    folds = deal(codes[rows], members, seed, in_order=rule == "time")
    return [rows[fold] for fold in folds]


def fold_rows(data: Table | ArrayData, rows: Rows, folds: int, seed: int) -> list[Rows]:
    """Deal some rows into folds once: each row is in one fold, or in none.

    Groups stay whole, and where there are times a fold is a stretch of time. There are fewer folds
    if there are too few groups; a group with most of the rows is in none.
    """
    rule, codes = _units(data)
    rng = _random.numpy_generator(_random.Stream.FOLDS, seed, 0)
    return [rows[own] for own in _folds(codes[rows], None if rule == "time" else rng, folds)]


def deal(
    units: NDArray[np.int64], hands: int, seed: int, *, folds: int = FOLDS, in_order: bool = False
) -> list[Rows]:
    """Return a fold of the rows for each of some hands; when all are taken they are dealt anew.

    Rows with the same number in ``units`` stay together. ``in_order`` makes each fold of
    neighboring units, instead of random ones.
    """
    found: list[Rows] = []
    while len(found) < hands:
        rng = _random.numpy_generator(_random.Stream.FOLDS, seed, len(found))
        found += _folds(units, None if in_order else rng, folds)
    return found[:hands]


def _folds(codes: NDArray[np.int64], rng: np.random.Generator | None, n_folds: int) -> list[Rows]:
    """Put the units in random order, or leave them in theirs, and cut it into equal parts."""
    _, unit_of_row, counts = np.unique(codes, return_inverse=True, return_counts=True)
    units = len(counts)
    order = np.arange(units) if rng is None else rng.permutation(units)
    middle = np.cumsum(counts[order]) - counts[order] / 2
    fold_of_unit = np.empty(units, dtype=np.int64)
    fold_of_unit[order] = middle * (n_folds / len(codes))
    fold_of_row = fold_of_unit[unit_of_row]
    folds = [np.flatnonzero(fold_of_row == fold) for fold in np.unique(fold_of_unit)]
    # A group with most of the rows is to train on.
    return [fold for fold in folds if 2 * len(fold) <= len(codes)]


def _units(data: Table | ArrayData) -> tuple[SplitRule, NDArray[np.int64]]:
    """Return what is never parted, as a number for every row; numbers of times ascend."""
    if data.groups is not None:
        return "group", np.unique(data.groups, return_inverse=True)[1]
    if data.times is not None:
        return "time", np.unique(data.times, return_inverse=True)[1]
    return "random", data.units


def _split_again(
    seed: int, *, units: NDArray[np.int64], groups: NDArray[np.generic] | None
) -> ThreeParts:
    if groups is not None:
        return group_split(groups, seed=seed)
    return random_split(len(units), units=units, seed=seed)
