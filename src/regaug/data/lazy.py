"""Inputs that are read when they are asked for."""

import operator
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Places = NDArray[np.int64]
Index = int | slice | Sequence[int] | Places | NDArray[np.bool_] | Tensor


class Inputs(Protocol):
    """Inputs that are read when they are asked for, sample by sample."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as if they were all in memory, ``(n, *features)``."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Index) -> Any:
        """Return one sample for an int, a stack of samples for a slice or several indices.

        A tensor; or several in a tuple, a list or a dict, the shape being that of all their numbers
        side by side.
        """


class Lazy:
    """Base of inputs that are read sample by sample; a subclass says how in ``_read``.

    An object holds only what tells the samples apart (paths, indices, draws), so that it is cheap
    to send to the workers of a ``DataLoader``.

    Inputs that differ from epoch to epoch have a method ``set_epoch(epoch)``; ``training.fit``
    calls it for the training inputs. The workers of a loader hold copies, so what it sets must be
    in shared memory: see :class:`regaug.data.datasets.video.RandomClips`.

    Example:
        >>> class Squares(Lazy):
        ...     def _read(self, place):
        ...         return torch.tensor([float(place**2)])
        >>> squares = Squares(5, (1,))
        >>> squares.shape, squares[-1], squares[[1, 3]].tolist()
        ((5, 1), tensor([16.]), [[1.0], [9.0]])
    """

    def __init__(self, n: int, features: tuple[int, ...]) -> None:
        self._n, self._features = n, features

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as if they were all in memory, ``(n, *features)``."""
        return (self._n, *self._features)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Index) -> Tensor:
        if isinstance(index, slice):
            return self._stack(np.arange(self._n)[index])
        # A tensor of one element counts as an int, but is a stack of one sample here.
        places = np.asarray(index)
        if places.ndim == 0:
            return self._read(self._place(operator.index(places.item())))
        return self._stack(self._places(places))

    def _read(self, place: int) -> Tensor:
        """Return the sample at this place, float32, from 0 to n - 1."""
        raise NotImplementedError

    def _stack(self, places: Places) -> Tensor:
        if not len(places):
            return torch.empty(0, *self._features)
        return torch.stack([self._read(place) for place in places.tolist()])

    def _place(self, index: int) -> int:
        if not -self._n <= index < self._n:
            raise IndexError(f"index {index} is out of range: there are {self._n} samples.")
        return index % self._n

    def _places(self, index: NDArray[np.generic]) -> Places:
        if index.dtype == bool and index.shape == (self._n,):
            return np.flatnonzero(index)
        if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
            raise IndexError(
                "an index must be a whole number, a slice, or one list of whole numbers, "
                f"got {index.dtype} of shape {index.shape}."
            )
        return np.array([self._place(i) for i in index.tolist()], dtype=np.int64)


class Subset(Lazy):
    """Some rows of inputs, in the order wanted, still read only when they are asked for."""

    def __init__(self, inputs: Tensor | Inputs, rows: Places) -> None:
        super().__init__(len(rows), tuple(inputs.shape[1:]))
        self.inputs, self.rows = inputs, rows

    def set_epoch(self, epoch: int) -> None:
        """Tell the inputs which epoch it is, if they differ from epoch to epoch."""
        if hasattr(self.inputs, "set_epoch"):
            self.inputs.set_epoch(epoch)

    def _read(self, place: int) -> Any:
        return self.inputs[int(self.rows[place])]

    def _stack(self, places: Places) -> Any:
        return self.inputs[self.rows[places]]
