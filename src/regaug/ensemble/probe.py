"""What a model says of a few rows: one whose numbers are each finite may still predict none."""

import torch
from torch import Tensor

from regaug.ensemble.component import combine
from regaug.ensemble.contents import Contents
from regaug.exceptions import DataError

# Rows in the scale of the inputs: the mean row, and rows that are that far off in every column.
_FAR = 3.0


def check_predictions(model: Contents) -> None:
    """Refuse a model that does not predict finite numbers, nor finite intervals."""
    columns = len(model.preparation.scaler.mean)
    x = torch.tensor([0.0, _FAR, -_FAR], dtype=torch.float64)[:, None].expand(3, columns)
    with torch.inference_mode():
        mean, spread, scaled = combine(
            model.components, x.contiguous(), bounds=model.bounds, scale=model.scale
        )
        _check("predictions", mean, spread, scaled)
        if model.calibration is not None:
            # Intervals of the highest level, where the models agree.
            half = model.calibration.scores[-1] * model.calibration.floor
            center = model.scale.transform(mean)
            _check("intervals", *map(model.scale.inverse, (center - half, center + half)))


def _check(name: str, *values: Tensor) -> None:
    if not all(bool(own.isfinite().all()) for own in values):
        raise DataError(f"its {name} are not finite: a scale or a weight is far too large.")
