"""How far a trainer is, and what an augmentation needs of it."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from regaug.augment import Augmentation
from regaug.exceptions import ArgumentError

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


def progress_of(trainer: "Trainer", batch: int) -> float:
    """Return the share of training that is done at this batch of the epoch.

    By epochs or by steps, whichever ends training first; 0 if neither does.
    """
    done = 0.0
    if _max_epochs(trainer) > 0:
        batches = trainer.num_training_batches
        within = batch / batches if math.isfinite(batches) else 0.0
        done = (trainer.current_epoch + within) / _max_epochs(trainer)
    if trainer.max_steps > 0:
        done = max(done, trainer.global_step / trainer.max_steps)
    return min(done, 1.0)


def check_end(augmentation: Augmentation[Any], trainer: "Trainer") -> None:
    """Refuse to anneal over a training that has no end."""
    if _max_epochs(trainer) > 0 or trainer.max_steps > 0:
        return
    if any(part.anneal is not None for part in _parts(augmentation)):
        raise ArgumentError(
            "`anneal` is a share of training, so the trainer must know its end: give it max_epochs "
            "or max_steps, got neither."
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


def _max_epochs(trainer: "Trainer") -> int:
    return trainer.max_epochs or -1


def _parts(augmentation: Augmentation[Any]) -> Iterator[Augmentation[Any]]:
    """Go through an augmentation and those it is made of."""
    return (part for part in augmentation.modules() if isinstance(part, Augmentation))
