"""Where x and y are in a batch, and the loss in what a training step returns."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from regaug.exceptions import ArgumentTypeError

Get = Callable[[Any], tuple[Tensor, Tensor]]
Set = Callable[[Any, Tensor, Tensor], Any]


def get_pair(batch: Any) -> tuple[Tensor, Tensor]:
    """Return x and y of a batch ``(x, y)``."""
    return as_pair(
        batch,
        "A training batch",
        "Say where they are: AugmentCallback(..., get=lambda batch: (x, y), set=lambda batch, x, "
        "y: batch), with the batch's x and y, and a new batch.",
    )


def set_pair(batch: Any, x: Tensor, y: Tensor) -> Any:
    """Return a batch like this one with another x and y."""
    if hasattr(batch, "_fields"):  # a named tuple takes its items one by one
        return type(batch)(x, y)
    return type(batch)((x, y))


def as_pair(pair: Any, name: str, way_out: str) -> tuple[Tensor, Tensor]:
    """Return ``pair`` if it is two tensors."""
    if isinstance(pair, tuple | list) and len(pair) == 2:
        x, y = pair
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            return x, y
    came = type(pair).__name__
    if isinstance(pair, tuple | list):
        came = f"{came} of {', '.join(type(item).__name__ for item in pair) or 'nothing'}"
    raise ArgumentTypeError(f"{name} must be (x, y), two tensors, got a {came}. {way_out}")


def scale_loss(output: Any, weight: float) -> Any:
    """Multiply the loss in what a training step returned: a tensor, or a dict with ``"loss"``."""
    if weight == 1.0 or output is None:
        return output
    if isinstance(output, Mapping):
        return {**output, "loss": weight * output["loss"]}
    return weight * output
