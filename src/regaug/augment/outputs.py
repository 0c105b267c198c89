"""What a layer puts out: which of several outputs is meant, and whether its rows are samples."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from regaug.exceptions import PlaceError

# What the first of several outputs is looked for as; a packed sequence is then refused.
_FOUND = (Tensor, PackedSequence)


def find_item(place: str, output: Any, wanted: int | str | None) -> Any:
    """Return the key of the item that is meant in the output of a layer; None for all of it.

    Of a tuple, a list or a dict that is what is wanted, or else the first tensor.
    """
    if not isinstance(output, tuple | list | Mapping) or isinstance(output, PackedSequence):
        return None
    keys = list(output) if isinstance(output, Mapping) else list(range(len(output)))
    if wanted is None:
        return next((key for key in keys if isinstance(output[key], _FOUND)), None)
    if wanted not in keys:
        named = ", ".join(map(repr, keys))
        raise PlaceError(
            f"`output` must be one of the {len(keys)} outputs of {place!r} ({named}), got "
            f"{wanted!r}."
        )
    return wanted


def check_rows(place: str, output: object, n: int, module: object) -> None:
    """Refuse an output that is no tensor with a row for every target."""
    if isinstance(output, PackedSequence):
        raise PlaceError(
            f"The module {place!r} puts out a packed sequence, whose rows are the time steps of "
            "several samples, so there is no row for each target. Give it padded inputs, or name a "
            "module behind torch.nn.utils.rnn.pad_packed_sequence."
        )
    if not isinstance(output, Tensor):
        raise PlaceError(
            f"An augmentation acts on a tensor, but here: The module {place!r} puts out a "
            f"{type(output).__name__}. Name a module whose output is a tensor, or has one among "
            "its items (at(model, place, output=0) says which), for instance the one that takes "
            "this output."
        )
    # Where there are as many time steps as samples, only the module can tell which axis is which.
    is_time_first = getattr(module, "batch_first", True) is False and output.shape[1:2] == (n,)
    if output.ndim < 2 or len(output) != n or is_time_first:
        way_out = "Name a module that puts the batch axis first."
        if getattr(module, "batch_first", True) is False:
            way_out = f"Make it with batch_first=True: {type(module).__name__}(...) has time first."
        raise PlaceError(
            f"The output of {place!r} must have a row for each of the {n} targets, got shape "
            f"{tuple(output.shape)}. {way_out}"
        )
