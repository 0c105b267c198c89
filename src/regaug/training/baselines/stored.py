"""Checks of what was stored: it comes from a file that nobody vouches for."""

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

from regaug._files import entry
from regaug.exceptions import DataError

# Larger numbers do not come from data, and products of them are infinite.
_LARGEST = 1e100


def check_stored(is_right: object, name: str, must: str) -> None:
    """Raise a ``DataError`` unless something holds."""
    if not is_right:
        raise DataError(f"`{name}` must {must}.")


def check_keys(state: object, *names: str) -> Mapping[str, object]:
    """Return a state if it has these entries and no others."""
    is_right = isinstance(state, Mapping) and set(state) == set(names)
    check_stored(is_right, "state", f"have the entries {', '.join(names)}")
    return cast("Mapping[str, object]", state)


def stored_tensor(
    state: Mapping[str, object], name: str, dtype: torch.dtype, shape: Sequence[int | None]
) -> Tensor:
    """Return a tensor of this dtype and shape, of numbers that can be added and multiplied.

    None stands for any length.
    """
    tensor = entry(state, name, Tensor)
    is_plain = tensor.layout is torch.strided and tensor.device.type == "cpu"
    check_stored(is_plain and tensor.dtype == dtype, name, f"be a tensor of {dtype}")
    is_shape = tensor.ndim == len(shape) and all(
        length == wanted or wanted is None
        for length, wanted in zip(tensor.shape, shape, strict=True)
    )
    words = ", ".join("n" if length is None else str(length) for length in shape)
    check_stored(is_shape, name, f"have the shape ({words}), got {tuple(tensor.shape)}")
    is_number = tensor.double().abs() <= _LARGEST  # NaN is not
    check_stored(is_number.all(), name, f"be finite, and at most {_LARGEST:g} in size")
    return tensor.detach()
