"""Arithmetic in at least float32, results in the precision they came in."""

import torch
from torch import Tensor


def working_dtype(*tensors: Tensor) -> torch.dtype:
    """Return the precision to compute with these tensors in: their common one, or float32."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def cast(new: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``new`` in ``dtype``; a row can grow past the range of float16, so stop at its end."""
    if new.dtype == dtype:
        return new
    limit = torch.finfo(dtype).max
    return new.clamp(-limit, limit).to(dtype)
