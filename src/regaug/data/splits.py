"""Rules that say which rows train, which choose and which report.

Every rule returns three arrays of row numbers, each ascending: the order within a part has no
meaning, and samplers draw their own.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regaug import _random
from regaug._checks import check_integer, check_range
from regaug.data.base import Rows
from regaug.exceptions import ArgumentError, ArgumentTypeError

SplitRule = Literal["random", "group", "time"]
ThreeParts = tuple[Rows, Rows, Rows]
Shares = Sequence[float]

SHARES = (0.6, 0.2, 0.2)
FEWEST = 3  # rows to train on, where whole groups are dealt


def random_split(
    n: int,
    *,
    shares: Shares = SHARES,
    sizes: Sequence[int] | None = None,
    units: Rows | None = None,
    seed: int,
) -> ThreeParts:
    """Deal rows at random.

    Args:
        n: Number of rows, at least 3.
        shares: Shares of training, validation and test; they add up to 1. No part is empty.
        sizes: Numbers of rows instead of shares; they add up to ``n``.
        units: A number for every row, ``(n,)``, at least 3 different ones: rows with the same one,
            such as duplicates, stay together. The split is nearly that without units where hardly
            any rows share one. It goes with shares, not with sizes.
        seed: Which of the possible splits, at least 0.

    Example:
        >>> [len(rows) for rows in random_split(10, seed=0)]
        [6, 2, 2]
        >>> [len(rows) for rows in random_split(10, sizes=(5, 4, 1), seed=0)]
        [5, 4, 1]
    """
    n = check_integer("n", n, 3, hint="Each part needs a row.")
    order = _draw_order(n, seed)
    if units is not None:
        if sizes is not None:
            raise ArgumentError("`units` and `sizes` must not be given both: units have sizes.")
        codes, counts = _codes("units", units)
        if len(codes) != n:
            raise ArgumentError(
                f"`units` must be ({n},), a number for every row, got {len(codes)}."
            )
        # A unit comes where its first row does: the earliest of its rows would come too early.
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        order = np.argsort(place[np.unique(codes, return_index=True)[1]])
        return _whole_groups(codes, order, *_cut(counts[order], shares))
    if sizes is None:
        first, second = _cut(np.ones(n, dtype=np.int64), shares)
    else:
        first, second = _cut_by_size(n, sizes)
    return _whole_groups(np.arange(n), order, first, second)


def group_split(groups: ArrayLike, *, shares: Shares = SHARES, seed: int) -> ThreeParts:
    """Deal whole groups: no group has rows in two parts.

    The groups are put in random order and the order is cut twice, where the parts come nearest to
    the shares. Another seed so gives other groups to test on, even where one order would fit the
    shares better than all others. An order that leaves less than three rows to train on, as it may
    with a group that has most of them, has the largest group first.

    Args:
        groups: Group of every row, ``(n,)``: numbers or strings, at least 3 different ones.
        shares: Shares of training, validation and test; they add up to 1. No part is empty.
        seed: Which of the possible splits, at least 0.

    Example:
        >>> train, validation, test = group_split(["a", "b", "a", "c", "c", "a"], seed=0)
        >>> len(train) + len(validation) + len(test)
        6
    """
    codes, counts = _codes("groups", groups)
    order = _draw_order(len(counts), seed)
    first, second = _cut(counts[order], shares)
    if counts[order[:first]].sum() < FEWEST:
        # Nothing can be learned: the largest group, which has most of the rows, is to train on.
        largest = counts[order].argmax()
        order = np.concatenate([order[largest : largest + 1], np.delete(order, largest)])
        first, second = _cut(counts[order], shares)
    return _whole_groups(codes, order, first, second)


def time_split(times: ArrayLike | int, *, shares: Shares = SHARES) -> ThreeParts:
    """Train on the past and report on the future.

    Args:
        times: Time of every row, ``(n,)``: numbers, dates or strings that sort by time, in any
            order; rows of one time stay together. Or the number of rows, if they are in order.
        shares: Shares of training, validation and test; they add up to 1. No part is empty.

    Example:
        >>> time_split([2019, 2021, 2020, 2019], shares=(0.5, 0.25, 0.25))
        (array([0, 3]), array([2]), array([1]))
    """
    if isinstance(times, int | np.integer):
        times = np.arange(check_integer("times", int(times), 3, hint="Each part needs a row."))
    codes, counts = _codes("times", times)
    return _whole_groups(codes, np.arange(len(counts)), *_cut(counts, shares))


def ordered_group_split(groups: ArrayLike, *, shares: Shares = (0.7, 0.1, 0.2)) -> ThreeParts:
    """Deal whole groups in ascending order, by the rule of the paper's scripts.

    With the groups in ascending order, the first at which the number of rows so far reaches
    ``int(shares[0] * n)`` begins the validation part, and the first at which it reaches that number
    of rows plus ``int(shares[1] * n)`` begins the test part.

    Args:
        groups: Group of every row, ``(n,)``: numbers or strings, at least 3 different ones.
        shares: Shares of training, validation and test; they add up to 1.

    Example:
        >>> groups = np.repeat([1, 2, 3, 4], [6, 2, 1, 1])
        >>> [len(rows) for rows in ordered_group_split(groups)]
        [6, 2, 2]
    """
    shares = _check_shares(shares)
    codes, counts = _codes("groups", groups)
    so_far, n = np.cumsum(counts), len(codes)
    first = int(np.searchsorted(so_far, int(shares[0] * n)))
    second = int(np.searchsorted(so_far, so_far[first] + int(shares[1] * n)))
    if not 0 < first < second < len(counts):
        listed = ", ".join(map(str, counts[:8])) + (", ..." if len(counts) > 8 else "")
        raise ArgumentError(
            f"`groups` must fill three parts in ascending order, got {len(counts)} groups of "
            f"{listed} rows, which leave one empty. Use group_split."
        )
    return _whole_groups(codes, np.arange(len(counts)), first, second)


def _draw_order(n: int, seed: int) -> Rows:
    seed = check_integer("seed", seed, 0)
    return _random.numpy_generator(_random.Stream.SPLIT, seed).permutation(n)


def _check_shares(shares: Shares) -> tuple[float, float, float]:
    if isinstance(shares, str) or len(shares) != 3:
        raise ArgumentError(f"`shares` must be three numbers, got {shares!r}.")
    train, validation, test = (
        check_range("shares", share, 0.0, 1.0, open_low=True) for share in shares
    )
    if abs(train + validation + test - 1.0) > 1e-6:
        raise ArgumentError(f"`shares` must add up to 1, got {tuple(shares)}.")
    return train, validation, test


def _cut(counts: NDArray[np.int64], shares: Shares) -> tuple[int, int]:
    """Return how many of the units, in order, end before the two cuts nearest to the shares."""
    train, validation, _ = _check_shares(shares)
    so_far = np.cumsum(counts)
    off_first = np.abs(so_far - train * so_far[-1])
    off_second = np.abs(so_far - (train + validation) * so_far[-1])
    # No part may be empty: two units stay behind the first cut, one before and behind the second.
    first = int(off_first[:-2].argmin())
    second = 1 + int(off_second[1:-1].argmin())
    if second <= first:
        # One long unit lies across both cuts. Distance from a cut is convex along the order, so
        # the best pair is one step away: the earlier first cut or the later second one.
        pairs = [(first - 1, first), (first, first + 1)]
        first, second = min(pairs, key=lambda pair: off_first[pair[0]] + off_second[pair[1]])
    return first + 1, second + 1


def _cut_by_size(n: int, sizes: Sequence[int]) -> tuple[int, int]:
    if isinstance(sizes, str) or len(sizes) != 3:
        raise ArgumentError(f"`sizes` must be three whole numbers, got {sizes!r}.")
    train, validation, test = (check_integer("sizes", size, 1) for size in sizes)
    if train + validation + test != n:
        raise ArgumentError(
            f"`sizes` must add up to the {n} rows, got {train} + {validation} + {test} = "
            f"{train + validation + test}."
        )
    return train, train + validation


def _codes(name: str, values: ArrayLike) -> tuple[Rows, NDArray[np.int64]]:
    """Number the different values in ascending order; return the codes and how often each is."""
    array: NDArray[np.generic] = np.asarray(values)
    if array.ndim != 1:
        raise ArgumentError(f"`{name}` must be (n,), got shape {array.shape}.")
    if array.dtype.kind in "fmM" and bool(np.isnan(array).any()):  # also NaT
        raise ArgumentError(f"`{name}` must not have missing values. Drop those rows first.")
    try:
        different, codes, counts = np.unique(array, return_inverse=True, return_counts=True)
    except TypeError:
        raise ArgumentTypeError(
            f"`{name}` must be all numbers, all dates or all strings, got a mixture."
        ) from None
    if len(different) < 3:
        raise ArgumentError(
            f"`{name}` must have at least 3 different values, one for each part, got "
            f"{len(different)}: {different.tolist()}."
        )
    return codes.astype(np.int64), counts.astype(np.int64)


def _whole_groups(codes: Rows, order: Rows, first: int, second: int) -> ThreeParts:
    """Return the rows of the groups before, between and after two cuts of an order of groups."""
    part = np.empty(len(order), dtype=np.int8)
    part[order[:first]], part[order[first:second]], part[order[second:]] = 0, 1, 2
    part_of_row = part[codes]
    train, validation, test = (np.flatnonzero(part_of_row == number) for number in range(3))
    return train, validation, test
