"""The stages that a table net of many runs is made of: every weight has a leading axis of runs.

Going forth a stage keeps what it needs to come back; coming back it writes the gradient of its own
weights and hands on the derivative by its input. What autograd would do, up to rounding, in half
the time: a net this small is mostly overhead.

A new kind of stage is two classes: the :class:`Stage` itself, and a :class:`Form` that names its
weights, which :meth:`regaug.training.stacked.net.Layout.of` puts among the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

# Weights of some nets: (runs, inputs, outputs) for a matrix, (runs, 1, outputs) for a bias. Each
# lies in memory of its own, one run after another: batched products need that.
Weights = list[Tensor]


class Stage(Protocol):
    """A part of the net, for all runs."""

    @property
    def place(self) -> str | None:
        """The name of the place behind it, if there is one."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for an input ``(runs, n, d)``, by what autograd can follow."""

    def learn(self, x: Tensor) -> Tensor:
        """Do the same, and keep what :meth:`backward` needs.

        The output may lie in memory that the next step uses again. ``x`` stays as it is until then.
        """

    def backward(self, delta: Tensor, *, is_first: bool) -> Tensor:
        """Write the gradient of the weights for the loss's derivative by the output.

        Return that by the input, or anything if ``is_first``: nobody needs it then. ``delta`` may
        be changed, and so may what the last call has returned.
        """


class Form(Protocol):
    """What a stage has in common with those of nets of the same layout."""

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Shapes of its weights by name, as in the ``state_dict`` of one net."""

    @property
    def width(self) -> int:
        """How many numbers its output has for a row."""

    def make(self, weights: Weights, gradient: Weights | None) -> Stage:
        """Return the stage with these weights, in the order of ``shapes``.

        It follows them when they are changed in place, and writes into ``gradient``; without that
        it cannot learn.
        """


@dataclass(frozen=True)
class DenseForm:
    """A matrix and a bias, and a leaky ReLU if there is a slope."""

    shapes: Mapping[str, torch.Size]
    place: str | None
    slope: float | None  # of the activation below zero

    @property
    def width(self) -> int:
        """How many numbers its output has for a row."""
        return next(iter(self.shapes.values()))[0]

    def make(self, weights: Weights, gradient: Weights | None) -> "Dense":
        """Return the stage with these weights."""
        return Dense(self, weights, gradient)


class Dense:
    """The stage of a :class:`DenseForm`."""

    def __init__(self, form: DenseForm, weights: Weights, gradient: Weights | None) -> None:
        self.place, self.slope = form.place, form.slope
        self._weight, self._bias = weights
        self._gradient = gradient
        self._kept: tuple[Tensor, Tensor] | None = None  # the last input and output
        self._outputs, self._deltas = Room(), Room()

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for an input ``(runs, n, d)``."""
        if self.slope is None:
            return _few_columns(x, self._weight, self._bias)
        return F.leaky_relu(torch.baddbmm(self._bias, x, self._weight), self.slope)

    def learn(self, x: Tensor) -> Tensor:
        """Do the same, and keep what :meth:`backward` needs."""
        if self.slope is None:
            y = _few_columns(x, self._weight, self._bias)
        else:
            room = self._outputs.of(x, self._weight.shape[2])
            y = F.leaky_relu_(torch.baddbmm(self._bias, x, self._weight, out=room), self.slope)
        self._kept = x, y
        return y

    def backward(self, delta: Tensor, *, is_first: bool) -> Tensor:
        """Write the gradient of the weights and return the loss's derivative by the input."""
        assert self._kept is not None
        assert self._gradient is not None
        (x, y), (of_weight, of_bias) = self._kept, self._gradient
        if self.slope is not None:
            # The sign of a leaky ReLU's output is that of its input, which is not kept.
            torch.ops.aten.leaky_relu_backward.grad_input(
                delta, y, self.slope, True, grad_input=delta
            )
        if delta.shape[2] == 1:  # see _few_columns
            torch.bmm(delta.mT, x, out=of_weight.mT)
        else:
            torch.bmm(x.mT, delta, out=of_weight)
        torch.sum(delta, dim=1, keepdim=True, out=of_bias)
        if is_first:
            return delta
        room = self._deltas.of(delta, self._weight.shape[1])
        if delta.shape[2] == 1:
            return torch.mul(delta, self._weight.mT, out=room)
        return torch.bmm(delta, self._weight.mT, out=room)


class Room:
    """Memory that is used again in every step: getting it anew takes its time."""

    def __init__(self) -> None:
        self._tensor = torch.empty(0)

    def of(self, x: Tensor, width: int) -> Tensor:
        """Return room for so many numbers for every row of ``x``, ``(runs, n, width)``."""
        shape = (*x.shape[:2], width)
        if self._tensor.shape != shape:
            self._tensor = x.new_empty(shape)
        return self._tensor


def _few_columns(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``x weight + bias``; a product with a matrix of one column is slow, of one row not."""
    if weight.shape[2] > 1:
        return torch.baddbmm(bias, x, weight)
    return torch.bmm(weight.mT, x.mT).mT + bias
