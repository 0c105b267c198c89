"""The table net of many runs as one tensor program: every weight has a leading axis of runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from regaug.models import MLP

# From a layer's name and its output to what goes on from there.
Hook = Callable[[str, Tensor], Tensor]


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


def forward(
    layout: Layout, weights: Sequence[Tensor], x: Tensor, hook: Hook | None = None
) -> Tensor:
    """Return predictions ``(runs, n, m)`` of inputs ``(runs, n, d)``, with each run's own weights.

    The weights are those of ``layout.split(rows)``: weight and bias of each layer in turn.
    """
    for place, weight, bias in zip(layout.places, weights[0:-2:2], weights[1:-2:2], strict=True):
        x = F.leaky_relu(torch.baddbmm(bias, x, weight), layout.slope)
        if hook is not None:
            x = hook(place, x)
    return torch.baddbmm(weights[-1], x, weights[-2])


def loss_and_gradient(
    layout: Layout,
    weights: Sequence[Tensor],
    x: Tensor,
    y: Tensor,
    factors: Tensor | None,
    out: Sequence[Tensor],
) -> Tensor:
    """Return the mean squared error of every run, times its factor, and write its gradient.

    What autograd would do, up to rounding, in half the time: a net this small is mostly overhead.
    Weights and gradients are those of ``layout.split(rows)``, without history.
    """
    with torch.no_grad():
        outputs = [x]
        for weight, bias in zip(weights[0:-2:2], weights[1:-2:2], strict=True):
            x = F.leaky_relu(torch.baddbmm(bias, x, weight), layout.slope)
            outputs.append(x)
        delta = torch.baddbmm(weights[-1], x, weights[-2]).sub_(y)
        loss = delta.square().mean(dim=(1, 2))
        delta.mul_(2.0 / (delta.shape[1] * delta.shape[2]))
        if factors is not None:
            loss = loss * factors
            delta.mul_(factors[:, None, None])
        for layer in reversed(range(len(outputs))):
            before, weight = outputs[layer], weights[2 * layer]
            torch.bmm(before.mT, delta, out=out[2 * layer])
            torch.sum(delta, dim=1, keepdim=True, out=out[2 * layer + 1])
            if layer > 0:
                # The sign of a leaky ReLU's output is that of its input, which is not kept.
                delta = torch.ops.aten.leaky_relu_backward(
                    torch.bmm(delta, weight.mT), before, layout.slope, True
                )
    return loss
