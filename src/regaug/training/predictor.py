"""What predicts from arrays, and can be stored as arrays."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor

from regaug._checks import check_finite, check_floating
from regaug.exceptions import ArgumentError


class Predictor(ABC):
    """A fitted baseline: arrays, and the arithmetic that predicts from them.

    A subclass is a frozen dataclass. It is stored with :meth:`to_state` and comes back with
    :meth:`from_state`, which takes nothing for granted.
    """

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Number of columns that it takes."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return predictions ``(n, m)``, float64, on the CPU, for finite inputs ``(n, d)``."""
        check_floating("x", x)
        if x.ndim != 2 or x.shape[1] != self.inputs:
            must = f"(n, {self.inputs}), as the rows it was fitted on"
            raise ArgumentError(f"`x` must be {must}, got shape {tuple(x.shape)}.")
        check_finite(x=x)
        with torch.no_grad():
            return self._predict(x.detach().cpu().double())

    @abstractmethod
    def _predict(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def to_state(self) -> dict[str, object]:
        """Return everything as tensors, and dicts and lists of them."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, object], inputs: int, outputs: int) -> Self:
        """Return the predictor that :meth:`to_state` wrote down.

        Args:
            state: Nobody vouches for it: every shape, dtype and number is checked.
            inputs: Columns that it must take.
            outputs: Targets that it must predict.

        Raises:
            DataError: It is not such a state.
        """
