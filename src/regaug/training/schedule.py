"""Quantities that follow the progress of a training."""

import math

from regaug.training.settings import Schedule


def rate_factor(schedule: Schedule, progress: float) -> float:
    """Return what the learning rate is multiplied by when so much of training is done.

    Example:
        >>> rate_factor("cosine", 0.0), rate_factor("cosine", 0.5), rate_factor("constant", 0.5)
        (1.0, 0.5, 1.0)
    """
    if schedule == "constant":
        return 1.0
    return round(0.5 * (1.0 + math.cos(math.pi * progress)), 15)
