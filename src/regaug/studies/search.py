"""The settings of a method that a study tries: drawn before anything runs, for every split."""

import zlib
from typing import Any

from regaug import _random, methods
from regaug._random import Stream
from regaug.methods import Method
from regaug.problems import Kind


def find_method(name: str, kind: Kind = "table") -> Method:
    """Return a method as a study of such a problem uses it: for a regressor it makes rows."""
    return methods.get_maker(name) if kind == "estimator" else methods.get(name)


def draw_settings(
    method: str, trials: int, *, seed: int, rows: int | None = None, kind: Kind = "table"
) -> list[dict[str, Any]]:
    """Draw a method's own settings for so many trials.

    The first trials have what the method names as good starts, the next one has its defaults, the
    others have what is drawn from its space. Fewer trials are the first ones of more. None asks for
    more than ``rows`` training rows allow.

    Example:
        >>> [own["p"] for own in draw_settings("mixup", 4, seed=0)]
        [0.25, 0.4, 0.65, 1.0]
    """
    known = find_method(method, kind)
    known = known if rows is None else known.suited(rows)
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
