"""What rows of a training part may be used together, batch by batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from regaug.augment.limits import code_labels
from regaug.data.base import Split
from regaug.exceptions import ArgumentError
from regaug.samplers import BatchSampler

# Inputs, targets, codes of groups, and the mask: None where there are none.
Limited = tuple[Any, Tensor, Tensor | None, Any]


class TrainingBatches(Dataset[Limited]):
    """The training rows of a split by batches of indices, each with what it keeps to.

    Attributes:
        groups: Code of every row's group, if rows of different ones must not be mixed.
        has_mask: Whether there is a mask.
    """

    def __init__(self, split: Split) -> None:
        self.part = split.train
        self.groups: Tensor | None = None
        if split.pairs_within is not None and split.train.groups is not None:
            self.groups = code_labels(split.train.groups, len(split.train))
        self._mask = split.mask

    @property
    def has_mask(self) -> bool:
        """Whether there is a mask."""
        return self._mask is not None

    def __getitem__(self, batch: NDArray[np.int64] | list[int]) -> Limited:
        x, y = take_rows(self.part.x, batch), take_rows(self.part.y, batch)
        groups, mask = self.groups, None
        if self._mask is not None:
            unscaled = self.part.unscaled
            mask = self._mask(x if unscaled is None else unscaled[batch])
        return x, y, None if groups is None else groups[batch], mask

    def of_epoch(self, sampler: BatchSampler) -> Iterator[Limited]:
        """Give the batches of an epoch."""
        for batch in sampler.epoch_batches():
            yield self[batch]


def take_rows(values: Any, batch: NDArray[np.int64] | list[int]) -> Any:
    """Return ``values[batch]``, of a tensor several times as fast as that."""
    if not isinstance(values, Tensor):
        return values[batch]
    return values.index_select(0, torch.as_tensor(batch, device=values.device))


def refuse_limits(split: Split) -> None:
    """Refuse a split whose rows must not all be used together, where that cannot be kept to."""
    if split.pairs_within is not None or split.mask is not None:
        name = "mask" if split.pairs_within is None else "pairs_within"
        raise ArgumentError(
            f"`{name}` must be None for runs that train side by side, got one. Train them one by "
            "one: regaug.training.fit."
        )
