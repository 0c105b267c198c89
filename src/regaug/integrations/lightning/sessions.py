"""What stands around a call of a trainer in a study: silence, a seed, an end by Ctrl-C."""

import logging
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from regaug import _random


def run_trainer(do: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Call ``fit``, ``validate`` or ``test`` of a trainer; a second Ctrl-C ends that as any other.

    Lightning would end the process in its place.
    """
    try:
        return do(*given, **options)
    except SystemExit as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


@contextmanager
def quiet() -> Iterator[None]:
    """Let Lightning say errors only, for a while: what it says of one run it says of hundreds."""
    names = ("lightning", "lightning.pytorch", "lightning.fabric", "pytorch_lightning")
    loggers = [logging.getLogger(name) for name in (*names, "lightning_fabric")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(lightning|pytorch_lightning|lightning_fabric)")
        for words in ("does not have many workers", "'pin_memory' argument"):
            warnings.filterwarnings("ignore", message=f".*{words}")
        warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed all global generators for a while: a module or its loaders may draw from any."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    with _random.seeded(seed):
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002
