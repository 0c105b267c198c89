"""The batches of a train loader: where x and y are in them, and who shares one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Sampler

from regaug import _random
from regaug._registry import lookup
from regaug.augment.collate import Get
from regaug.augment.structures import join
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.samplers import SAMPLERS

# A name, something that makes a batch sampler of (y, batch_size), or a batch sampler.
AnySampler = str | Callable[..., Iterable[list[int]]] | Sampler[list[int]]

# What a new loader takes over from the old one, besides the data set.
_KEPT = (
    *("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator"),
    *("multiprocessing_context", "prefetch_factor", "persistent_workers", "in_order"),
)
_READ_AT_ONCE = 256


def set_pair(batch: Any, x: Any, y: Any) -> Any:
    """Return a batch like this one with another x and y; a named tuple takes them one by one."""
    return type(batch)(x, y) if hasattr(batch, "_fields") else type(batch)((x, y))


def scale_loss(output: Any, weight: float) -> Any:
    """Multiply the loss in what a training step returned: a tensor, or a dict with ``"loss"``."""
    if weight == 1.0 or output is None:
        return output
    if isinstance(output, Mapping):
        return {**output, "loss": weight * output["loss"]}
    return weight * output


def check_sampler(sampler: AnySampler) -> AnySampler:
    """Return ``sampler`` if it can be used."""
    if isinstance(sampler, str):
        return lookup("sampler", sampler, SAMPLERS)
    if not isinstance(sampler, Sampler) and not callable(sampler):
        raise ArgumentTypeError(
            "`sampler` must be a name, a torch batch sampler, or a function that makes one of "
            f"(y, batch_size), got a {type(sampler).__name__}."
        )
    return sampler


def with_sampler(loader: Any, sampler: AnySampler, get: Get, *, seed: int) -> DataLoader[Any]:
    """Return a loader like this one whose batches are chosen by ``sampler``.

    A function that makes one needs the targets: the data set is read once, batch by batch.
    """
    check_map_style(loader, "`sampler`")
    if isinstance(sampler, Sampler):
        batches: Any = sampler
    else:
        make: Any = check_sampler(sampler)
        size = getattr(loader.batch_sampler, "batch_size", None)
        if not isinstance(size, int):
            raise ArgumentError(
                "`sampler` needs the batch size, which the train loader's own batch sampler, a "
                f"{type(loader.batch_sampler).__name__}, does not tell. Make the loader with "
                "batch_size=..., or give `sampler` a sampler that has been made."
            )
        pairs = map(get, _batches_in_order(loader))
        y = torch.cat([join("y", batch).detach().cpu() for _, batch in pairs])
        drop_last = bool(getattr(loader.batch_sampler, "drop_last", False))
        batches = make(y, min(size, len(y)), seed=seed, drop_last=drop_last)
    try:
        new: DataLoader[Any] = type(loader)(loader.dataset, batch_sampler=batches, **_kept(loader))
    except TypeError as error:
        raise ArgumentTypeError(
            f"`sampler` cannot be put into a {type(loader).__name__}, which does not take the "
            f"arguments of a torch DataLoader ({error}). Give it the batch sampler yourself."
        ) from error
    return new


def read_rows(loader: Any, get: Get, name: str) -> tuple[Tensor, Tensor]:
    """Return all x and y of the data set as rows; ``name`` is what needs them."""
    check_map_style(loader, name)
    pairs = [(join("x", x), join("y", y)) for x, y in map(get, _batches_in_order(loader))]
    return torch.cat([x for x, _ in pairs]), torch.cat([y for _, y in pairs])


def check_map_style(loader: Any, name: str) -> None:
    """Refuse anything but one torch DataLoader of a data set that can be indexed."""
    if not isinstance(loader, DataLoader):
        raise ArgumentTypeError(
            f"{name} needs one torch DataLoader for training, got a {type(loader).__name__}."
        )
    has_batches = loader.batch_sampler is not None
    if isinstance(loader.dataset, IterableDataset) or not has_batches:
        came = f"a {type(loader.dataset).__name__}"
        came += "" if has_batches else " in a loader without batches (batch_size=None)"
        raise ArgumentTypeError(
            f"{name} needs a data set whose samples can be chosen by their index, with "
            f"__getitem__ and __len__, got {came}."
        )


def _batches_in_order(loader: DataLoader[Any]) -> Iterator[Any]:
    """Go through the data set once; no generator of the user's moves."""
    changes = {"persistent_workers": False, "pin_memory": False}
    options = {**_kept(loader), "generator": _random.make_generator(), **changes}
    with _random.seeded(0):  # a data set may draw
        yield from DataLoader(loader.dataset, batch_size=_READ_AT_ONCE, **options)


def _kept(loader: DataLoader[Any]) -> dict[str, Any]:
    return {name: getattr(loader, name) for name in _KEPT if hasattr(loader, name)}
