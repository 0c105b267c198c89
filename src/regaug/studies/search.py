"""The settings of a method that a study tries: drawn before anything runs, for every split."""

import zlib
from collections.abc import Collection
from typing import Any

from regaug import _random, methods
from regaug._random import Stream
from regaug.exceptions import ArgumentError
from regaug.methods import Method, Reach
from regaug.problems import Kind


def suit(
    method: str,
    rows: int | None = None,
    reach: Reach | None = None,
    kind: Kind = "table",
    beside: Collection[str] | None = None,
) -> Method:
    """Return a method with settings that so many training rows allow, and that act where they can.

    None knows of no limit. ``kind`` is that of the problem: for a regressor a method makes rows. Of
    its teachers it has those that stand ``beside``. A method that can act nowhere is an error.
    """
    known: Method | None
    known = methods.get_maker(method) if kind == "estimator" else methods.get(method)
    if reach is not None:
        known = known.placed(reach)
    if known is not None and beside is not None:
        known = known.taught(beside)
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
    kind: Kind = "table",
    beside: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Draw a method's own settings for so many trials.

    The first trials have what the method names as good starts, the next one has its defaults, the
    others have what is drawn from its space. Fewer trials are the first ones of more. None asks for
    more than ``rows`` training rows allow, acts out of ``reach``, or has a teacher that does not
    stand ``beside``. ``kind`` is that of the problem: for a regressor a method makes rows.

    Example:
        >>> [own["p"] for own in draw_settings("mixup", 4, seed=0)]
        [0.25, 0.4, 0.65, 1.0]
    """
    known = suit(method, rows, reach, kind, beside)
    drawn = []
    for number in range(trials):
        if number < len(known.starts):
            own = known.settings(**known.starts[number])
        elif number == len(known.starts):
            own = known.settings()
        else:
            stream = zlib.crc32(method.encode())
            own = known.draw_settings(_random.numpy_generator(Stream.TRIALS, seed, number, stream))
        drawn.append(own)
    return drawn
