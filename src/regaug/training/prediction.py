"""Predictions of a model for a part of the data, shared among the processes of a training."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from regaug.data.base import Part

# Rows, and numbers of the inputs, that go through the model at a time.
_MOST_ROWS, _MOST_NUMBERS = 8192, 2**20


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
    own = torch.cat([_forward(model, part.x[chunk], fabric) for chunk in chunks])
    if world_size > 1:
        own = fabric.all_gather(own).reshape(-1, *own.shape[1:])[:n]
    return own.cpu()


def _forward(model: nn.Module, x: Tensor, fabric: Any) -> Tensor:
    with torch.inference_mode(), fabric.autocast():
        x = fabric.to_device(x)
        parameter = next(model.parameters(), x)
        prediction: Tensor = model(x.to(parameter.dtype))
    # A tensor of inference mode may not take part in anything later.
    return prediction.clone() if prediction.dtype == torch.float64 else prediction.float().clone()
