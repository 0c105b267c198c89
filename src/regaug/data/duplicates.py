"""Rows with equal inputs: counted, and kept on one side of a split."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from regaug.data.base import Part
from regaug.formatting import count

Codes = NDArray[np.int64]
Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]

# With fewer different inputs, or a larger share of the rows that have the same ones and several
# targets, they are no duplicates: the inputs have few values, and rows to come will have the same.
FEWEST_DIFFERENT, LARGEST_SHARE = 20, 0.1


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Which rows of a table have equal inputs.

    Attributes:
        units: A number for every row; rows with the same one stay on one side of a split.
        repeated: How many rows have the inputs of an earlier one.
        exact: How many of these have its targets too.
        parted: How many of the repeated rows may be on another side of a split: their inputs are so
            frequent, with several targets, that they are no duplicates.
    """

    units: Codes
    repeated: int = 0
    exact: int = 0
    parted: int = 0

    def describe(self, *, groups: Codes | None = None, has_times: bool = False) -> str:
        """Return what there is to say about them in a sentence or two; nothing if there are none.

        Args:
            groups: The groups of the rows, if these decide the splits.
            has_times: Whether times decide the splits.
        """
        if not self.repeated:
            return ""
        targets = {self.repeated: "with its target too", 0: "with another target"}.get(
            self.exact, f"{self.exact:,} of them with its target too"
        )
        verb = "repeats" if self.repeated == 1 else "repeat"
        said = f"{count(self.repeated, 'row')} {verb} the inputs of another row, {targets}"
        if groups is not None:
            parted = _in_several(self.units, groups)
            have = f"{count(parted, 'row')} {'has' if parted == 1 else 'have'}"
            over = f"; {have} the like in another group" if parted else ""
            return f"{said}. The groups decide the splits{over}."
        if has_times:
            return f"{said}. The times decide the splits: equal rows may be on two sides."
        if self.parted == self.repeated:
            return f"{said}. Inputs so frequent are no duplicates: rows are split one by one."
        most = f", but for {self.parted:,} whose inputs are too frequent" if self.parted else ""
        return f"{said}. Rows with equal inputs stay on one side of a split{most}."


def find_equal(inputs: Iterable[Bits], targets: Iterable[Bits], n: int) -> Duplicates:
    """Find the rows that are equal in all inputs, and those that are in all targets too.

    Args:
        inputs: The columns, ``(n,)`` each, as :func:`as_bits` returns them.
        targets: The targets likewise.
        n: How many rows.

    Example:
        >>> x = np.array([*range(30), 7.0])
        >>> found = find_equal([as_bits(x)], [as_bits(np.ones(31))], 31)
        >>> found.repeated, found.exact, bool(found.units[7] == found.units[30])
        (1, 1, True)
    """
    mixed = np.zeros(n, dtype=np.uint64)
    for bits in inputs:
        mixed = _mix(mixed, bits)
    both = mixed
    for bits in targets:
        both = _mix(both, bits)
    return _count(mixed, both)


def as_bits(values: Floats) -> Bits:
    """Return a number for every value, the same for equal ones; gaps are equal."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, and no minus zero
    return plain.view(np.uint64)


def _count(mixed: Bits, both: Bits) -> Duplicates:
    """Count equal rows, from a number for the inputs of each and one for its targets too."""
    import pandas as pd

    rows = np.arange(len(mixed))
    units, different = pd.factorize(mixed)
    repeated = len(mixed) - len(different)
    if not repeated:
        return Duplicates(rows)
    sizes, firsts = np.bincount(units), np.unique(both, return_index=True)[1]
    targets = np.bincount(units[firsts])
    is_frequent = (sizes > LARGEST_SHARE * len(mixed)) & (targets > 1)
    if len(different) < FEWEST_DIFFERENT:
        is_frequent = sizes > 1
    # A row of its own number: numbers of rows and of duplicates must not meet.
    kept = np.where(is_frequent[units], len(different) + rows, units)
    parted = int((sizes[is_frequent] - 1).sum())
    exact = len(mixed) - len(firsts)
    return Duplicates(rows if parted == repeated else kept, repeated, exact, parted)


def _in_several(units: Codes, groups: Codes) -> int:
    """Return how many rows have a duplicate in another group."""
    pairs = np.unique(np.column_stack([units, groups]), axis=0)
    several = np.bincount(pairs[:, 0]) > 1
    return int(several[units].sum())


def _mix(mixed: Bits, bits: Bits) -> Bits:
    """Mix a column into numbers of 64 bits, by the finalizer of SplitMix64."""
    with np.errstate(over="ignore"):
        z = (mixed ^ bits) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def as_bytes(part: Part) -> Iterator[bytes]:
    """Give every row of a part, inputs and targets, as bytes: the same for equal rows."""
    rows = torch.cat([part.x[:].flatten(1), part.y], dim=1).numpy() + 0.0  # without a minus zero
    return (row.tobytes() for row in rows)
