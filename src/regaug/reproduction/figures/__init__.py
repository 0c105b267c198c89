"""The figures of the paper, drawn anew from measured numbers.

A figure computes plain numbers, which can be kept as JSON, draws them, and says in words what they
show: ``data = FIGURES["figure1"].compute()``, then ``FIGURES["figure1"].draw(data, "figure1")``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regaug._files import write_json
from regaug._outputs import check_own_folder
from regaug.reproduction.experiments import WHAT
from regaug.reproduction.figures import figure1, figure2, figure3, figure4, perturbation
from regaug.reproduction.figures.base import SEEDS, Figure
from regaug.runs.store import STUDY, Store

FIGURES: Mapping[str, Figure] = {
    "figure1": figure1.FIGURE,
    "figure2": figure2.FIGURE,
    "figure3": figure3.FIGURE,
    "figure4": figure4.FIGURE,
    "perturbation": perturbation.FIGURE,
}

__all__ = ["FIGURES", "DrawnFigure", "Figure", "make_figure"]


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that was made: what it shows, in words, and the files it was drawn to."""

    caption: str
    files: list[Path]

    def __str__(self) -> str:
        return "\n".join([self.caption, *map(str, self.files)])


def make_figure(
    name: str, folder: Path, *, seeds: int = SEEDS, max_minutes: float | None = None
) -> DrawnFigure:
    """Compute a figure, keep its numbers as ``name.json`` in a folder, and draw it there."""
    check_own_folder(folder, STUDY)
    figure = FIGURES[name]
    numbers = figure.compute(seeds=seeds, max_minutes=max_minutes)
    Store(folder, WHAT)  # it says whose folder it is
    write_json(folder / f"{name}.json", numbers, indent=1)
    return DrawnFigure(figure.caption(numbers), figure.draw(numbers, folder / name))
