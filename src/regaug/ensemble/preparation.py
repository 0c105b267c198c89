"""From a user's rows to what the nets of an ensemble are given."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from regaug.data.arrays import ArrayData
from regaug.data.base import Rows
from regaug.data.scaling import Scaler
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.sources import read_cells, read_gaps
from regaug.data.tabular.table import Table
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError


@dataclass(frozen=True, eq=False)
class Preparation:
    """What turns rows into standardized inputs, fitted on the rows that are trained on.

    Attributes:
        encoder: From the columns of a table to numbers; None for a model that was fitted on arrays.
        scaler: Scale of those numbers. A number that is missing becomes the mean.
    """

    encoder: Encoder | None
    scaler: Scaler

    @classmethod
    def fit(cls, data: Table | ArrayData, rows: Rows) -> Self:
        """Learn the columns and their scale from some rows."""
        if isinstance(data, Table):
            frame = data.frame[list(data.inputs)].iloc[rows]
            encoder = Encoder.fit(frame, readings=data.readings)
            return cls(encoder, Scaler.fit(torch.from_numpy(encoder.transform(frame))))
        x = torch.from_numpy(data.x[rows])
        mean = x.nanmean(dim=0).nan_to_num(nan=0.0)
        return cls(None, Scaler.fit(torch.where(x.isnan(), mean, x)))

    def __call__(self, source: Any) -> Tensor:
        """Return the inputs of the nets, ``(n, d)``, float64.

        From a path, a frame or a table; for a model of arrays from ``(n, d)``, NaN where a value is
        missing, or such data.
        """
        if self.encoder is None:
            return self.scaler.transform(self._as_rows(source)).nan_to_num(nan=0.0)
        frame = source.frame if isinstance(source, Table) else read_gaps(read_cells(source))
        return self.scaler.transform(torch.from_numpy(self.encoder.transform(frame)).double())

    def _as_rows(self, source: Any) -> Tensor:
        columns = len(self.scaler.mean)
        if isinstance(source, str | Path | Table) or hasattr(source, "columns"):
            raise ArgumentTypeError(
                f"`source` must be an array (n, {columns}), as this model was fitted on arrays, "
                f"which have no column names, got {type(source).__name__}. Pass the columns in "
                "their order: frame[[...]].to_numpy()."
            )
        array = source.x if isinstance(source, ArrayData) else source
        if isinstance(array, Tensor):
            array = array.detach().cpu().numpy()
        try:
            x = torch.from_numpy(np.array(array, dtype=np.float64))
        except (TypeError, ValueError) as error:
            wanted = f"an array of numbers (n, {columns})"
            raise ArgumentTypeError(f"`source` must be {wanted}, got {error}.") from None
        if x.ndim != 2 or x.shape[1] != columns:
            raise ArgumentError(f"`source` must be (n, {columns}), got {tuple(x.shape)}.")
        if bool(np.isinf(x.numpy()).any()):
            raise NonFiniteError("`source` must not be infinite; NaN stands for a missing value.")
        return x
