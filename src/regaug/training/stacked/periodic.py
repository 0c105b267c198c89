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
        return frequencies.numel() * 2 + condensing[0] * condensing[1]

    def make(self, weights: Weights, gradient: Weights | None) -> "Periodic":
        """Return the stage with these weights."""
        return Periodic(self, weights, gradient)


class Periodic:
    """The stage of a :class:`PeriodicForm`, the first of a net.

    Its weights, for ``c`` columns: frequencies ``(runs, c, f)``, a matrix ``(runs, c, 2 f, 4)`` and
    a bias ``(runs, c, 4)``.
    """

    place: str | None = None

    def __init__(self, form: PeriodicForm, weights: Weights, gradient: Weights | None) -> None:
        self._columns = torch.tensor(form.columns)
        self._frequencies, self._weight, self._bias = weights
        self._gradient = gradient
        self._kept: tuple[Tensor, Tensor] | None = None  # the columns' values and their waves

    def forward(self, x: Tensor) -> Tensor:
        """Return the output ``(runs, n, d + 4 c)`` for an input ``(runs, n, d)``."""
        return self._features(x, *self._waves(x))

    def learn(self, x: Tensor) -> Tensor:
        """Do the same, and keep what :meth:`backward` needs."""
        self._kept = self._waves(x)
        return self._features(x, *self._kept)

    def backward(self, delta: Tensor, *, is_first: bool) -> Tensor:
        """Write the gradient of the weights and return the loss's derivative by the input."""
        assert self._kept is not None
        assert self._gradient is not None
        values, waves = self._kept
        of_frequencies, of_weight, of_bias = self._gradient
        (runs, n), (_, c, wide, out) = delta.shape[:2], self._weight.shape
        d = delta.shape[2] - c * out
        condensed = delta[:, :, d:].reshape(runs, n, c, out).transpose(1, 2).contiguous()
        flat, of_flat = self._flat(waves), self._flat(condensed)
        torch.bmm(flat.mT, of_flat, out=self._flat(of_weight))
        torch.sum(condensed, dim=2, out=of_bias)
        of_waves = torch.bmm(of_flat, self._flat(self._weight).mT).view(runs, c, n, wide)
        cos, sin = waves.tensor_split(2, dim=3)
        of_cos, of_sin = of_waves.tensor_split(2, dim=3)
        of_turns = torch.addcmul(of_sin * cos, of_cos, sin, value=-1.0).mul_(2.0 * math.pi)
        by_frequency = self._flat(of_turns).mT @ self._flat(values)
        of_frequencies.copy_(by_frequency.view_as(of_frequencies))
        if is_first:
            return delta
        found = delta[:, :, :d].clone()
        by_values = (of_turns * self._frequencies.unsqueeze(2)).sum(dim=3)
        return found.index_add_(2, self._columns, by_values.mT)

    def _waves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the columns' values ``(runs, c, n, 1)`` and their waves ``(runs, c, n, 2 f)``."""
        values = x[:, :, self._columns].mT.contiguous().unsqueeze(3)
        turns = values * self._frequencies.unsqueeze(2).mul(2.0 * math.pi)
        waves = turns.new_empty(*turns.shape[:3], 2 * turns.shape[3])
        cos, sin = waves.tensor_split(2, dim=3)
        torch.cos(turns, out=cos)
        torch.sin(turns, out=sin)
        return values, waves

    def _features(self, x: Tensor, values: Tensor, waves: Tensor) -> Tensor:
        runs, c, n, _ = waves.shape
        out = self._bias.shape[2]
        bias = self._bias.reshape(runs * c, 1, out)
        condensed = torch.baddbmm(bias, self._flat(waves), self._flat(self._weight))
        condensed = condensed.view(runs, c, n, out).transpose(1, 2)
        return torch.cat([x, condensed.reshape(runs, n, c * out)], dim=2)

    @staticmethod
    def _flat(whole: Tensor) -> Tensor:
        """Return runs and columns as one axis: batched products have one."""
        return whole.view(-1, *whole.shape[2:])
