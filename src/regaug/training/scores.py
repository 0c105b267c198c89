"""Scores of a split's parts, from whatever predicts, in the target's own units."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regaug._registry import lookup
from regaug.augment.structures import Batch, map_tensors
from regaug.data.base import Part, Rows, Split
from regaug.data.scaling import StandardizedSplit
from regaug.metrics import Scores, evaluate
from regaug.training.step import as_column, call_model

Predict = Callable[[Part], Tensor]

# The error on training rows that a history shows is that of this many: enough to see it fall.
MOST_TRAINING_ROWS = 500
# Rows, and numbers of the inputs, that go through the model at a time.
_MOST_ROWS, _MOST_NUMBERS = 8192, 2**20


def own_units(split: Split, values: Tensor) -> Tensor:
    """Return predictions ``(..., n, m)`` in the target's own units, in their dtype."""
    return split.restore(values) if isinstance(split, StandardizedSplit) else values


def own_targets(split: Split, part: Part) -> Tensor:
    """Return the targets ``(n, m)`` of a part in their own units.

    The way to a scale and back is rounded, so that a target of zero returns as a tiny number, by
    which MAPE would divide. What cannot be told from zero becomes zero again.
    """
    target = own_units(split, part.y)
    if not isinstance(split, StandardizedSplit) or split.log:
        return target
    rounding = torch.finfo(part.y.dtype).eps * torch.from_numpy(abs(split.y_scaler.mean))
    return target.masked_fill(target.abs() <= rounding.to(target.device), 0.0)


class Scored(NamedTuple):
    """Scores and predictions by part, in the target's own units.

    Attributes:
        scores: Scores.
        predictions: Predictions ``(n, m)``, on the CPU and at least as precise as the targets.
        seconds: Time that predicting one row of the test part took; None without such rows.
    """

    scores: dict[str, Scores]
    predictions: dict[str, Tensor]
    seconds: float | None


def score_parts(split: Split, predict: Predict, parts: Iterable[str] | None = None) -> Scored:
    """Predict some parts of a split and score the predictions, by group where there are groups.

    ``predict`` works in the units of the split. ``parts`` are names; None takes ``"validation"``,
    ``"test"`` and the split's further ones.

    Raises:
        NonFiniteError: A prediction is NaN or infinite.
    """
    names = ("validation", "test", *split.more) if parts is None else tuple(parts)
    scores: dict[str, Scores] = {}
    predictions: dict[str, Tensor] = {}
    seconds: float | None = None
    for name in names:
        part = lookup("part", name, split.parts)
        start = time.perf_counter()
        prediction = predict(part).detach().cpu()
        if name == "test" and len(part):
            seconds = (time.perf_counter() - start) / len(part)
        prediction = prediction.to(torch.promote_types(prediction.dtype, part.y.dtype))
        predictions[name] = own_units(split, prediction)
        target = own_targets(split, part).to(predictions[name])
        scores[name] = evaluate(predictions[name], target, part.groups, pooled=split.pooled)
    return Scored(scores, predictions, seconds)


def predict(model: nn.Module, part: Part, fabric: Any) -> Tensor:
    """Return what ``model``, in ``eval()``, predicts for a part, ``(n, m)``, on the CPU.

    With several processes each predicts a share of the rows, and all get all of them.
    """
    n, rank, world_size = len(part), fabric.global_rank, fabric.world_size
    share = math.ceil(n / world_size)
    # The last process may have to repeat a row: all shares must be equally long.
    rows = torch.arange(rank * share, (rank + 1) * share).clamp_(max=n - 1)
    numbers = math.prod(part.x.shape[1:])
    size = max(1, min(_MOST_ROWS, _MOST_NUMBERS // max(numbers, 1)))
    chunks = torch.split(rows, size)
    own = as_column(torch.cat([_forward(model, part.x[chunk], fabric) for chunk in chunks]))
    if world_size > 1:
        own = fabric.all_gather(own).reshape(-1, *own.shape[1:])[:n]
    return own.cpu()


def _forward(model: nn.Module, x: Batch, fabric: Any) -> Tensor:
    with torch.inference_mode(), fabric.autocast():
        parameter = next(model.parameters(), None)
        dtype = None if parameter is None else parameter.dtype

        def ready(tensor: Tensor) -> Tensor:
            # Whole numbers are codes, for a layer that looks them up.
            return tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor

        prediction: Tensor = call_model(model, map_tensors(ready, fabric.to_device(x)))
    # A tensor of inference mode may not take part in anything later.
    return prediction.clone() if prediction.dtype == torch.float64 else prediction.float().clone()


def recorded_rows(part: str, n: int) -> Rows | None:
    """Return which of the ``n`` rows of a part a history looks at; None for all of them."""
    if part != "train" or n <= MOST_TRAINING_ROWS:
        return None
    return np.linspace(0, n - 1, MOST_TRAINING_ROWS).astype(np.int64)
