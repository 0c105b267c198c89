"""Runs of one form, trained together."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.adamw import adamw

from regaug import _random
from regaug.augment.layer import INPUT
from regaug.data.base import Part
from regaug.exceptions import NonFiniteError
from regaug.metrics import Scores
from regaug.training.results import Epoch, RunResult
from regaug.training.scores import score_parts
from regaug.training.settings import Recorded, Settings
from regaug.training.stacked.augmentation import StepAugmentation
from regaug.training.stacked.net import Layout, forward, loss_and_gradient
from regaug.training.stacked.rows import StackedRows
from regaug.training.stacked.training import Training

_ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
_ADAM |= {"amsgrad": False, "maximize": False, "fused": True}


@dataclass
class _Alike:
    """Neighboring runs with the same rates, which the optimizer updates in one call."""

    runs: slice
    settings: Settings
    n_batches: int
    steps: Tensor  # taken so far; the optimizer counts them here


class _Step:
    """The weights ``(runs, weights)`` that a step changes in place, and room for their gradient."""

    def __init__(self, layout: Layout, weights: Tensor) -> None:
        self.weights = layout.split(weights)
        # Leaves of the graph that share the memory of the weights.
        self.leaves = [weight.detach().requires_grad_() for weight in self.weights]
        self.gradient = torch.empty_like(weights)
        self.gradients = layout.split(self.gradient)


class Stack:
    """Runs of one form (:attr:`Training.form`), trained together.

    Runs with more steps in an epoch come first, so that those which take part in a step are always
    the first ones. A run that has ended leaves the stack. ``block`` numbers of a hidden layer are
    held at a time when a part is predicted (32 MB).
    """

    def __init__(
        self,
        runs: Sequence[Training],
        dtype: torch.dtype,
        recorded: Sequence[Recorded],
        *,
        block: int = 2**23,
    ) -> None:
        self.runs = sorted(runs, key=lambda run: (-len(run.sampler), repr(run.rates)))
        self.recorded, self.block = recorded, block
        splits = list({id(run.split): run.split for run in runs}.values())
        self.rows = StackedRows(splits, dtype)
        self.split_of_run = [splits.index(run.split) for run in self.runs]
        self.layout = Layout.of(runs[0].net)
        initial = [self.layout.join(run.net.state_dict()) for run in self.runs]
        self.weights = torch.stack(initial).to(dtype)
        self.best = self.weights.clone()
        # Adam's running means of the gradient and of its square.
        self.means, self.squares = torch.zeros_like(self.weights), torch.zeros_like(self.weights)

    def train(self) -> Iterator[tuple[Training, RunResult]]:
        """Train all runs to their ends; give each with its result when it has ended."""
        epoch = 0
        while self.runs:
            start = time.perf_counter()
            self._note(self._train_epoch(epoch))
            seconds = (time.perf_counter() - start) / len(self.runs)
            for run in self.runs:
                run.seconds += seconds
            yield from self._take_out_ended()
            epoch += 1

    def _train_epoch(self, epoch: int) -> list[float]:
        """Take the steps of one epoch and return the mean loss of every run."""
        for run in self.runs:
            seed = _random.derive(_random.Stream.EPOCHS, run.settings.seed, epoch, 0)
            run.augmentation.generator.manual_seed(seed)
            run.sampler.set_epoch(epoch)
        batches = self._batches()
        counts = [len(run.sampler) for run in self.runs]
        alike = self._alike(epoch)
        totals = torch.zeros(len(self.runs), dtype=torch.float64)
        active, step = 0, _Step(self.layout, self.weights)
        for number, rows in enumerate(batches):
            if active != (still := sum(count > number for count in counts)):
                active, step = still, _Step(self.layout, self.weights[:still])
            progress = [
                (epoch + number / counts[i]) / self.runs[i].settings.epochs for i in range(active)
            ]
            loss = self._loss_and_gradient(step, rows[:active], progress)
            self._update(step.gradient, alike, epoch, number)
            totals[:active] += loss
        return (totals / torch.tensor(counts)).tolist()

    def _batches(self) -> Tensor:
        """Return the places of the rows of every batch, ``(steps, runs, n)``."""
        epochs = [np.stack(run.sampler.epoch_batches()) for run in self.runs]
        batches = np.zeros((len(epochs[0]), len(epochs), epochs[0].shape[1]), dtype=np.int64)
        for number, (own, split) in enumerate(zip(epochs, self.split_of_run, strict=True)):
            batches[: len(own), number] = own + self.rows.first_row[split]
        return torch.from_numpy(batches)

    def _alike(self, epoch: int) -> list[_Alike]:
        groups, start = [], 0
        for (n_batches, _), members in groupby(self.runs, lambda r: (len(r.sampler), r.rates)):
            runs, steps = list(members), torch.tensor(float(epoch * n_batches))
            place = slice(start, start := start + len(runs))
            groups.append(_Alike(place, runs[0].settings, n_batches, steps))
        return groups

    def _loss_and_gradient(self, step: _Step, rows: Tensor, progress: Sequence[float]) -> Tensor:
        """Return the loss of every run that takes part, ``(runs,)``; ``step`` gets the gradient."""
        x, y = self.rows.x[rows], self.rows.y[rows]
        augmentation = StepAugmentation(self.runs[: len(rows)], progress, x, y)
        x = augmentation(INPUT, x)
        if self.runs[0].places == (INPUT,):
            y, factors = augmentation.targets, augmentation.loss_weights()
            return loss_and_gradient(self.layout, step.weights, x, y, factors, step.gradients)
        prediction = forward(self.layout, step.leaves, x, augmentation)
        loss = (prediction - augmentation.targets).square().mean(dim=(1, 2))
        if (factors := augmentation.loss_weights()) is not None:
            loss = loss * factors
        if augmentation.is_lost is not None:
            loss = loss.masked_fill(augmentation.is_lost, math.nan)
        gradients = torch.autograd.grad(loss.sum(), step.leaves)
        torch.cat([g.flatten(1) for g in gradients], dim=1, out=step.gradient)
        return loss.detach()

    def _update(self, gradient: Tensor, alike: Sequence[_Alike], epoch: int, number: int) -> None:
        """Take one step of the optimizer for the runs that have a gradient."""
        for group in alike:
            runs, own = group.runs, group.settings
            if runs.stop > len(gradient):
                break
            grad = gradient[runs]
            if own.clip is not None:
                norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
                grad = grad * (own.clip / (norm + 1e-6)).clamp(max=1.0)
            progress = (epoch + number / group.n_batches) / own.epochs
            weights, means, squares = ([t[runs]] for t in (self.weights, self.means, self.squares))
            rates = {"lr": own.rate_at(progress), "weight_decay": own.weight_decay, **_ADAM}
            step = adamw if own.optimizer == "adamw" else adam
            step(weights, [grad], means, squares, [], [group.steps], **rates)

    def _note(self, losses: Sequence[float]) -> None:
        """Add the epoch to the history of every run, and keep the weights of the best."""
        metric = self.runs[0].settings.metric
        errors = {
            part: self.rows.errors(part, self._predict(part), self.split_of_run, metric)
            for part in self.recorded
            if self.rows.parts[part].places.numel()
        }
        is_best = []
        for number, (run, loss) in enumerate(zip(self.runs, losses, strict=True)):
            own = {part: values[number] for part, values in errors.items()}
            line = Epoch(loss, own.get("train"), own.get("validation", math.nan), own.get("test"))
            is_best.append(run.note(line))
        chosen = torch.tensor(is_best)
        self.best[chosen] = self.weights[chosen]

    def _predict(self, part: str) -> Tensor:
        """Predict the rows of a part with the weights of every run, ``(runs, n, m)``."""
        places = self.rows.parts[part].places[self.split_of_run]
        layers = self.layout.split(self.weights)
        size = max(1, self.block // (self.layout.widest * len(self.runs)))
        chunks = torch.split(places, size, dim=1)
        with torch.no_grad():
            return torch.cat([forward(self.layout, layers, self.rows.x[c]) for c in chunks], dim=1)

    def _take_out_ended(self) -> Iterator[tuple[Training, RunResult]]:
        ended = [number for number, run in enumerate(self.runs) if run.ending is not None]
        if not ended:
            return
        for number in ended:
            yield self.runs[number], self._result(number)
        left = [number for number, run in enumerate(self.runs) if run.ending is None]
        self.runs = [self.runs[number] for number in left]
        self.split_of_run = [self.split_of_run[number] for number in left]
        self.weights, self.best = self.weights[left], self.best[left]
        self.means, self.squares = self.means[left], self.squares[left]

    def _result(self, number: int) -> RunResult:
        run, best = self.runs[number], self.best[number]
        try:
            scores, predictions = self._score(run, best)
        except NonFiniteError:
            # The best epoch's weights overflow on some rows: as if there had been no epoch.
            run.best_epoch, run.ending = 0, "diverged"
            best = self.layout.join(run.net.state_dict()).to(best)
            scores, predictions = self._score(run, best)
        return RunResult(
            method=run.method,
            settings=run.settings,
            history=tuple(run.history),
            best_epoch=run.best_epoch,
            ending=run.ending or "finished",
            scores=scores,
            predictions=predictions,
            weights=self.layout.name(best),
            seconds=run.seconds,
        )

    def _score(self, run: Training, weights: Tensor) -> tuple[dict[str, Scores], dict[str, Tensor]]:
        layers = self.layout.split(weights[None])

        def predict(part: Part) -> Tensor:
            x = part.x[:].flatten(1).to(weights.dtype)
            with torch.no_grad():
                blocks = torch.split(x, max(1, self.block // self.layout.widest))
                return torch.cat([forward(self.layout, layers, block[None])[0] for block in blocks])

        parts = {"validation": run.split.validation, "test": run.split.test, **run.split.more}
        return score_parts(run.split, predict, [name for name, part in parts.items() if len(part)])
