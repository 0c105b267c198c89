"""Ridge regression, with the penalty that the validation rows choose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

from regaug.data.scaling import Scaler
from regaug.training.baselines.base import Error, Fitted, Rows, best_of
from regaug.training.baselines.stored import check_keys, stored_tensor
from regaug.training.predictor import Predictor

PENALTIES = np.logspace(-2, 6, 17)


@dataclass(frozen=True, eq=False)
class Linear(Predictor):
    """Predicts ``x @ slope + offset``.

    Attributes:
        slope: ``(d, m)``, float64.
        offset: ``(m,)``, float64.
    """

    slope: Tensor = field(repr=False)
    offset: Tensor = field(repr=False)

    @property
    def inputs(self) -> int:
        """Number of columns that it takes."""
        return len(self.slope)

    def _predict(self, x: Tensor) -> Tensor:
        return x @ self.slope + self.offset

    def to_state(self) -> dict[str, object]:
        """Return slope and offset."""
        return {"slope": self.slope, "offset": self.offset}

    @classmethod
    def from_state(cls, state: Mapping[str, object], inputs: int, outputs: int) -> Self:
        """Return the function that was written down."""
        check_keys(state, "slope", "offset")
        return cls(
            stored_tensor(state, "slope", torch.float64, (inputs, outputs)),
            stored_tensor(state, "offset", torch.float64, (outputs,)),
        )


def fit_ridge(train: Rows, validation: Rows, *, seed: int, error: Error) -> Fitted:
    r"""Fit linear regression on standardized columns with the best of the penalties.

    With eigenvectors :math:`V` and eigenvalues :math:`\lambda` of :math:`X^\top X`, the slope that
    minimizes :math:`\|y - Xw\|^2 + \alpha \|w\|^2` is
    :math:`V (\lambda + \alpha)^{-1} V^\top X^\top y`: one decomposition serves all penalties. With
    more columns than rows it is that of :math:`X X^\top`.
    """
    scaler = Scaler.fit(train.x)
    x, offset = scaler.transform(train.x), train.y.mean(dim=0)
    wide = x.shape[0] < x.shape[1]
    values, vectors = torch.linalg.eigh(x @ x.T if wide else x.T @ x)
    targets = vectors.T @ ((train.y - offset) if wide else x.T @ (train.y - offset))
    basis = x.T @ vectors if wide else vectors
    values = values.clamp(min=0.0)  # rounding
    shrunk = [targets / (values + penalty).unsqueeze(1) for penalty in PENALTIES]
    new = scaler.transform(validation.x) @ basis
    best, _ = best_of((new @ weights + offset for weights in shrunk), error)
    slope = basis @ shrunk[best] / torch.from_numpy(scaler.std).unsqueeze(1)
    offset = offset - torch.from_numpy(scaler.mean) @ slope
    return Fitted(Linear(slope, offset), {"penalty": float(PENALTIES[best])})
