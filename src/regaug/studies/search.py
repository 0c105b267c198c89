"""The settings of a method that a study tries: drawn before anything runs, for every split."""

import zlib
from typing import Any

from regaug import _random, methods
from regaug._random import Stream
from regaug.exceptions import ArgumentError
from regaug.methods import Method, Reach


def suit(method: str, rows: int | None, reach: Reach | None) -> Method:
    """Return a method with settings that so many training rows allow, and that act where they can.

    None knows of no limit. A method that can act nowhere is an error.
    """
    known: Method | None = methods.get(method)
    if reach is not None and known is not None:
        known = known.placed(reach)
    if known is None:
        raise ArgumentError(f"`method` must be able to act on the problem, got {method!r}.")
    return known if rows is None else known.suited(rows)


def draw_settings(
    method: str,
    trials: int,
    *,
    seed: int,
    rows: int | None = None,
    reach: Reach | None = None,
) -> list[dict[str, Any]]:
    """Draw a method's own settings for so many trials.

    The first trial has the defaults, the next ones have what the method names as good starts, the
    others what is drawn from its space. Fewer trials are the first ones of more. None asks for more
    than ``rows`` training rows allow, or acts out of ``reach``.

    Example:
        >>> [own["rho"] for own in draw_settings("foma-rho", 1, seed=0)]
        [0.9]
    """
    known = suit(method, rows, reach)
    drawn = []
    for number in range(trials):
        if number == 0:
            own = known.settings()
        elif number <= len(known.starts):
            own = known.settings(**known.starts[number - 1])
        else:
            stream = zlib.crc32(method.encode())
            own = known.draw_settings(_random.numpy_generator(Stream.TRIALS, seed, number, stream))
        drawn.append(own)
    return drawn
