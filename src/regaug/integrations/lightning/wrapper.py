"""Take the place of a module's training step or a trainer's train loader, and give it back."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from regaug.exceptions import ArgumentError

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

_STEP = "training_step"
Undo = Callable[[], None]


def wrap_training_step(module: "LightningModule", act: Callable[..., Any]) -> Undo:
    """Have ``act(plain, batch, ...)`` called instead of ``plain(batch, ...)``; return the way back.

    ``plain`` is the module's training step.
    """
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

    Raises:
        ArgumentError: The trainer would put a sampler of its own into the new loader.
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

    def dataloader() -> Any:
        return make(plain(), fit_loop.epoch_progress.current.processed)

    source.dataloader = dataloader

    def undo() -> None:
        source.__dict__.pop("dataloader", None)

    return undo
