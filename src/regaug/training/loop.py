"""One training of any model, on Lightning Fabric."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from regaug import _random, formatting, methods
from regaug._checks import check_choice
from regaug.augment.foma import count_cuts, go_on_counting, list_cuts
from regaug.data.base import Part, Split
from regaug.exceptions import ArgumentTypeError, DivergedError, NonFiniteError, PlaceError
from regaug.metrics import METRICS
from regaug.samplers import BatchSampler
from regaug.training.bar import Bar
from regaug.training.checkpoint import (
    Checkpoints,
    TrainingState,
    check_configuration,
    check_weights,
    describe,
    load_optimizer,
    load_weights,
    unusable,
)
from regaug.training.limits import TrainingBatches
from regaug.training.results import Epoch, RunResult, is_best, why_end
from regaug.training.scores import own_targets, own_units, predict, recorded_rows, score_parts
from regaug.training.settings import Machine, Recorded, Settings
from regaug.training.step import AugmentedLoss, explain_divergence, make_optimizer, tiny_as_zero


def fit(
    model: nn.Module,
    data: Split,
    method: str = "erm",
    settings: Settings | None = None,
    *,
    machine: Machine | None = None,
    checkpoint: str | Path | Checkpoints | None = None,
    record: Sequence[Recorded] | Mapping[Recorded, int] = ("train", "validation", "test"),
    progress: bool = False,
) -> RunResult:
    """Train a model with a method; keep the epoch with the best validation error.

    The loss is the mean squared error in the units of the split: standardize it first
    (:func:`regaug.data.standardize`). Errors are reported in the target's own units. Under
    ``torchrun`` all its processes train together, each on its own share of the batches.

    Args:
        model: From inputs ``(n, *features)`` to predictions ``(n, m)``, or ``(n,)`` of one target;
            called ``model(*x)`` if the inputs are a tuple or a list of tensors, ``model(**x)`` if
            they are a dict. It is trained in place and has the best epoch's weights afterwards.
        data: Training, validation and test rows. Its ``pairs_within`` and ``mask`` say what must
            not be mixed.
        method: One of ``regaug.methods.names()``.
        settings: Epochs, rates, seed, and changes to the method's own settings.
        machine: Device, precision, and processes that read; the best device there is if None.
        checkpoint: A folder. The state is saved there after every epoch, and the same call goes on
            from it, to the same result as without the interruption. Or
            :class:`regaug.training.checkpoint.Checkpoints`, which may save less often, and may
            ask the training to pause.
        record: Parts whose error is in the history, or after how many epochs each is looked at;
            ``"validation"`` always is, after every epoch.
        progress: Show a progress bar with the current validation error.

    Returns:
        Scores, predictions, history and weights.

    Raises:
        DivergedError: The loss became NaN or infinite.

    Example:
        >>> from regaug.data import standardize
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> from regaug.models import MLP
        >>> split = standardize(make_manifold("sine", n=200).split(seed=0))
        >>> result = fit(MLP(1), split, "foma-rho", Settings(epochs=5))
        >>> len(result.history), result.ending
        (5, 'finished')
    """
    if not isinstance(data, Split):
        raise ArgumentTypeError(
            f"`data` must be a split, got {type(data).__name__}. Split it first: "
            "regaug.data.standardize(data.split(seed=0))."
        )
    for part in record:
        check_choice("record", part, ("train", "validation", "test"))
    machine = machine or Machine()
    fabric = machine.make_fabric()
    # Whatever draws from the global generator, restore it afterwards.
    with _random.seeded(0), tiny_as_zero():
        training = _Training(model, data, method, settings or Settings(), fabric, machine, record)
        return training.run(checkpoint, progress)


class _Training:
    """Everything that changes while a model is trained."""

    def __init__(
        self,
        model: nn.Module,
        split: Split,
        name: str,
        settings: Settings,
        fabric: Any,
        machine: Machine,
        record: Sequence[Recorded] | Mapping[Recorded, int],
    ) -> None:
        ready = methods.get(name).prepare(settings.method_settings, seed=settings.seed)
        self.name, self.settings = name, replace(settings, method_settings=ready.settings)
        self.split, self.fabric, self.model = split, fabric, model
        self.recorded = {part: _recorded_rows(split, part) for part in ("validation", *record)}
        own = record if isinstance(record, Mapping) else dict.fromkeys(record, 1)
        self.every: dict[Recorded, int] = {**own, "validation": 1}
        self.batches = TrainingBatches(split)
        groups, at = self.batches.groups, ready.at(model)
        if self.batches.has_mask and at is not None:
            raise PlaceError(
                f"`place` must be 'input' for inputs with a mask, got {ready.settings['place']!r}: "
                "what a layer makes of them has no mask."
            )
        ready.fit(split.train.x, split.train.y, groups=groups, blocks=split.blocks)
        self.augmentation = ready.augmentation
        count_cuts(self.augmentation)
        size = min(settings.batch_size, len(split.train))
        self.sampler = ready.sampler(split.train.y, size, drop_last=True, groups=groups)
        workers = machine.workers
        self.loader = _make_loader(self.batches, self.sampler, workers) if workers else None
        loss = AugmentedLoss(model, self.augmentation, at, inputs_too=ready.inputs_too)
        # Scaled gradients cannot be clipped by an optimizer that unscales them itself.
        fused = fabric.device.type in ("cpu", "cuda") and machine.precision != "16"
        self.plain_optimizer = make_optimizer(model, settings, fused=fused)
        self.module: nn.Module = loss.to(fabric.device)
        self.optimizer = self.plain_optimizer
        # One process on a CPU, at full precision, needs no wrappers, which cost every step.
        is_plain = fabric.device.type == "cpu" and fabric.world_size == 1
        self.is_wrapped = not is_plain or machine.precision != "32"
        if self.is_wrapped:
            self.module, self.optimizer = fabric.setup(loss, self.plain_optimizer)
        self.setting = {"precision": machine.precision, "processes": fabric.world_size}
        self.history: list[Epoch] = []
        self.best_epoch, self.best_weights = 0, self._weights()
        self.seconds = 0.0

    def run(self, checkpoint: str | Path | Checkpoints | None, progress: bool) -> RunResult:
        """Train to the end, from the last checkpoint on if there is one."""
        checkpoints = Checkpoints(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
        configuration: dict[str, object] = {}
        if checkpoints is not None:
            configuration = describe(self.name, self.settings, self.split) | self.setting
            self._go_on(checkpoints, configuration)
        show = progress and self.fabric.is_global_zero
        with Bar("epoch", self.settings.epochs, len(self.history), show=show) as bar:
            while (ending := why_end(len(self.history), self.best_epoch, self.settings)) is None:
                start = time.perf_counter()
                self._train_epoch(len(self.history))
                self.seconds += time.perf_counter() - start
                if checkpoints is not None and self._save(checkpoints, configuration):
                    ending = "stopped"
                    break
                bar.advance(
                    f"{self.settings.metric} {formatting.number(self.history[-1].validation)}"
                )
        load_weights(self.model, self.best_weights, source="the best epoch")
        self.model.eval()
        scored = score_parts(self.split, self._predict)
        return RunResult(
            method=self.name,
            settings=self.settings,
            history=tuple(self.history),
            best_epoch=self.best_epoch,
            ending=ending,
            scores=scored.scores,
            predictions=scored.predictions,
            weights=self.best_weights,
            seconds=self.seconds,
            predict_seconds=scored.seconds,
            cuts=list_cuts(self.augmentation),
        )

    def _go_on(self, checkpoints: Checkpoints, configuration: Mapping[str, object]) -> None:
        """Take up what the last checkpoint holds, if there is one."""
        # One of a later epoch belongs to the same training with a later pause, or without any.
        found = checkpoints.latest(self.settings.stop_after)
        if found is not None:
            file = checkpoints.path(found[0])
            state = TrainingState.read(found[1], file)
            check_configuration(state.configuration, configuration, checkpoints.folder)
            self._restore(state, file)

    def _save(self, checkpoints: Checkpoints, configuration: Mapping[str, object]) -> bool:
        """Save after an epoch if it is time for that; say whether to pause here."""
        ending = why_end(len(self.history), self.best_epoch, self.settings)
        is_over = ending is None and bool(self.fabric.broadcast(checkpoints.is_over()))
        is_needed = is_over or ending == "paused"
        if self.fabric.is_global_zero and (is_needed or checkpoints.is_due()):
            checkpoints.save(len(self.history), self._state(configuration).to_dict())
        self.fabric.barrier()
        return is_over

    def _train_epoch(self, epoch: int) -> None:
        # Every epoch has seeds of its own, so that a training can go on from its end without a
        # record of all generators; every process too, or they would all draw alike.
        seed, rank = self.settings.seed, self.fabric.global_rank
        own = _random.derive(_random.Stream.EPOCHS, seed, epoch, rank)
        self.augmentation.generator.manual_seed(own)
        _random.seed_global(_random.derive(_random.Stream.DROPOUT, seed, epoch, rank))
        self.sampler.set_epoch(epoch)
        if hasattr(self.split.train.x, "set_epoch"):  # inputs that differ from epoch to epoch
            self.split.train.x.set_epoch(epoch)
        self.model.train()
        read = self.batches.of_epoch(self.sampler) if self.loader is None else self.loader
        batches = enumerate(read)
        losses = [self._step(epoch, number, *batch) for number, batch in batches]
        self.model.eval()
        self._share_buffers()
        done = epoch + 1
        last = self.settings.epochs
        due = [part for part, n in self.every.items() if done % n == 0 or done == last]
        errors = {part: self._error(part) for part in due}
        loss = self._mean_loss(losses)
        train, test = errors.get("train"), errors.get("test")
        self.history.append(Epoch(loss, train, errors["validation"], test))
        if is_best(self.history, self.best_epoch, self.settings):
            self.best_epoch, self.best_weights = len(self.history), self._weights()

    def _step(self, epoch: int, number: int, *batch: Any) -> float:
        """Take one step of the optimizer and return the loss."""
        settings = self.settings
        progress = (epoch + number / len(self.sampler)) / settings.epochs
        self.augmentation.progress = progress
        for group in self.optimizer.param_groups:
            group["lr"] = settings.rate_at(progress)
        x, y, groups, mask = self.fabric.to_device(batch) if self.is_wrapped else batch
        self.optimizer.zero_grad()
        place = f"epoch {epoch + 1}, step {number + 1} of {len(self.sampler)}"
        try:
            loss = self.module(x, y, groups=groups, mask=mask)
        except NonFiniteError as error:  # an augmentation refuses what the layers before put out
            words = explain_divergence(self.model, place, math.nan, x, y, settings)
            raise DivergedError(words) from error
        value = loss.item()
        if not math.isfinite(value):
            raise DivergedError(explain_divergence(self.model, place, value, x, y, settings))
        if self.is_wrapped:
            self.fabric.backward(loss)
        else:
            loss.backward()
        if settings.clip is not None:
            self.fabric.clip_gradients(self.module, self.optimizer, max_norm=settings.clip)
        self.optimizer.step()
        return float(value)

    def _mean_loss(self, losses: Sequence[float]) -> float:
        """Return the mean over the steps of an epoch, of all processes: batches are of one size."""
        own = sum(losses) / len(losses)
        if self.fabric.world_size == 1:
            return own
        shared = torch.tensor(own, dtype=torch.float64, device=self.fabric.device)
        torch.distributed.all_reduce(shared)
        return shared.item() / float(self.fabric.world_size)

    def _share_buffers(self) -> None:
        """Give all processes the running statistics of the first one."""
        # Gradients are averaged, buffers are not: each process sees the batches of its own.
        if self.fabric.world_size > 1:
            for buffer in self.model.buffers():
                torch.distributed.broadcast(buffer, src=0)

    def _error(self, part: Recorded) -> float:
        rows, targets = self.recorded[part]
        prediction, metric = own_units(self.split, self._predict(rows)), self.settings.metric
        found = METRICS[metric](prediction, targets.to(prediction), pooled=self.split.pooled)
        return found.item()

    def _predict(self, part: Part) -> Tensor:
        return predict(self.model, part, self.fabric)

    def _weights(self) -> dict[str, Tensor]:
        # Before Fabric moves the model they may be on another device.
        return {name: t.detach().cpu().clone() for name, t in self.model.state_dict().items()}

    def _state(self, configuration: Mapping[str, object]) -> TrainingState:
        """Return what a checkpoint holds."""
        return TrainingState(
            configuration=configuration,
            weights=self._weights(),
            best_epoch=self.best_epoch,
            best_weights=self.best_weights,
            optimizer=self.plain_optimizer.state_dict()["state"],
            precision=self.fabric._precision.state_dict(),
            history=tuple(self.history),
            seconds=self.seconds,
            cuts=list_cuts(self.augmentation),
        )

    def _restore(self, state: TrainingState, file: Path) -> None:
        check_weights(self.model, state.best_weights, source=str(file))
        load_optimizer(self.plain_optimizer, state.optimizer, file)
        try:
            self.fabric._precision.load_state_dict(state.precision)
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise unusable(file, "`precision` must be the state of a gradient scaler.") from error
        load_weights(self.model, state.weights, source=str(file))
        self.history, self.seconds = list(state.history), state.seconds
        go_on_counting(self.augmentation, state.cuts)
        self.best_epoch, self.best_weights = state.best_epoch, dict(state.best_weights)


def _make_loader(batches: TrainingBatches, sampler: BatchSampler, workers: int) -> Iterable[Any]:
    # Without a batch size the loader asks for a whole batch of indices at once.
    return DataLoader(
        batches,
        sampler=sampler,
        batch_size=None,
        num_workers=workers,
        persistent_workers=True,
        # It draws a seed for its workers, by default from the generator that dropout uses.
        generator=_random.make_generator(),
    )


def _recorded_rows(split: Split, name: Recorded) -> tuple[Part, Tensor]:
    """Return the rows of a part that the history looks at, and their targets in own units."""
    part = split.parts[name]
    if (rows := recorded_rows(name, len(part))) is not None:
        part = part.take(rows)
    return part, own_targets(split, part)
