"""Where x and y are in a batch, and a ``collate_fn`` that augments the batches it makes."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.utils.data import default_collate, get_worker_info

from regaug import _random
from regaug.augment.structures import Batch
from regaug.exceptions import ArgumentError, ArgumentTypeError

Get = Callable[[Any], tuple[Batch, Batch]]
Set = Callable[[Any, Any, Any], Any]
Collate = Callable[[list[Any]], Any]


class _Acts(Protocol):
    """What augments: see :class:`regaug.augment.Augmentation`."""

    generator: torch.Generator

    def __call__(self, x: Batch, y: Batch, /) -> tuple[Batch, Batch]: ...


class CollateAndAugment:
    """Collate samples into a batch and augment it."""

    def __init__(
        self,
        augmentation: _Acts,
        *,
        get: Get | None = None,
        set: Set | None = None,
        collate: Collate | None = None,
    ) -> None:
        check_both(get, set)
        self.augmentation = augmentation
        self._get, self._set, self._collate = get, set, collate or default_collate
        self._worker_seed: int | None = None

    def __call__(self, samples: list[Any]) -> Any:
        """Return the augmented batch of ``samples``: ``(x, y)``, or what ``set`` makes of them."""
        worker = get_worker_info()
        if worker is not None and worker.seed != self._worker_seed:
            # Every worker holds a copy of one generator, and a new epoch a copy of the same again.
            self._worker_seed = worker.seed
            own_seed = self.augmentation.generator.initial_seed()
            high, low = divmod(worker.seed, 2**32)
            seed = _random.derive(_random.Stream.LOADERS, own_seed, high, low)
            self.augmentation.generator.manual_seed(seed)
        batch = self._collate(samples)
        new = self.augmentation(*get_pair(batch, self._get, user="augment.as_collate_fn("))
        return new if self._set is None else self._set(batch, *new)


def check_both(get: Get | None, set: Set | None) -> None:
    """Refuse one of the two without the other."""
    if (get is None) != (set is None):
        raise ArgumentError("`get` and `set` go together: give both, or none of them.")


def get_pair(batch: Any, get: Get | None = None, *, user: str) -> tuple[Batch, Batch]:
    """Return x and y of a batch ``(x, y)``, or what ``get(batch)`` says they are.

    ``user`` is what the user calls, up to where ``get`` would stand.
    """
    pair = batch if get is None else get(batch)
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    came = type(pair).__name__
    if isinstance(pair, tuple | list):
        came = f"{came} of {', '.join(type(item).__name__ for item in pair) or 'nothing'}"
    name, way_out = "`get(batch)`", "It returns the x and the y of the batch."
    if get is None:
        name = "A training batch"
        way_out = (
            f"Say where they are: {user}get=lambda batch: (x, y), set=lambda batch, x, y: batch), "
            "with the batch's x and y, and a new batch."
        )
    raise ArgumentTypeError(f"{name} must be (x, y), got a {came}. {way_out}")
