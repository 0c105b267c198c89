"""The settings that a study tries: drawn before anything runs, the same for every split."""

import zlib
from dataclasses import dataclass, replace
from typing import Any

from regaug import _random, methods
from regaug._random import Stream
from regaug.methods import Between, OneOf, Space
from regaug.training.settings import Settings

# What is searched for every method, plain training included. Batch sizes are few, because runs of
# one batch size share a stack.
COMMON: Space = {
    "learning_rate": Between(3e-4, 1e-2, log=True),
    "weight_decay": Between(1e-6, 1e-1, log=True),
    "batch_size": OneOf((16, 32, 64)),
}
# A trial that all studies begin with: no search should do worse than common sense.
FIRST: dict[str, Any] = {"learning_rate": 1e-3, "weight_decay": 1e-4, "batch_size": 32}


@dataclass(frozen=True)
class Trial:
    """One setting of a method, to be run on every split.

    Attributes:
        method: Name of the method.
        number: Its place among the trials of the method.
        settings: Settings of the training, but for the seed, which differs between splits.
        log: Whether the logarithm of the target is fitted.
    """

    method: str
    number: int
    settings: Settings
    log: bool = False


def draw_trials(
    method: str, trials: int, *, seed: int, settings: Settings, may_log: bool = False
) -> list[Trial]:
    """Draw the trials of a method.

    The common settings of a trial are the same for all methods, so that these differ in nothing
    but the augmentation. The first trial has the defaults, the next ones have what the method names
    as good starts, the others what is drawn from its space.

    ``settings`` are those of every trial, but for what is searched; with ``may_log`` every other
    trial fits the logarithm of the target.

    Example:
        >>> first, second = draw_trials("foma-rho", 2, seed=0, settings=Settings(epochs=100))
        >>> first.settings.learning_rate, first.settings.method_settings["rho"]
        (0.001, 0.9)
    """
    known = methods.get(method)
    own_stream = zlib.crc32(method.encode())
    drawn = []
    for number in range(trials):
        common = _random.numpy_generator(Stream.RECIPES, seed, number)
        recipe: dict[str, Any] = {n: choice.draw(common) for n, choice in COMMON.items()}
        if number == 0:
            recipe, own = FIRST, known.settings()
        elif number <= len(known.starts):
            own = known.settings(**known.starts[number - 1])
        else:
            rng = _random.numpy_generator(Stream.TRIALS, seed, number, own_stream)
            own = known.draw_settings(rng)
        trial = replace(settings, method_settings=own, **recipe)
        drawn.append(Trial(method, number, trial, log=may_log and number % 2 == 1))
    return drawn
