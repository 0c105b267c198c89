"""What a figure is: numbers, a drawing of them, and a sentence about them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from regaug._checks import check_integer, check_range

# The numbers of a figure, as plain values for a JSON file.
Numbers = dict[str, Any]
SEEDS = 3


class Compute(Protocol):
    """Computes the numbers of a figure."""

    def __call__(self, seeds: int = SEEDS, max_minutes: float | None = None) -> Numbers:
        """Compute them over so many seeds, in about so many minutes; None for the full size."""


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or one that states what its text says.

    Attributes:
        title: What it shows, in a few words.
        compute: Computes its numbers; they are plain values, ``"note"`` among them, and say how
            they were made.
        draw: Draws the numbers as ``stem.svg`` and ``stem.png`` and returns both paths.
        caption: Says in plain words what the numbers show.
    """

    title: str
    compute: Compute
    draw: Callable[[Numbers, str | Path], list[Path]]
    caption: Callable[[Numbers], str]


@dataclass(frozen=True)
class Plan:
    """How much of a figure's full size is computed.

    Attributes:
        seeds: Number of seeds.
        share: Share of the epochs.
        words: A sentence that says what was left out; empty if nothing was.
    """

    seeds: int
    share: float = 1.0
    words: str = ""

    @classmethod
    def make(cls, seeds: int, max_minutes: float | None, minutes: float) -> Self:
        """Fit a figure into some minutes: first fewer seeds, then fewer epochs.

        Args:
            seeds: Seeds that are asked for, at least 1.
            max_minutes: Minutes there are, above 0; None for as many as it takes.
            minutes: Minutes that one seed takes at full size, about.

        Example:
            >>> Plan.make(3, 1.0, 2.0).words
            'Scaled down to 1 minute: 1 of 3 seeds, 50 % of the epochs.'
        """
        seeds = check_integer("seeds", seeds, 1)
        if max_minutes is None:
            return cls(seeds)
        check_range("max_minutes", max_minutes, 0.0, open_low=True)
        if max_minutes >= seeds * minutes:
            return cls(seeds)
        kept = max(1, int(max_minutes / minutes))
        share = min(1.0, max_minutes / (kept * minutes))
        unit = "minute" if max_minutes == 1 else "minutes"
        cuts = [f"{kept} of {seeds} seeds"] if kept < seeds else []
        cuts += [f"{100 * share:.0f} % of the epochs"] if share < 1 else []
        return cls(kept, share, f"Scaled down to {max_minutes:g} {unit}: {', '.join(cuts)}.")

    def part_of(self, full: int, least: int = 1) -> int:
        """Return how many of so many epochs, or whatever else takes time, there are."""
        return max(least, math.floor(self.share * full))


def spread(runs: ArrayLike) -> dict[str, list[float]]:
    """Return mean and standard deviation over runs, place by place; 0 for a single run.

    Example:
        >>> spread([[1.0, 5.0], [3.0, 5.0]])
        {'mean': [2.0, 5.0], 'sd': [1.4142, 0.0]}
    """
    values = np.asarray(runs, dtype=np.float64)
    sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
    return {"mean": compact(values.mean(axis=0)), "sd": compact(sd)}


def compact(values: ArrayLike) -> list[Any]:
    """Return numbers as nested lists with five digits each: enough to draw and to quote them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [compact(row) for row in array]
    return [float(f"{value:.5g}") for value in array]
