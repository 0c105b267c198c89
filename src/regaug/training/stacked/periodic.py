"""Periodic features of many runs, with the way back by hand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from regaug.training.stacked.stages import Weights


@dataclass(frozen=True)
class PeriodicForm:
    """Periodic features of some columns (:class:`regaug.models.mlp.PeriodicFeatures`)."""

    shapes: Mapping[str, torch.Size]
    columns: tuple[int, ...]

    @property
    def width(self) -> int:
        """How many numbers are held for a row: the waves are the most."""
        frequencies, condensing, _ = self.shapes.values()
        return frequencies.numel() * 2 + condensing[0] * condensing[2]

    def make(self, weights: Weights, gradient: Weights | None) -> "Periodic":
        """Return the stage with these weights."""
        return Periodic(self, weights, gradient)


class Periodic:
    """The stage of a :class:`PeriodicForm`, the first of a net.

    Its weights, for ``c`` columns: frequencies ``(runs, c, f)``, a matrix ``(runs, c, 4, 2 f)`` and
    a bias ``(runs, c, 4)``. Rows are the last axis of all that is computed: memory is then read in
    the order in which it lies, which makes sines and small products several times as fast.
    """

    place: str | None = None

    def __init__(self, form: PeriodicForm, weights: Weights, gradient: Weights | None) -> None:
        self._columns = torch.tensor(form.columns)
        self._frequencies, self._weight, self._bias = weights
        self._gradient = gradient
        self._kept: tuple[Tensor, Tensor] | None = None  # the columns' values and their waves

    def forward(self, x: Tensor) -> Tensor:
        """Return the output ``(runs, n, d + 4 c)`` for an input ``(runs, n, d)``."""
        return self._features(x, self._waves(x)[1])

    def learn(self, x: Tensor) -> Tensor:
        """Do the same, and keep what :meth:`backward` needs."""
        self._kept = self._waves(x)
        return self._features(x, self._kept[1])

    def backward(self, delta: Tensor, *, is_first: bool) -> Tensor:
        """Write the gradient of the weights and return the loss's derivative by the input."""
        assert self._kept is not None
        assert self._gradient is not None
        values, waves = self._kept
        of_frequencies, of_weight, of_bias = self._gradient
        (runs, n), (_, c, out, wide) = delta.shape[:2], self._weight.shape
        d = delta.shape[2] - c * out
        condensed = delta[:, :, d:].mT.reshape(runs * c, out, n)
        torch.bmm(condensed, self._flat(waves).mT, out=self._flat(of_weight))
        torch.sum(condensed, dim=2, out=self._flat(of_bias))
        of_waves = torch.bmm(self._flat(self._weight).mT, condensed).view(runs, c, wide, n)
        cos, sin = waves.tensor_split(2, dim=2)
        of_cos, of_sin = of_waves.tensor_split(2, dim=2)
        of_turns = torch.addcmul(of_sin * cos, of_cos, sin, value=-1.0).mul_(2.0 * math.pi)
        torch.sum(of_turns * values, dim=3, out=of_frequencies)
        if is_first:
            return delta
        found = delta[:, :, :d].clone()
        by_values = (of_turns * self._frequencies.unsqueeze(3)).sum(dim=2)
        return found.index_add_(2, self._columns, by_values.mT)

    def _waves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the columns' values ``(runs, c, 1, n)`` and their waves ``(runs, c, 2 f, n)``."""
        values = x.mT[:, self._columns].unsqueeze(2)
        turns = values * self._frequencies.unsqueeze(3).mul(2.0 * math.pi)
        runs, c, f, n = turns.shape
        waves = turns.new_empty(runs, c, 2 * f, n)
        cos, sin = waves.tensor_split(2, dim=2)
        torch.cos(turns, out=cos)
        torch.sin(turns, out=sin)
        return values, waves

    def _features(self, x: Tensor, waves: Tensor) -> Tensor:
        runs, _, _, n = waves.shape
        bias = self._flat(self._bias).unsqueeze(2)
        condensed = torch.baddbmm(bias, self._flat(self._weight), self._flat(waves))
        return torch.cat([x.mT, condensed.view(runs, -1, n)], dim=1).mT

    @staticmethod
    def _flat(whole: Tensor) -> Tensor:
        """Return runs and columns as one axis: batched products have one."""
        return whole.view(-1, *whole.shape[2:])
