"""Runs of one form, trained together."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from regaug.augment.foma import list_cuts
from regaug.data.base import Part
from regaug.exceptions import NonFiniteError
from regaug.training.deadline import Until
from regaug.training.results import Epoch, RunResult
from regaug.training.scores import Scored, score_parts
from regaug.training.settings import Recorded
from regaug.training.stacked.augmentation import StackAugmentation
from regaug.training.stacked.batches import epoch_batches
from regaug.training.stacked.halving import Halving
from regaug.training.stacked.mixed import MixedStep
from regaug.training.stacked.net import Layout, Learner, predict
from regaug.training.stacked.optimizer import StackedAdam
from regaug.training.stacked.rows import StackedRows
from regaug.training.stacked.stages import Weights
from regaug.training.stacked.step import StepAugmentation
from regaug.training.stacked.training import Training


class Stack:
    """Runs of one form (:attr:`Training.form`), trained together.

    Runs with more steps in an epoch come first, so that those which take part in a step are always
    the first ones. The parts in ``recorded`` are looked at after so many epochs each. A run that
    has ended leaves the stack; those that are behind end early if their settings allow it
    (:class:`regaug.training.stacked.halving.Halving`). What is looked at after an epoch, and kept
    if it is the best, is a running mean of the weights if the settings ask for it. ``block``
    numbers of a hidden layer are held at a time when a part is predicted (32 MB).
    """

    def __init__(
        self,
        runs: Sequence[Training],
        dtype: torch.dtype,
        recorded: Mapping[Recorded, int],
        *,
        block: int = 2**23,
    ) -> None:
        self.runs = sorted(runs, key=lambda run: (-len(run.sampler), repr(run.rates)))
        self.recorded, self.block = recorded, block
        may_end = runs[0].has_validation and any(run.settings.halve for run in runs)
        self._halving = Halving() if may_end else None
        # With groundwork and without it a split is not the same.
        first = {run.learns: run for run in reversed(runs)}
        self.rows = StackedRows(
            [run.split for run in first.values()], dtype, [run.groundwork for run in first.values()]
        )
        numbers = list(first)
        self.split_of_run = [numbers.index(run.learns) for run in self.runs]
        self.layout = Layout.of(runs[0].net)
        self.weights = self.layout.stack([run.net.state_dict() for run in self.runs], dtype)
        self.best = [weight.clone() for weight in self.weights]
        self.means, self.squares = ([torch.zeros_like(w) for w in self.weights] for _ in range(2))
        has_average = any(run.settings.average for run in runs)
        self.average = [weight.clone() for weight in self.weights] if has_average else self.weights
        self._start()

    def _start(self) -> None:
        """Get ready to train the runs that are in the stack."""
        self.augmentation = StackAugmentation(self.runs)
        self._scale = self._stack_scales()
        self.optimizer = StackedAdam(self.weights, self.means, self.squares)
        self._learner: Learner | None = None

    def train(
        self, *, until: Until | None = None, tell: Callable[[], None] | None = None
    ) -> Iterator[tuple[Training, RunResult]]:
        """Train all runs to their ends; give each with its result when it has ended.

        After ``until``, in seconds since 1970, they end with the epoch that is under way. ``tell``
        is called after every epoch.
        """
        epoch = 0
        while self.runs:
            start = time.perf_counter()
            losses = self.train_epoch(epoch)
            self._take_average(epoch)
            self._note(losses, epoch)
            if self._halving is not None:
                self._halving.end(self.runs)
            if until is not None and time.time() > until:
                for run in self.runs:
                    run.ending = run.ending or "stopped"
            seconds = (time.perf_counter() - start) / len(self.runs)
            for run in self.runs:
                run.seconds += seconds
            epoch += 1
            if tell is not None:
                tell()
            yield from self._take_out_ended()

    def train_epoch(self, epoch: int) -> list[float]:
        """Take the steps of one epoch and return the mean loss of every run."""
        self.augmentation.start_epoch(epoch)
        self.optimizer.start_epoch(self.runs, epoch)
        totals = torch.zeros(len(self.runs), dtype=torch.float64)
        number = 0
        for batches in epoch_batches(self.runs, self.split_of_run, self.rows, epoch):
            for step in self.augmentation.steps(batches):
                loss, gradient = self._loss_and_gradient(step)
                self.optimizer.step(gradient, epoch, number)
                totals[: len(loss)] += loss
                number += 1
        steps = torch.tensor([len(run.sampler) for run in self.runs])
        rest = torch.tensor([run.groundwork.rest for run in self.runs], dtype=torch.float64)
        return (totals / steps * rest.square()).tolist()  # in the scale of the targets

    def _loss_and_gradient(self, step: StepAugmentation | MixedStep) -> tuple[Tensor, Weights]:
        """Return the loss of every run that takes part, ``(runs,)``, and the gradient."""
        active = len(step.x)
        if self._learner is None or len(self._learner) != active:
            self._learner = Learner(self.layout, [weight[:active] for weight in self.weights])
        x = step.x if self._scale is None else step.x * self._scale[:active]
        loss = self._learner.loss_and_gradient(x, step)
        if step.is_lost is not None:
            loss.masked_fill_(step.is_lost, math.nan)
        return loss, self._learner.gradient

    def _note(self, losses: Sequence[float], epoch: int) -> None:
        """Add the epoch to the history of every run, and keep the weights of the best."""
        metric = self.runs[0].settings.metric
        looked_at = [part for part, every in self.recorded.items() if epoch % every == 0]
        errors = {
            part: self.rows.errors(part, self._predict(part), self.split_of_run, metric)
            for part in looked_at
            if self.rows.parts[part].places.numel()
        }
        is_best = []
        for number, (run, loss) in enumerate(zip(self.runs, losses, strict=True)):
            own = {part: values[number] for part, values in errors.items()}
            line = Epoch(loss, own.get("train"), own.get("validation", math.nan), own.get("test"))
            is_best.append(run.note(line))
        chosen = torch.tensor(is_best).nonzero().squeeze(1)
        for best, weight in zip(self.best, self.average, strict=True):
            best[chosen] = weight[chosen]

    def _predict(self, part: str) -> Tensor:
        """Predict the rows of a part with the weights of every run, ``(runs, n, m)``."""
        places = self.rows.parts[part].places[self.split_of_run]
        stages = self.layout.stages(self.average)
        size = max(1, self.block // (self.layout.widest * len(self.runs)))
        found = []
        with torch.no_grad():
            for chunk in torch.split(places, size, dim=1):
                x = self.rows.x[chunk]
                found.append(predict(stages, x if self._scale is None else x * self._scale))
        return torch.cat(found, dim=1)

    def _stack_scales(self) -> Tensor | None:
        """Return the factors of the columns of every run, ``(runs, 1, d)``; None if all are 1."""
        scales, like = [run.groundwork.scale for run in self.runs], self.rows.x
        if all(own is None for own in scales):
            return None
        ones = like.new_ones(like.shape[1])
        return torch.stack([ones if own is None else own.to(like) for own in scales])[:, None]

    def _take_average(self, epoch: int) -> None:
        """Let the weights after an epoch enter the running mean of each run."""
        if self.average is self.weights:
            return
        # At first it is the plain mean: there is nothing before the first epoch.
        kept = [min(run.settings.average, epoch / (epoch + 1)) for run in self.runs]
        new = 1.0 - torch.tensor(kept, dtype=self.weights[0].dtype)
        for average, weight in zip(self.average, self.weights, strict=True):
            average.lerp_(weight, new.view(-1, *[1] * (weight.ndim - 1)))

    def _take_out_ended(self) -> Iterator[tuple[Training, RunResult]]:
        ended = [number for number, run in enumerate(self.runs) if run.ending is not None]
        if not ended:
            return
        for number in ended:
            yield self.runs[number], self._result(number)
        left = [number for number, run in enumerate(self.runs) if run.ending is None]
        self.runs = [self.runs[number] for number in left]
        self.split_of_run = [self.split_of_run[number] for number in left]
        is_same = self.average is self.weights
        self.weights, self.best, self.means, self.squares, self.average = (
            [part[left] for part in whole]
            for whole in (self.weights, self.best, self.means, self.squares, self.average)
        )
        self.average = self.weights if is_same else self.average
        if self.runs:
            self._start()

    def _result(self, number: int) -> RunResult:
        run, best = self.runs[number], [weight[number : number + 1] for weight in self.best]
        try:
            scored = self._score(run, best)
        except NonFiniteError:
            # The best epoch's weights overflow on some rows: as if there had been no epoch.
            run.best_epoch, run.ending = 0, "diverged"
            best = self.layout.stack([run.net.state_dict()], best[0].dtype)
            scored = self._score(run, best)
        return RunResult(
            method=run.method,
            settings=run.settings,
            history=tuple(run.history),
            best_epoch=run.best_epoch,
            ending=run.ending or "finished",
            scores=scored.scores,
            predictions=scored.predictions,
            weights=run.groundwork.fold(self.layout.name(best, 0), run.net.form),
            seconds=run.seconds,
            predict_seconds=scored.seconds,
            cuts=list_cuts(run.augmentation),
        )

    def _score(self, run: Training, weights: Weights) -> Scored:
        stages = self.layout.stages(weights)

        def predict_part(part: Part) -> Tensor:
            x, scale = part.x[:].flatten(1).to(weights[0].dtype), run.groundwork.scale
            scaled = x if scale is None else x * scale.to(x)
            with torch.no_grad():
                blocks = torch.split(scaled, max(1, self.block // self.layout.widest))
                found = torch.cat([predict(stages, block[None])[0] for block in blocks])
            return run.groundwork.finish(x, found)

        parts = {"validation": run.split.validation, "test": run.split.test, **run.split.more}
        names = [name for name, part in parts.items() if len(part)]
        return score_parts(run.split, predict_part, names)
