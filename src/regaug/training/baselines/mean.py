"""The mean of the training targets, whatever the inputs are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from regaug.training.baselines.base import Error, Fitted, Rows
from regaug.training.baselines.stored import check_keys, stored_tensor
from regaug.training.predictor import Predictor


@dataclass(frozen=True, eq=False)
class Mean(Predictor):
    """Predicts the same for every row.

    Attributes:
        mean: A number for each target, ``(m,)``, float64.
        columns: Number of columns that it takes, and ignores.
    """

    mean: Tensor
    columns: int

    @property
    def inputs(self) -> int:
        """Number of columns that it takes."""
        return self.columns

    def _predict(self, x: Tensor) -> Tensor:
        return self.mean.repeat(len(x), 1)

    def to_state(self) -> dict[str, object]:
        """Return the mean."""
        return {"mean": self.mean}

    @classmethod
    def from_state(cls, state: Mapping[str, object], inputs: int, outputs: int) -> Self:
        """Return the mean that was written down."""
        check_keys(state, "mean")
        return cls(stored_tensor(state, "mean", torch.float64, (outputs,)), inputs)


def fit_mean(train: Rows, validation: Rows, *, seed: int, error: Error) -> Fitted:
    """Take the mean of the training targets; there is nothing to choose."""
    return Fitted(Mean(train.y.mean(dim=0), train.x.shape[1]), {})
