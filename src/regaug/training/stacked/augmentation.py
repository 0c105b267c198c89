"""The augmentations of many runs: each run draws for itself, the arithmetic is done for all."""

import math
from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from regaug import _random
from regaug.augment import Augmentation
from regaug.augment.layer import INPUT
from regaug.training.stacked.training import Training


class StepAugmentation:
    """The augmentations of some runs in one step.

    The draws are made in the order in which :func:`regaug.training.fit` makes them, from each run's
    own generator, so that a run does not depend on the others in its stack.
    """

    def __init__(
        self, runs: Sequence[Training], progress: Sequence[float], x: Tensor, y: Tensor
    ) -> None:
        self.inputs, self.targets = (x, y), y  # the targets of what was last returned
        self.is_lost: Tensor | None = None  # whose hidden layer is not finite; None if all are well
        self._parts = [run.augmentation for run in runs]
        self._touched: dict[str, list[int]] = {place: [] for place in runs[0].places}
        for number, (run, part, done) in enumerate(zip(runs, self._parts, progress, strict=True)):
            place = run.places[0]
            if len(run.places) > 1:
                place = run.places[_random.integer(len(run.places), part.generator)]
            if part.params is not part.neutral:
                part.params = part.neutral
            if part.happens(part.probability_at(done)):
                self._touched[place].append(number)

    def __call__(self, place: str, x: Tensor) -> Tensor:
        """Augment what arrives at a place, ``(runs, n, d)``, of the runs that are touched there."""
        if place not in self._touched:
            return x
        touched = self._touched[place]
        if place != INPUT and touched:
            x = self._without_lost(x)
        x, y, batch = *self._originals(x, self.targets), (x, self.targets)
        new_x, new_y = x, y
        if len(touched) == len(self._parts):
            new_x, new_y = self._transform(place, touched, *batch)
        elif touched:
            chosen = torch.tensor(touched)
            some_x, some_y = self._transform(place, touched, *(t[chosen] for t in batch))
            new_x, new_y = x.index_copy(0, chosen, some_x), y.index_copy(0, chosen, some_y)
        if self._parts[0].append:
            # A run that is not touched has all its rows twice: its mean loss is the same.
            new_x, new_y = torch.cat([x, new_x], dim=1), torch.cat([y, new_y], dim=1)
        self.targets = new_y
        return new_x

    def loss_weights(self) -> Tensor | None:
        """Return what each run's loss is multiplied by, ``(runs,)``; None if by nothing."""
        weights = [part.weight for part in self._parts]
        if all(weight == 1.0 for weight in weights):
            return None
        return torch.tensor(weights, dtype=self.targets.dtype)

    def _originals(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        # `originals` selects along the first axis, and here the rows are the second.
        x, y = self._parts[0].originals(x.transpose(0, 1), y.transpose(0, 1))
        return x.transpose(0, 1), y.transpose(0, 1)

    def _transform(
        self, place: str, touched: Sequence[int], x: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor]:
        parts = [self._parts[number] for number in touched]
        kind = type(parts[0])
        with ExitStack() as observations:
            if place != INPUT and kind.observing is not Augmentation.observing:
                for number, part in zip(touched, parts, strict=True):
                    inputs, targets = (batch[number] for batch in self.inputs)
                    observations.enter_context(part.observing(inputs, targets))
            return kind.across_runs(parts, x, y)

    def _without_lost(self, hidden: Tensor) -> Tensor:
        """Put zeros into a hidden layer that is not finite, and remember whose it is.

        Such a run has diverged and ends with its epoch; until then the others go through the same
        decomposition, which refuses NaN.
        """
        if math.isfinite(hidden.detach().sum().item()):
            return hidden
        is_lost = ~hidden.detach().isfinite().all(dim=2).all(dim=1)
        self.is_lost = is_lost if self.is_lost is None else self.is_lost | is_lost
        return hidden.masked_fill(is_lost[:, None, None], 0.0)
