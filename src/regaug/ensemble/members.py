"""The nets of an ensemble, as one stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from regaug.data.scaling import Scaler
from regaug.models import MLP
from regaug.training.stacked.net import Layout, forward


@dataclass(frozen=True, eq=False)
class Members:
    """Table nets of one architecture, with the way back to the targets' own units.

    Attributes:
        hidden: Widths of the hidden layers.
        weights: Weights by name, ``(members, *shape)``, float32.
        scaler: Scale of the targets, or of their logarithms.
        log: Whether the nets predict logarithms.
        block: Numbers of a hidden layer that are held at a time (32 MB).
    """

    hidden: tuple[int, ...]
    weights: Mapping[str, Tensor] = field(repr=False)
    scaler: Scaler = field(repr=False)
    log: bool
    block: int = field(default=2**22, repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.weights.values())))

    def __call__(self, x: Tensor) -> Tensor:
        """Return what every member predicts, ``(members, n, m)``, float64, in the nets' own scale.

        Computed in float64, so that a row's prediction does not depend on the rows beside it.

        Args:
            x: Standardized inputs ``(n, d)``.
        """
        layout, layers = self._layers
        size = max(1, self.block // (layout.widest * len(self)))
        with torch.no_grad():
            blocks = [
                forward(layout, layers, rows.expand(len(self), -1, -1))
                for rows in torch.split(x.double(), size)
            ]
        return torch.cat(blocks, dim=1)

    def scale(self, y: Tensor) -> Tensor:
        """Return targets ``(..., n, m)`` in the scale of the nets."""
        return self.scaler.transform(y.log() if self.log else y)

    def restore(self, values: Tensor) -> Tensor:
        """Return predictions ``(..., n, m)`` in the targets' own units; keeps their order."""
        values = self.scaler.inverse(values)
        return values.exp() if self.log else values

    @property
    def inputs(self) -> int:
        """Number of inputs of a net."""
        return next(iter(self.weights.values())).shape[-1]

    @staticmethod
    def layout(inputs: int, targets: int, hidden: Sequence[int]) -> Layout:
        """Return names and shapes of the weights of one net."""
        return Layout.of(MLP(inputs, targets, hidden=hidden))

    @cached_property
    def _layers(self) -> tuple[Layout, Sequence[Tensor]]:
        layout = self.layout(self.inputs, len(self.scaler.mean), self.hidden)
        rows = [
            layout.join({name: weight[number] for name, weight in self.weights.items()})
            for number in range(len(self))
        ]
        return layout, layout.split(torch.stack(rows).double())


def mean_and_spread(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation over the members, of ``(members, n, m)``."""
    mean = values.mean(dim=0)
    # Not torch.std: it warns if there are no rows.
    return mean, (values - mean).square().mean(dim=0).sqrt()
