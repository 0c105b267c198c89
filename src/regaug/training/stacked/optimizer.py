"""One step of Adam for many runs, each with its own rates."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from regaug.training.settings import Settings
from regaug.training.stacked.stages import Weights
from regaug.training.stacked.training import Training

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


@dataclass
class _Alike:
    """Neighboring runs with the same rates, which are updated in one call."""

    settings: Settings
    n_batches: int
    runs: slice
    state: tuple[Weights, Weights, Weights]  # weights, running means of gradient and of its square
    steps: list[Tensor]  # taken so far, of every weight, as torch counts them


class StackedAdam:
    """Adam and AdamW for the weights of runs, changed in place.

    Runs with more steps in an epoch come first; runs that share their rates stand together.
    """

    def __init__(self, weights: Weights, means: Weights, squares: Weights) -> None:
        self._state = weights, means, squares
        self._alike: list[_Alike] = []

    def start_epoch(self, runs: Sequence[Training], epoch: int) -> None:
        """Get ready for the steps of an epoch."""
        self._alike, start = [], 0
        for (n_batches, _), members in groupby(runs, lambda r: (len(r.sampler), r.rates)):
            alike = list(members)
            own = slice(start, start := start + len(alike))
            weights, means, squares = ([part[own] for part in whole] for whole in self._state)
            steps = [torch.tensor(float(epoch * n_batches))] * len(weights)
            state = weights, means, squares
            self._alike.append(_Alike(alike[0].settings, n_batches, own, state, steps))

    def step(self, gradient: Weights, epoch: int, number: int) -> None:
        """Take one step for the runs that have a gradient, the first ones."""
        for group in self._alike:
            if group.runs.stop > len(gradient[0]):
                break
            own, own_gradient = group.settings, [part[group.runs] for part in gradient]
            if own.clip is not None:
                own_gradient = _clip(own_gradient, own.clip)
            group.steps[0].add_(1.0)  # the same for all of them
            # What torch.optim calls in the end, five times as fast for a single run.
            update = torch._fused_adamw_ if own.optimizer == "adamw" else torch._fused_adam_
            weights, means, squares = group.state
            update(
                weights,
                own_gradient,
                means,
                squares,
                [],
                group.steps,
                lr=own.rate_at((epoch + number / group.n_batches) / own.epochs),
                beta1=_BETA1,
                beta2=_BETA2,
                weight_decay=own.weight_decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )


def _clip(gradient: Weights, most: float) -> Weights:
    """Return the gradients of some runs, each shrunk to a norm of at most ``most``."""
    norms = [torch.linalg.vector_norm(part.flatten(1), dim=1) for part in gradient]
    norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    factor = (most / (norm + 1e-6)).clamp(max=1.0)
    return [part * factor.view(-1, *[1] * (part.ndim - 1)) for part in gradient]
