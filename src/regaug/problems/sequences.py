"""Splits that are not in a list: made when they are asked for, or one of them several times."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Self, overload

import torch

from regaug._checks import check_integer
from regaug.data.base import Split
from regaug.exceptions import ArgumentError


class _Numbered(Sequence[Split]):
    """So many splits, each of which a child gives by its number."""

    def __init__(self, count: int) -> None:
        self._count = check_integer("count", count, 1)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> list[Split]: ...
    def __getitem__(self, index: int | slice) -> Split | list[Split]:
        if isinstance(index, slice):
            return [self[i] for i in range(self._count)[index]]
        return self._give(range(self._count)[index])

    def _give(self, number: int) -> Split:
        raise NotImplementedError


class LoadedSplits(_Numbered):
    """Splits that are made when they are asked for, wherever that is.

    A worker process gets the recipe, not the rows: images and long series are read where they are
    used. The last two stay in memory.

    Args:
        make: From the number of a split to the split; it must be possible to send it to another
            process.
        count: How many there are.
    """

    def __init__(self, make: Callable[[int], Split], count: int) -> None:
        super().__init__(count)
        self._make = make
        self._get = lru_cache(maxsize=2)(make)

    def _give(self, number: int) -> Split:
        return self._get(number)

    def first(self, count: int) -> "LoadedSplits":
        """Return the first ones of them."""
        return LoadedSplits(self._make, count)

    def changed(self, change: Callable[[Split], Split]) -> "LoadedSplits":
        """Return them with a change that each gets after it was made."""
        return LoadedSplits(partial(_make_changed, self._make, change), self._count)

    def __reduce__(self) -> tuple[type[Self], tuple[Callable[[int], Split], int]]:
        return type(self), (self._make, self._count)


def _make_changed(make: Callable[[int], Split], change: Callable[[Split], Split], n: int) -> Split:
    return change(make(n))


class RepeatedSplits(_Numbered):
    """One split, several times: repetitions that differ in their seeds alone.

    Args:
        one: A sequence whose first split it is.
        count: How many repetitions.

    Example:
        >>> from regaug.data import load
        >>> split = load("diabetes").split(seed=0)
        >>> repeated = RepeatedSplits([split], 3)
        >>> len(repeated), repeated[2] is split
        (3, True)
    """

    def __init__(self, one: Sequence[Split], count: int) -> None:
        super().__init__(count)
        self.one = one

    def _give(self, number: int) -> Split:
        return self.one[0]


def is_same(split: Split, other: Split) -> bool:
    """Tell whether two splits have the same training and test rows, by their targets too."""
    if split is other:
        return True
    pairs = [(split.train, other.train), (split.test, other.test)]
    return all(
        one.rows.tobytes() == another.rows.tobytes() and torch.equal(one.y, another.y)
        for one, another in pairs
    )


def has_one_split(splits: Sequence[Split]) -> bool:
    """Tell whether all splits have the same rows; of those that must be read two are looked at."""
    first, *others = splits[:2] if isinstance(splits, LoadedSplits) else splits
    return isinstance(splits, RepeatedSplits) or all(is_same(first, other) for other in others)


def choose_splits(splits: Sequence[Split], count: int, *, is_one: bool) -> Sequence[Split]:
    """Return the first ones of some splits, or repetitions of the only one if it ``is_one``."""
    check_integer("splits", count, 1)
    if is_one:
        if count == 1:
            return splits
        return RepeatedSplits(splits.one if isinstance(splits, RepeatedSplits) else splits, count)
    if count > len(splits):
        raise ArgumentError(
            f"`splits` must be at most {len(splits)}, as many as the problem has, got {count}. "
            "Make the problem with more."
        )
    return splits.first(count) if isinstance(splits, LoadedSplits) else splits[:count]


def subsample_splits(splits: Sequence[Split], n: int, seed: int) -> Sequence[Split]:
    """Return splits with fewer rows, read when they were to be read anyway."""
    if isinstance(splits, RepeatedSplits):
        return RepeatedSplits(subsample_splits(splits.one, n, seed), len(splits))
    few = partial(_subsample, n=n, seed=seed)
    if isinstance(splits, LoadedSplits):
        return splits.changed(few)
    return [few(split) for split in splits]


def _subsample(split: Split, n: int, seed: int) -> Split:
    return split.subsample(n, seed=seed)
