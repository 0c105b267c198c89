"""The table net of many runs as one tensor program: a row of stages, forth and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from regaug.models import MLP
from regaug.training.stacked.periodic import PeriodicForm
from regaug.training.stacked.stages import DenseForm, Form, Stage, Weights


@dataclass(frozen=True)
class Layout:
    """The stages of a table net and the weights that it learns, in the order of its layers.

    Matrices are stored transposed, ``(inputs, outputs)``: so their gradients come out of the
    batched products as they are to be stored.
    """

    forms: tuple[Form, ...]

    @classmethod
    def of(cls, net: MLP) -> Self:
        """Return the layout of a net."""
        learned = (named for named in net.named_parameters() if named[1].requires_grad)
        shapes = {name: weight.shape for name, weight in learned}

        def below(module: str) -> dict[str, torch.Size]:
            return {name: shape for name, shape in shapes.items() if name.startswith(f"{module}.")}

        blocks = [DenseForm(below(place), place, net.slope) for place in net.places]
        first = [PeriodicForm(below("features"), net.form.periodic)] if net.form.periodic else []
        return cls((*first, *blocks, DenseForm(below("head"), None, None)))

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Shapes of all weights by name, as in the net's ``state_dict``."""
        return {name: shape for form in self.forms for name, shape in form.shapes.items()}

    @property
    def widest(self) -> int:
        """Width of the widest layer."""
        return max(form.width for form in self.forms)

    def stack(self, nets: Sequence[Mapping[str, Tensor]], dtype: torch.dtype) -> Weights:
        """Return the weights of several nets, given by their names, for as many runs."""
        weights = []
        for name in self.shapes:
            own = torch.stack([net[name].detach().to(dtype) for net in nets])
            weights.append((own[:, None] if own.ndim == 2 else own.mT).contiguous())
        return weights

    def name(self, weights: Weights, run: int) -> dict[str, Tensor]:
        """Return the weights of one run by their names, in memory of their own."""
        pairs = zip(weights, self.shapes.items(), strict=True)
        return {name: part[run].mT.reshape(shape).clone() for part, (name, shape) in pairs}

    def stages(self, weights: Weights, gradient: Weights | None = None) -> list[Stage]:
        """Return the nets with these weights; with room for a ``gradient``, ones that can learn."""
        stages, start = [], 0
        for form in self.forms:
            own = slice(start, start := start + len(form.shapes))
            stages.append(form.make(weights[own], None if gradient is None else gradient[own]))
        return stages


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

    def __init__(self, layout: Layout, weights: Weights) -> None:
        self.gradient = [torch.empty_like(weight) for weight in weights]
        self._stages = layout.stages(weights, self.gradient)

    def __len__(self) -> int:
        return len(self.gradient[0])

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
