"""What a figure is: numbers, a drawing of them, and a sentence about them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regaug._checks import check_integer, check_range
from regaug.formatting import sentences
from regaug.reproduction.figures.drawing import make_canvas, save, style
from regaug.training.results import versions

# The numbers of a figure, as plain values for a JSON file.
Numbers = dict[str, Any]
SEEDS = 3


@dataclass(frozen=True)
class Plan:
    """How much of a figure's full size is computed; ``words`` say what was left out."""

    seeds: int
    share: float = 1.0  # of the epochs
    words: str = ""

    @classmethod
    def make(cls, seeds: int, max_minutes: float | None, minutes: float) -> Self:
        """Fit a figure, a seed of which takes some minutes: first fewer seeds, then fewer epochs.

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


def judge(claims: Mapping[str, bool]) -> str:
    """Say which of the paper's claims the numbers agree with, and which they contradict.

    Example:
        >>> judge({"it is steadier": True, "its error is lower": False})
        'Agrees with the paper that it is steadier. Contradicts its claim that its error is lower.'
    """
    agrees = [claim for claim, holds in claims.items() if holds]
    differs = [claim for claim, holds in claims.items() if not holds]
    words = [f"Agrees with the paper that {'; that '.join(agrees)}."] if agrees else []
    whose = "its" if agrees else "the paper's"
    words += [f"Contradicts {whose} claim that {'; that '.join(differs)}."] if differs else []
    return " ".join(words)


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or one that states what its text says.

    Attributes:
        title: What it shows, in a few words.
        measure: Computes its numbers, plain values, and a note that says how they were made.
        paint: Paints the numbers on axes.
        caption: Says in plain words what the numbers show.
        canvas: Width and height in inches, rows and columns of axes.
        minutes: Of one seed, at full size; 0 for seconds.
        legend: Columns of the legend above the axes, which is that of the first ones; 0 for none.
        share: Whether all axes have one scale.
    """

    title: str
    measure: Callable[[Plan], tuple[Numbers, str]]
    paint: Callable[[NDArray[Any], Numbers], None]
    caption: Callable[[Numbers], str]
    canvas: tuple[float, float, int, int]
    minutes: float = 0.0
    legend: int = 0
    share: bool = False

    def compute(self, seeds: int = SEEDS, max_minutes: float | None = None) -> Numbers:
        """Compute it over so many seeds, in about so many minutes; None for the full size."""
        plan = Plan.make(seeds, max_minutes, self.minutes)
        numbers, note = self.measure(plan)
        note = sentences(note, plan.words)
        return {**numbers, "seeds": plan.seeds, "note": note, "made_by": versions()}

    def draw(self, data: Numbers, stem: str | Path) -> list[Path]:
        """Draw the numbers as ``stem.svg`` and ``stem.png`` and return both paths."""
        with style():
            figure, axes = make_canvas(*self.canvas, share=self.share)
            self.paint(axes, data)
            if self.legend:
                labels = axes[0, 0].get_legend_handles_labels()
                figure.legend(*labels, loc="outside upper center", ncols=self.legend)
            return save(figure, stem, data["note"])


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
