"""Mixing of rows at a layer, where shares and partners are known before the layers run."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from regaug.augment.layer import INPUT
from regaug.functional.mixing import mix_rows, unmix_rows


@dataclass(frozen=True, eq=False)
class Mixture:
    """What is mixed at a place, of all runs: those that are not touched there mix nothing.

    Attributes:
        lam: Share of a row itself, ``(runs,)``; 1 where nothing is mixed.
        partners: The row that each of the first rows is mixed with, ``(runs, k)``.
        n: Rows that arrive.
    """

    lam: Tensor
    partners: Tensor
    n: int

    def forward(self, rows: Tensor) -> Tensor:
        """Return the mixed rows ``(runs, k, d)`` of ``(runs, n, d)``."""
        return mix_rows(rows, self.lam, self.partners)

    def backward(self, delta: Tensor) -> Tensor:
        """Return the loss's derivative by what arrived from that by what went on."""
        return unmix_rows(delta, self.lam, self.partners, self.n)


class MixedStep:
    """A step of runs that mix rows, each at one place at most.

    A run is mixed within itself, so one that has diverged harms no other, and the derivative is
    written by hand: of so small nets autograd would take half the time of a step.

    Attributes:
        x: What the nets are given.
        targets: The targets of what comes out of them.
        is_lost: None: the loss of a run that has diverged says so itself.
    """

    is_lost: Tensor | None = None

    def __init__(self, x: Tensor, targets: Tensor, mixtures: Mapping[str, Mixture]) -> None:
        self.targets, self._mixtures = targets, mixtures
        self.x = self.forward(INPUT, x)

    def forward(self, place: str, x: Tensor) -> Tensor:
        """Mix what arrives at a place, ``(runs, n, d)``."""
        return self._mixtures[place].forward(x) if place in self._mixtures else x

    def backward(self, place: str, delta: Tensor, of_targets: Tensor) -> Tensor:
        """Return the loss's derivative by what has come to a place."""
        return self._mixtures[place].backward(delta) if place in self._mixtures else delta

    def loss_weights(self) -> None:
        """Return that losses are multiplied by nothing."""
