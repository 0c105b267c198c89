"""A trainer and its module: how far they are, what they must allow, and what is put in them."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from regaug.augment import Augmentation
from regaug.exceptions import ArgumentError

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

_STEP = "training_step"
Undo = Callable[[], None]


def progress_of(trainer: "Trainer", batch: int) -> float:
    """Return the share of training that is done at this batch of the epoch.

    By epochs or by steps, whichever ends training first; 0 if neither does.
    """
    done, epochs = 0.0, trainer.max_epochs or -1
    if epochs > 0:
        batches = trainer.num_training_batches
        within = batch / batches if math.isfinite(batches) else 0.0
        done = (trainer.current_epoch + within) / epochs
    if trainer.max_steps > 0:
        done = max(done, trainer.global_step / trainer.max_steps)
    return min(done, 1.0)


def check_end(augmentation: Augmentation[Any], trainer: "Trainer") -> None:
    """Refuse to anneal over a training that has no end."""
    has_end = (trainer.max_epochs or -1) > 0 or trainer.max_steps > 0
    if has_end or augmentation.total_steps is not None:
        return
    if any(part.anneal is not None for part in _parts(augmentation)):
        raise ArgumentError(
            "`anneal` is a share of training, so the trainer must know its end: give it max_epochs "
            "or max_steps, or the augmentation total_steps, got none of them."
        )


def check_weight(augmentation: Augmentation[Any], module: "LightningModule") -> None:
    """Refuse to weight a loss that does not go through our hands."""
    if augmentation.weighs and not module.automatic_optimization:
        raise ArgumentError(
            '`weight` must be "one" where the training step calls the optimizer itself '
            "(automatic_optimization=False): the loss is not the callback's to multiply there."
        )


def check_rows_stay(augmentation: Augmentation[Any], place: str | Sequence[str]) -> None:
    """Refuse at a layer what makes more or fewer rows of a batch."""
    for part in _parts(augmentation):
        for option, is_on in (("append", part.append), ("paired", part.paired)):
            if is_on:
                raise ArgumentError(
                    f"`{option}` changes the number of rows, which only works at the inputs "
                    f"(place=None), got place={place!r}: when a layer runs, the training step has "
                    "its targets already."
                )


def _parts(augmentation: Augmentation[Any]) -> Iterator[Augmentation[Any]]:
    """Go through an augmentation and those it is made of."""
    return (part for part in augmentation.modules() if isinstance(part, Augmentation))


def wrap_training_step(module: "LightningModule", act: Callable[..., Any]) -> Undo:
    """Have ``act(plain, ...)`` called for ``plain(...)``, the step; return the way back."""
    plain = module.training_step
    own = module.__dict__.get(_STEP)  # most have theirs from their class

    # A function and no object of ours: a copy of the module must not copy the callback.
    @functools.wraps(plain)
    def training_step(*args: Any, **kwargs: Any) -> Any:
        return act(plain, *args, **kwargs)

    def undo() -> None:
        if own is None:
            module.__dict__.pop(_STEP, None)
        else:
            module.__dict__[_STEP] = own

    # Lightning looks here for the names of the step's arguments, and no deeper.
    training_step.__wrapped__ = getattr(plain, "__wrapped__", plain)
    module.__dict__[_STEP] = training_step
    return undo


def replace_loader(trainer: "Trainer", make: Callable[[Any, int], Any]) -> Undo:
    """Have ``make(loader, epoch)`` called on the train loader when it is made; return the way back.

    It is an error if the trainer would put a sampler of its own into the new loader.
    """
    connector = trainer._accelerator_connector
    if connector.use_distributed_sampler and connector.is_distributed:
        raise ArgumentError(
            "`sampler` needs Trainer(use_distributed_sampler=False) when several processes train: "
            "Lightning would put a sampler of its own in its place. Each process then takes a "
            "share of this sampler's batches; validation rows are seen by every process."
        )
    fit_loop: Any = trainer.fit_loop
    source = fit_loop._data_source  # the loader, or the module that makes it
    plain = source.dataloader

    source.dataloader = lambda: make(plain(), fit_loop.epoch_progress.current.processed)
    return lambda: source.__dict__.pop("dataloader", None)
