"""Batches of several tensors: tuples, lists and dicts of them, as joint rows and back."""

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from regaug.augment.layout import keep_layout
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.precision import cast as cast_to

# A tensor, or a tuple, list or dict of batches with equally many rows.
Batch: TypeAlias = Tensor | Sequence[Any] | Mapping[Any, Any]
B = TypeVar("B", bound=Batch)


class Joined:
    """The tensors of a batch side by side, as rows, and the way back to its form.

    Whatever is done to the rows is done to all tensors alike: they share one draw, and methods that
    decompose a batch, or measure distances, see all of its columns.

    Args:
        name: What the batch is called in an error.
        batch: A tensor, or tensors ``(n,)`` or ``(n, *features)`` in a tuple, a list or a dict.

    Attributes:
        rows: ``(n, columns)``, the tensors in their order; a tensor by itself as it is.
    """

    def __init__(self, name: str, batch: Batch) -> None:
        self._batch = batch
        self._tensors = list(_find_tensors(name, batch))
        self.rows = batch if isinstance(batch, Tensor) else _join(name, self._tensors)

    def back(self, rows: Tensor) -> Any:
        """Return new rows, more or fewer perhaps, in the form of the batch."""
        if rows is self.rows:
            return self._batch
        if isinstance(self._batch, Tensor):
            return rows
        widths = [tensor[0].numel() for _, tensor in self._tensors]
        new = iter(
            keep_layout(cast_to(columns.reshape(len(rows), *old.shape[1:]), old.dtype), old)
            for columns, (_, old) in zip(
                rows.split_with_sizes(widths, 1), self._tensors, strict=True
            )
        )
        return _rebuild(self._batch, new)


def join(name: str, batch: Batch) -> Tensor:
    """Return the tensors of a batch side by side; see :class:`Joined`."""
    return Joined(name, batch).rows


def count_rows(batch: Batch) -> int:
    """Return the number of rows of a batch."""
    return len(next(_find_tensors("batch", batch))[1])


def list_tensors(name: str, batch: object) -> list[tuple[str, Tensor]]:
    """Return the tensors of a batch in their order, each with what it is called in an error."""
    return list(_find_tensors(name, batch))


def map_tensors(function: Callable[[Tensor], Tensor], batch: Batch) -> Any:
    """Return a batch of the same form with what a function makes of each tensor.

    Example:
        >>> map_tensors(torch.neg, {"a": torch.tensor([1.0]), "b": (torch.tensor([2.0]),)})
        {'a': tensor([-1.]), 'b': (tensor([-2.]),)}
    """
    new = iter([function(tensor) for _, tensor in _find_tensors("batch", batch)])
    return _rebuild(batch, new)


def replace_item(items: Any, key: Any, value: object) -> Any:
    """Return a tuple, a list or a dict with another item; a named tuple stays one."""
    if isinstance(items, MutableMapping):
        new = copy.copy(items)
        new[key] = value
        return new
    if isinstance(items, Mapping):
        return {**items, key: value}
    values = list(items)
    values[key] = value
    return type(items)(*values) if hasattr(items, "_fields") else type(items)(values)


def _find_tensors(name: str, batch: object) -> Iterator[tuple[str, Tensor]]:
    """Go through the tensors of a batch, each with what it is called."""
    if isinstance(batch, Tensor):
        yield name, batch
    elif isinstance(batch, PackedSequence):
        raise ArgumentTypeError(
            f"`{name}` must be padded, got a packed sequence, whose rows are the time steps of "
            "several samples. Pad it with torch.nn.utils.rnn.pad_packed_sequence first."
        )
    elif isinstance(batch, Mapping):
        for key, item in batch.items():
            yield from _find_tensors(f"{name}[{key!r}]", item)
    elif isinstance(batch, list | tuple):
        for number, item in enumerate(batch):
            yield from _find_tensors(f"{name}[{number}]", item)
    else:
        raise ArgumentTypeError(
            f"`{name}` must be a torch.Tensor, or a tuple, a list or a dict of them, got "
            f"{type(batch).__name__}. Convert numbers with torch.as_tensor, and leave out of the "
            "call what is no number: as_collate_fn(get=..., set=...) says how in a loader."
        )


def _join(name: str, tensors: list[tuple[str, Tensor]]) -> Tensor:
    if not tensors:
        raise ArgumentError(f"`{name}` must hold at least one tensor, got none.")
    for path, tensor in tensors:
        if not tensor.is_floating_point():
            raise ArgumentTypeError(
                f"`{path}` must hold floating-point numbers, got {tensor.dtype}. Numbers are "
                "converted with .float(). Codes such as token ids have nothing between them: act "
                'behind the layer that reads them, augment.at(model, "embedding")(x, y).'
            )
        if not tensor.ndim or not tensor.numel():
            shape = tuple(tensor.shape)
            raise ArgumentError(f"`{path}` must have rows and not be empty, got shape {shape}.")
    sizes = {path: len(tensor) for path, tensor in tensors}
    if len(set(sizes.values())) > 1:
        came = ", ".join(f"{size} in `{path}`" for path, size in sizes.items())
        raise ArgumentError(f"`{name}` must have equally many rows in all its tensors, got {came}.")
    rows = [tensor.reshape(len(tensor), -1) for _, tensor in tensors]
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)


def _rebuild(batch: B, new: Iterator[Tensor]) -> B:
    """Return a batch of the same form with the next of some tensors for each of its own."""
    made: Any = batch
    if isinstance(batch, Tensor):
        made = next(new)
    elif isinstance(batch, Mapping):
        for key in batch:
            made = replace_item(made, key, _rebuild(batch[key], new))
    else:
        for number, item in enumerate(cast(Sequence[Any], batch)):
            made = replace_item(made, number, _rebuild(item, new))
    return cast(B, made)
