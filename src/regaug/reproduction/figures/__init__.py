"""The figures of the paper, drawn anew from measured numbers.

A figure computes plain numbers, which can be kept as JSON, draws them, and says in words what they
show: ``data = FIGURES["figure1"].compute()``, then ``FIGURES["figure1"].draw(data, "figure1")``.
"""

from collections.abc import Mapping

from regaug.reproduction.figures import figure1, figure2, figure3, figure4, perturbation
from regaug.reproduction.figures.base import Figure

FIGURES: Mapping[str, Figure] = {
    "figure1": figure1.FIGURE,
    "figure2": figure2.FIGURE,
    "figure3": figure3.FIGURE,
    "figure4": figure4.FIGURE,
    "perturbation": perturbation.FIGURE,
}

__all__ = ["FIGURES", "Figure"]
