"""Inputs in memory that are several tensors, and what one tensor and several have in common."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regaug.augment.structures import Batch, list_tensors, map_tensors, replace_item
from regaug.data.lazy import Index, Inputs, Places, Subset
from regaug.exceptions import ArgumentError


class Several:
    """Inputs that are several tensors, in a tuple, a list or a dict: one row of each is a sample.

    A network is called with them as its arguments: ``model(*x)``, or ``model(**x)`` of a dict.

    Args:
        form: The tensors ``(n, *features)`` or ``(n,)``, with equally many rows; or one tensor that
            several splits have in common, so that it is sent to a worker once.

    Example:
        >>> pairs = Several({"drug": torch.zeros(4, 3), "protein": torch.ones(4, 2, 5)})
        >>> len(pairs), pairs.shape, pairs[:2]["protein"].shape
        (4, (4, 13), torch.Size([2, 2, 5]))
    """

    def __init__(self, form: Batch) -> None:
        self.form = form
        tensors = list_tensors("x", form)
        if not tensors:
            raise ArgumentError("`x` must hold at least one tensor, got none.")
        first, n = tensors[0][0], tensors[0][1].shape[:1]
        for name, tensor in tensors:
            if not tensor.ndim or tensor.shape[:1] != n:
                raise ArgumentError(
                    f"`{name}` must have a row for every sample, as many as `{first}`, got shapes "
                    f"{tuple(tensor.shape)} and {tuple(tensors[0][1].shape)}."
                )
        self._tensors = [tensor for _, tensor in tensors]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all of their numbers side by side, ``(n, columns)``; that of one as it is."""
        if isinstance(self.form, Tensor):
            return tuple(self.form.shape)
        return len(self), sum(tensor.shape[1:].numel() for tensor in self._tensors)

    def __len__(self) -> int:
        return len(self._tensors[0])

    def __getitem__(self, index: Index) -> Any:
        """Return the tensors of some samples, or of one for an int, in their form."""
        return map_tensors(lambda tensor: tensor[index], self.form)

    def take(self, rows: Places) -> "Tensor | Several":
        """Return some of the samples."""
        return as_inputs(self[rows])  # type: ignore[return-value]  # in memory

    def __reduce__(self) -> tuple[object, ...]:
        # Tensors would travel between processes through shared files; arrays travel as they are.
        return _from_arrays, (map_tensors(Tensor.numpy, self.form),)  # type: ignore[arg-type]


def _from_arrays(form: Any) -> Several:
    return Several(_as_tensors(form))


def _as_tensors(form: Any) -> Any:
    if isinstance(form, np.ndarray):
        return torch.from_numpy(form)
    keys = list(form) if isinstance(form, Mapping) else range(len(form))
    for key in keys:
        form = replace_item(form, key, _as_tensors(form[key]))
    return form


def as_inputs(x: object) -> Tensor | Inputs:
    """Return inputs as a part has them: several tensors as :class:`Several`, all else as it is."""
    return Several(x) if isinstance(x, tuple | list | dict) else x  # type: ignore[return-value]


def take_inputs(x: Tensor | Inputs, rows: Places) -> Tensor | Inputs:
    """Return the inputs of some samples; what is read when it is asked for stays so."""
    if isinstance(x, Tensor):
        return x[rows]
    return x.take(rows) if isinstance(x, Several) else Subset(x, rows)


def in_memory(x: Tensor | Inputs) -> Tensor | Several | None:
    """Return inputs that are in memory, as tensors of their own; None if they have to be read."""
    if isinstance(x, Tensor | Several):
        return x
    # Some rows of what several splits share.
    if isinstance(x, Subset) and (whole := in_memory(x.inputs)) is not None:
        return take_inputs(whole, x.rows)  # type: ignore[return-value]  # in memory as well
    return None


def is_numeric(x: Tensor | Inputs) -> bool:
    """Tell whether all inputs are floating-point numbers, so that there is something between."""
    tensors = list_tensors("x", x if isinstance(x, Tensor) else x[:1])
    return all(tensor.is_floating_point() for _, tensor in tensors)


def digest_inputs(x: Tensor | Inputs, start: int = 0) -> int:
    """Return a checksum of all inputs; those of a data set that is read lazily were noted.

    What has to be read and was not is known by its shape: reading it all takes too long.
    """
    if isinstance(x, Subset) and (known := getattr(x.inputs, "digests", None)) is not None:
        return zlib.crc32(known[x.rows].tobytes(), start)
    if (known := getattr(x, "digests", None)) is not None:
        return zlib.crc32(known.tobytes(), start)
    if (held := in_memory(x)) is None:
        return zlib.crc32(f"{tuple(x.shape)}".encode(), start)
    for _, tensor in list_tensors("x", held if isinstance(held, Tensor) else held.form):
        start = zlib.crc32(tensor.contiguous().numpy().tobytes(), start)
    return start
