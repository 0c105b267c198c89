"""The augmentations of many runs: each run draws for itself, the arithmetic is done for all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regaug import _random
from regaug.augment.layer import INPUT
from regaug.augment.numbers import Indices, Values
from regaug.training.stacked.training import Training


class StackAugmentation:
    """The augmentations of the runs of a stack.

    The draws are those that :func:`regaug.training.fit` makes, from each run's own generator, so
    that a run does not depend on the others in its stack.
    """

    def __init__(self, runs: Sequence[Training]) -> None:
        self.parts = [run.augmentation for run in runs]
        self.places = runs[0].places
        self.across = type(self.parts[0]).across(self.parts, ahead=True)
        self._seeds = [run.settings.seed for run in runs]

    def start_epoch(self, epoch: int) -> None:
        """Seed the generators of all runs for an epoch, as ``fit`` does."""
        if self.across.is_idle:
            return
        for part, seed in zip(self.parts, self._seeds, strict=True):
            part.generator.manual_seed(_random.derive(_random.Stream.EPOCHS, seed, epoch, 0))
        self.across.restart()

    def step(
        self, progress: Values, x: Tensor, y: Tensor, rows: Tensor | None = None
    ) -> "StepAugmentation":
        """Draw where the first runs are touched in a step, and whether they are.

        Args:
            progress: Share of its training that each of them has done.
            x: Their batches ``(runs, n, d)``.
            y: The targets ``(runs, n, m)``.
            rows: Which training rows of each run's split they are, ``(runs, n)``.
        """
        if self.across.is_idle:
            return StepAugmentation(self, {}, x, y, rows)
        runs = np.arange(len(progress))
        where = np.zeros(len(runs), dtype=np.int64)
        if len(self.places) > 1:
            where = self.across.choose(len(self.places), runs)
        is_touched = self.across.happens(progress)
        for run in np.flatnonzero(~is_touched).tolist():
            part = self.parts[run]
            if part.params is not part.neutral:
                part.params = part.neutral
        touched = {
            place: np.flatnonzero(is_touched & (where == number))
            for number, place in enumerate(self.places)
        }
        return StepAugmentation(self, touched, x, y, rows)


@dataclass(slots=True)
class _Act:
    """What has happened at a layer: from the outputs of the touched runs to new ones."""

    runs: Tensor | None  # numbers of the touched runs; None if all are
    hidden: Tensor  # a leaf of the graph that leads to what is new
    new: tuple[Tensor, Tensor]

    def pull_back(self, *deltas: Tensor) -> Tensor:
        """Return the loss's derivative by the outputs, from that by what is new."""
        if self.runs is not None:
            deltas = tuple(delta[self.runs] for delta in deltas)
        pairs = zip(self.new, deltas, strict=True)
        used = [(new, delta) for new, delta in pairs if new.requires_grad]
        if not used:
            return torch.zeros_like(self.hidden)
        outputs, along = zip(*used, strict=True)
        (found,) = torch.autograd.grad(outputs, self.hidden, along)
        return found


class StepAugmentation:
    """The augmentations of some runs in one step, forth and back."""

    def __init__(
        self,
        stack: StackAugmentation,
        touched: dict[str, Indices],
        x: Tensor,
        y: Tensor,
        rows: Tensor | None,
    ) -> None:
        self.targets = y  # of what was last returned
        self.is_lost: Tensor | None = None  # whose hidden layer is not finite; None if all are well
        self._given, self._rows = (x, y), rows
        self._parts, self._across, self._touched = stack.parts, stack.across, touched
        self._acts: dict[str, _Act] = {}

    def forward(self, place: str, x: Tensor) -> Tensor:
        """Augment what arrives at a place, ``(runs, n, d)``, of the runs that are touched there."""
        if place not in self._touched:
            return x
        touched = self._touched[place]
        if place != INPUT and len(touched):
            x = self._without_lost(x)
        batch, (x, y) = (x, self.targets), self._originals(x, self.targets)
        new_x, new_y = x, y
        if len(touched) == len(x):
            new_x, new_y = self._act(place, None, *batch)
        elif len(touched):
            runs = torch.from_numpy(touched)
            some_x, some_y = self._act(place, runs, *(t[runs] for t in batch))
            new_x, new_y = x.index_copy(0, runs, some_x), y.index_copy(0, runs, some_y)
        if self._parts[0].append:
            # A run that is not touched has all its rows twice: its mean loss is the same.
            new_x, new_y = torch.cat([x, new_x], dim=1), torch.cat([y, new_y], dim=1)
        self.targets = new_y
        return new_x

    def backward(self, place: str, delta: Tensor, of_targets: Tensor) -> Tensor:
        """Return the loss's derivative by what has come to a place.

        Only the augmentation itself is differentiated by autograd, for the touched runs alone.
        """
        if place not in self._touched:
            return delta
        kept: Tensor | None = None
        if self._parts[0].append:  # the originals come first, and then what was made of them
            kept, delta = delta.tensor_split(2, dim=1)
            of_targets = of_targets.tensor_split(2, dim=1)[1]
        act, of_new = self._acts.get(place), delta
        if act is None or act.runs is not None:
            delta = self._with_partners(delta)
        if act is not None:
            found = act.pull_back(of_new, of_targets)
            delta = found if act.runs is None else delta.index_copy(0, act.runs, found)
        return delta if kept is None else delta + self._with_partners(kept)

    def loss_weights(self) -> Tensor | None:
        """Return what each run's loss is multiplied by, ``(runs,)``; None if by nothing."""
        if not any(part.weighs for part in self._parts):
            return None
        weights = [part.weight for part in self._parts[: len(self.targets)]]
        if all(weight == 1.0 for weight in weights):
            return None
        return torch.tensor(weights, dtype=self.targets.dtype)

    def _originals(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if not self._parts[0].paired:
            return x, y
        # `originals` selects along the first axis, and here the rows are the second.
        x, y = self._parts[0].originals(x.transpose(0, 1), y.transpose(0, 1))
        return x.transpose(0, 1), y.transpose(0, 1)

    def _with_partners(self, delta: Tensor) -> Tensor:
        """Return the derivative by all rows from that by the originals."""
        if not self._parts[0].paired:
            return delta
        return torch.cat([delta, torch.zeros_like(delta)], dim=1)

    def _act(self, place: str, runs: Tensor | None, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Augment the batches of the touched runs, and at a layer keep the way back."""
        touched = self._touched[place]
        rows = self._rows if self._rows is None or runs is None else self._rows[runs]
        if place == INPUT:
            return self._across.act(touched, x, y, rows=rows)
        given = self._given if runs is None else (self._given[0][runs], self._given[1][runs])
        hidden = x.detach().requires_grad_()
        with torch.enable_grad():
            new_x, new_y = self._across.act(touched, hidden, y, rows=rows, given=given)
        self._acts[place] = _Act(runs, hidden, (new_x, new_y))
        return new_x.detach(), new_y.detach()

    def _without_lost(self, hidden: Tensor) -> Tensor:
        """Put zeros into a hidden layer that is not finite, and remember whose it is.

        Such a run has diverged and ends with its epoch; until then the others go through the same
        decomposition, which refuses NaN.
        """
        if math.isfinite(hidden.sum().item()):
            return hidden
        is_lost = ~hidden.isfinite().all(dim=2).all(dim=1)
        self.is_lost = is_lost if self.is_lost is None else self.is_lost | is_lost
        return hidden.masked_fill(is_lost[:, None, None], 0.0)
