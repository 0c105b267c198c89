"""What follows the progress of a training: the learning rate, the best epoch, the end."""

import math
from collections.abc import Sequence

from regaug.metrics import is_better
from regaug.training.results import Ending, Epoch
from regaug.training.settings import Schedule, Settings


def rate_factor(schedule: Schedule, progress: float) -> float:
    """Return what the learning rate is multiplied by when so much of training is done."""
    if schedule == "constant":
        return 1.0
    return round(0.5 * (1.0 + math.cos(math.pi * progress)), 15)


def is_best(history: Sequence[Epoch], best_epoch: int, settings: Settings) -> bool:
    """Tell whether the last epoch has a better validation error than the best one before it."""
    best = history[best_epoch - 1].validation if best_epoch else math.nan
    return is_better(settings.metric, history[-1].validation, best)


def why_end(done: int, best_epoch: int, settings: Settings) -> Ending | None:
    """Return why there is no further epoch when so many are done; None if there is one."""
    if done >= settings.epochs:
        return "finished"
    if settings.patience is not None and done - best_epoch >= settings.patience:
        return "early"
    return None
