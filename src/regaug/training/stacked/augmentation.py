"""The augmentations of many runs: each run draws for itself, the arithmetic is done for all."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug.augment.across import AtOnce, MixesRows, RunBatches
from regaug.augment.layer import INPUT
from regaug.augment.numbers import Indices, Values
from regaug.functional.mixing import mix_rows
from regaug.training.stacked.batches import Batches
from regaug.training.stacked.mixed import MixedStep, Mixture
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

    def steps(self, batches: Batches) -> Iterator[StepAugmentation | MixedStep]:
        """Give the augmentation of each step, with its inputs and targets."""
        if self.across.is_idle:
            yield from self._make_steps(batches, batches.x, batches.y)
        elif self.places == (INPUT,) and isinstance(self.across, AtOnce):
            yield from self._make_steps(batches, *self._augment_inputs(self.across, batches))
        elif (
            isinstance(self.across, MixesRows) and self.across.is_blind and not self.parts[0].append
        ):
            yield from self._mix_steps(self.across, batches)
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
        where, is_touched = self._draw_where(batches.progress[number, :active])
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

    def _draw_where(self, progress: Values) -> tuple[Indices, NDArray[np.bool_]]:
        """Draw the number of the place of each of the first runs, and whether it is touched."""
        where = np.zeros(len(progress), dtype=np.int64)
        if len(self.places) > 1:
            where = self.across.choose(len(self.places), np.arange(len(progress)))
        return where, self.across.happens(progress)

    def _mix_steps(self, across: MixesRows[Any], batches: Batches) -> Iterator[MixedStep]:
        """Draw for all steps at once: shares and partners do not depend on the weights."""
        shape = n_steps, n_runs = batches.x.shape[:2]
        x, y = batches.x.flatten(0, 1), batches.y.flatten(0, 1)
        count = across.counts(RunBatches(np.tile(np.arange(n_runs), n_steps), x, y))
        where, drawn = np.full(shape, -1), []  # -1: at no place
        for step, active in enumerate(batches.active):
            own, is_touched = self._draw_where(batches.progress[step, :active])
            where[step, :active] = np.where(is_touched, own, -1)
            drawn.append(across.numbers.take(count, np.flatnonzero(is_touched)))
        self._note_untouched(is_touched)
        n = x.shape[1]
        own_rows = torch.arange(n // 2 if self.parts[0].paired else n)
        lam, partners = y.new_ones(len(x)), own_rows.repeat(len(x), 1)
        if len(chosen := np.flatnonzero(where >= 0)):
            some = torch.from_numpy(chosen)
            touched = RunBatches(chosen % n_runs, x[some], y[some])
            shares, partners[some] = across.mixtures(touched, np.concatenate(drawn))
            lam[some] = torch.from_numpy(shares).to(lam)
        targets = mix_rows(y, lam, partners).reshape(*shape, *partners.shape[1:], -1)
        lam, partners = lam.reshape(shape), partners.reshape(*shape, -1)
        at_place = {}
        for at, place in enumerate(self.places):
            is_here = torch.from_numpy(where == at)
            at_place[place] = (
                torch.where(is_here, lam, 1.0),
                torch.where(is_here[..., None], partners, own_rows),
            )
        for step, active in enumerate(batches.active):
            mixtures = {
                place: Mixture(lam[step, :active], partners[step, :active], n)
                for at, (place, (lam, partners)) in enumerate(at_place.items())
                if len(own_rows) < n or (where[step] == at).any()
            }
            yield MixedStep(batches.x[step, :active], targets[step, :active], mixtures)

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
