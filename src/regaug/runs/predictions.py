"""Predictions as text, short enough for every run of a study to keep its own."""

import base64
import re

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

# An array and no tensor: those travel between processes through shared files.
Predictions = NDArray[np.float32]

# More numbers than that are not kept of a run: thousands of runs are held in memory at once.
MOST_NUMBERS = 100_000
_SHAPE = re.compile(r"([1-9]\d{0,8})x([1-9]\d{0,8}):")


def to_text(values: Predictions) -> str:
    """Return float32 values ``(n, m)`` as text: their shape, and their bytes in base64.

    Example:
        >>> to_text(np.float32([[1.0], [2.0]]))
        '2x1:AACAPwAAAEA='
    """
    content = values.astype("<f4").tobytes()
    return f"{values.shape[0]}x{values.shape[1]}:{base64.b64encode(content).decode()}"


def from_text(text: str) -> Predictions:
    """Return the values that :func:`to_text` wrote down; a text that is none is an error."""
    found = _SHAPE.match(text)
    if found is None:
        raise ValueError("predictions must begin with their shape")
    n, m = int(found[1]), int(found[2])
    content = base64.b64decode(text[found.end() :], validate=True)
    if len(content) != 4 * n * m:
        raise ValueError(f"{n} x {m} predictions must be {4 * n * m} bytes, got {len(content)}")
    values = np.frombuffer(content, "<f4").astype(np.float32).reshape(n, m)
    if not np.isfinite(values).all():
        raise ValueError("predictions must be finite")
    return values


def shorten(values: Tensor) -> Predictions:
    """Return values as float32; what that cannot hold becomes the largest that it can."""
    most = float(np.finfo(np.float32).max)
    return values.double().clamp(-most, most).numpy().astype(np.float32)
