"""The table net of many runs as one tensor program: every weight has a leading axis of runs.

The net is a row of stages. Going forth a stage keeps what it needs to come back; coming back it
writes the gradient of its own weights and hands on that of its input. What autograd would do, up to
rounding, in half the time: a net this small is mostly overhead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regaug.models import MLP


@dataclass(frozen=True)
class Layout:
    """Where the weights of a table net lie in one long row.

    Matrices are transposed, ``(inputs, outputs)``: so their gradients come out of the batched
    products as they are to be stored.
    """

    shapes: Mapping[str, torch.Size]  # as in the net's state_dict(), layer by layer
    places: tuple[str, ...]  # the hidden blocks
    slope: float  # of the activation below zero

    @classmethod
    def of(cls, net: MLP) -> Self:
        """Return the layout of a net."""
        shapes = {name: weight.shape for name, weight in net.state_dict().items()}
        return cls(shapes, net.places, net.slope)

    @property
    def widest(self) -> int:
        """Width of the widest layer."""
        return max(shape[0] for shape in self.shapes.values())

    def join(self, weights: Mapping[str, Tensor]) -> Tensor:
        """Return the weights of one net as a row."""
        return torch.cat([weights[name].detach().t().flatten() for name in self.shapes])

    def split(self, rows: Tensor) -> list[Tensor]:
        """Return views of every weight in ``rows`` ``(runs, weights)``.

        They are ``(runs, inputs, outputs)`` for a matrix and ``(runs, 1, outputs)`` for a bias.
        """
        parts = rows.split_with_sizes([shape.numel() for shape in self.shapes.values()], 1)
        pairs = zip(parts, self.shapes.values(), strict=True)
        return [part.view(len(rows), *(shape[1:] or (1,)), shape[0]) for part, shape in pairs]

    def name(self, row: Tensor) -> dict[str, Tensor]:
        """Return the weights of one run by their names, in memory of their own."""
        pairs = zip(self.split(row[None]), self.shapes.items(), strict=True)
        return {name: part[0].t().reshape(shape).clone() for part, (name, shape) in pairs}

    def stages(self, rows: Tensor, gradient: Tensor | None = None) -> list["Stage"]:
        """Return the net whose weights are ``rows``; with ``gradient``, one that can learn."""
        weights = self.split(rows)
        room = [None] * len(weights) if gradient is None else self.split(gradient)
        stages: list[Stage] = []
        for number, place in enumerate((*self.places, None)):
            pair = slice(2 * number, 2 * number + 2)
            slope = None if place is None else self.slope
            stages.append(Dense(place, weights[pair], room[pair], slope))
        return stages


class Stage(Protocol):
    """A part of the net, for all runs."""

    @property
    def place(self) -> str | None:
        """The name of the place behind it, if there is one."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for an input ``(runs, n, d)``."""

    def learn(self, x: Tensor) -> Tensor:
        """Do the same, and keep what :meth:`backward` needs."""

    def backward(self, delta: Tensor, *, is_first: bool) -> Tensor:
        """Write the gradient of the weights for the loss's derivative by the output.

        Return that by the input, or anything if ``is_first``: nobody needs it then. ``delta`` may
        be changed, and so may what the last call has returned.
        """


class Dense:
    """A matrix and a bias, and a leaky ReLU if there is a slope."""

    def __init__(
        self,
        place: str | None,
        weights: Sequence[Tensor],
        gradients: Sequence[Tensor | None],
        slope: float | None,
    ) -> None:
        self.place, self.slope = place, slope
        self._weight, self._bias = weights
        self._of_weight, self._of_bias = gradients
        self._kept: tuple[Tensor, Tensor] | None = None  # the last input and output
        self._room: dict[str, Tensor] = {}  # of an output and of a delta, used in every step

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
            room = self._make_room("output", x, self._weight.shape[2])
            y = F.leaky_relu_(torch.baddbmm(self._bias, x, self._weight, out=room), self.slope)
        self._kept = x, y
        return y

    def backward(self, delta: Tensor, *, is_first: bool) -> Tensor:
        """Write the gradient of the weights and return the loss's derivative by the input."""
        assert self._kept is not None
        x, y = self._kept
        if self.slope is not None:
            # The sign of a leaky ReLU's output is that of its input, which is not kept.
            delta = torch.ops.aten.leaky_relu_backward(delta, y, self.slope, True)
        torch.bmm(x.mT, delta, out=self._of_weight)
        torch.sum(delta, dim=1, keepdim=True, out=self._of_bias)
        if is_first:
            return delta
        if delta.shape[2] == 1:
            return delta * self._weight.mT
        room = self._make_room("delta", delta, self._weight.shape[1])
        return torch.bmm(delta, self._weight.mT, out=room)

    def _make_room(self, name: str, like: Tensor, width: int) -> Tensor:
        """Return memory that is used again in every step: getting it anew takes its time."""
        room, shape = self._room.get(name), (*like.shape[:2], width)
        if room is None or room.shape != shape:
            room = self._room[name] = like.new_empty(shape)
        return room


class AtPlaces(Protocol):
    """What acts between the stages: the augmentation of a step."""

    @property
    def targets(self) -> Tensor:
        """The targets of what was last returned."""

    def forward(self, place: str, x: Tensor) -> Tensor:
        """Return what goes on from a place."""

    def backward(self, place: str, delta: Tensor, of_targets: Tensor) -> Tensor:
        """Return the loss's derivative by what has come to a place.

        It is given that by what went on from there, and by the targets.
        """

    def loss_weights(self) -> Tensor | None:
        """Return what each run's loss is multiplied by, ``(runs,)``; None if by nothing."""


class Learner:
    """The nets of some runs with room for their gradient, which a step fills."""

    def __init__(self, layout: Layout, rows: Tensor) -> None:
        self.gradient = torch.empty_like(rows)
        self._stages = layout.stages(rows, self.gradient)

    @torch.no_grad()
    def loss_and_gradient(self, x: Tensor, augmentation: AtPlaces) -> Tensor:
        """Return the mean squared error of every run, times its weight, and fill the gradient."""
        for stage in self._stages:
            x = stage.learn(x)
            if stage.place is not None:
                x = augmentation.forward(stage.place, x)
        delta, factors = x - augmentation.targets, augmentation.loss_weights()
        loss = delta.square().mean(dim=(1, 2))
        delta.mul_(2.0 / delta[0].numel())
        if factors is not None:
            loss.mul_(factors)
            delta.mul_(factors[:, None, None])
        of_targets = -delta
        for stage in reversed(self._stages):
            if stage.place is not None:
                delta = augmentation.backward(stage.place, delta, of_targets)
            delta = stage.backward(delta, is_first=stage is self._stages[0])
        return loss


def predict(stages: Sequence[Stage], x: Tensor) -> Tensor:
    """Return predictions ``(runs, n, m)`` of inputs ``(runs, n, d)``, with each run's weights."""
    for stage in stages:
        x = stage.forward(x)
    return x


def _few_columns(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``x weight + bias``, for one column not by a matrix product, which is slower."""
    if weight.shape[2] > 1:
        return torch.baddbmm(bias, x, weight)
    column: Tensor = torch.linalg.vecdot(x, weight.mT)
    return column.unsqueeze(2) + bias
