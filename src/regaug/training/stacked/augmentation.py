"""The augmentations of many runs: each run draws for itself, the arithmetic is done for all."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug.augment.across import AtOnce, RunBatches
from regaug.augment.layer import INPUT
from regaug.training.stacked.batches import Batches
from regaug.training.stacked.step import StepAugmentation, put_back
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

    def steps(self, batches: Batches) -> Iterator[StepAugmentation]:
        """Give the augmentation of each step, with its inputs and targets."""
        if self.across.is_idle:
            yield from self._make_steps(batches, batches.x, batches.y)
        elif self.places == (INPUT,) and isinstance(self.across, AtOnce):
            yield from self._make_steps(batches, *self._augment_inputs(self.across, batches))
        else:
            for number in range(len(batches.x)):
                yield self._augment_step(batches, number)

    def _make_steps(
        self, batches: Batches, x: Tensor, y: Tensor, weights: Tensor | None = None
    ) -> Iterator[StepAugmentation]:
        for number, active in enumerate(batches.active):
            own = None if weights is None else weights[number, :active]
            batch = x[number, :active], y[number, :active]
            yield StepAugmentation(self.across, *batch, weights=own)

    def _augment_step(self, batches: Batches, number: int) -> StepAugmentation:
        """Draw where the runs are touched in a step, and whether they are."""
        active = batches.active[number]
        where = np.zeros(active, dtype=np.int64)
        if len(self.places) > 1:
            where = self.across.choose(len(self.places), np.arange(active))
        is_touched = self.across.happens(batches.progress[number, :active])
        self._note_untouched(is_touched)
        return StepAugmentation(
            self.across,
            batches.x[number, :active],
            batches.y[number, :active],
            rows=None if batches.rows is None else batches.rows[number, :active],
            touched={
                place: np.flatnonzero(is_touched & (where == at))
                for at, place in enumerate(self.places)
            },
        )

    def _augment_inputs(
        self, across: AtOnce[Any], batches: Batches
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Augment the inputs of all steps in one go: they do not depend on the weights.

        Return inputs, targets and weights of the losses, ``(steps, runs, ...)``.
        """
        shape = n_steps, n_runs = batches.x.shape[:2]
        x, y = batches.x.flatten(0, 1), batches.y.flatten(0, 1)
        counts = across.counts(RunBatches(np.tile(np.arange(n_runs), n_steps), x, y))
        counts = np.broadcast_to(counts, n_steps * n_runs).reshape(shape)
        uniform = np.zeros((*shape, int(counts.max())))
        is_touched = np.zeros(shape, dtype=bool)
        for step, active in enumerate(batches.active):
            is_touched[step, :active] = across.happens(batches.progress[step, :active])
            runs = np.flatnonzero(is_touched[step])
            taken = across.numbers.take(counts[step, runs], runs)
            uniform[step, runs, : taken.shape[1]] = taken
        new, chosen, weights = None, None, None
        if len(where := np.flatnonzero(is_touched)):
            rows = None if batches.rows is None else batches.rows.flatten(0, 1)
            some_x, some_y = x, y
            if len(where) < len(x):
                chosen = torch.from_numpy(where)
                some_x, some_y = x[chosen], y[chosen]
                rows = None if rows is None else rows[chosen]
            own = uniform.reshape(len(x), -1)[where, : counts.flatten()[where].max()]
            new = across.transform(RunBatches(where % n_runs, some_x, some_y, rows), own)
            if across.weights is not None:
                weights = y.new_ones(shape).flatten()
                weights[torch.from_numpy(where)] = torch.from_numpy(across.weights).to(y)
                weights = weights.reshape(shape)
        self._note_untouched(is_touched[-1, : batches.active[-1]])
        x, y = put_back(self.parts[0], (x, y), new, chosen)
        return x.reshape(*shape, *x.shape[1:]), y.reshape(*shape, *y.shape[1:]), weights

    def _note_untouched(self, is_touched: NDArray[np.bool_]) -> None:
        """Note that nothing was drawn for some of the first runs' last batches."""
        for run in np.flatnonzero(~is_touched).tolist():
            part = self.parts[run]
            if part.params is not part.neutral:
                part.params = part.neutral
