"""Batches to try things on, harmless and ugly ones."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regaug import _random


def make_batch(
    x_shape: Sequence[int] = (12, 3),
    y_shape: Sequence[int] = (12,),
    *,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of these shapes, drawn from N(0, 1)."""
    generator = _random.make_generator(seed)
    x = torch.randn(tuple(x_shape), generator=generator)
    return x.to(dtype), torch.randn(tuple(y_shape), generator=generator).to(dtype)


def all_equal(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Tell whether tensors are equal, one by one."""
    return len(some) == len(others) and all(map(torch.equal, some, others))


def are_finite(*tensors: Tensor | None) -> bool:
    """Tell whether there is a number in every place."""
    return all(tensor is not None and bool(tensor.isfinite().all()) for tensor in tensors)


def make_ugly(*, even: bool = False) -> dict[str, tuple[Tensor, Tensor]]:
    """Return batches that break careless arithmetic; with ``even``, of even numbers of rows."""
    x, y = make_batch((8, 3), (8,))
    found = {
        "one row": (x[:1], y[:1]),
        "two rows": (x[:2], y[:2]),
        "equal rows": (x[:1].expand(8, -1), y[:1].expand(8)),
        "constant targets": (x, torch.ones(8)),
        "columns of zeros": (x * torch.tensor([1.0, 0.0, 0.0]), y),
        "zeros": (x * 0, y * 0),
        "multiples of one row": (torch.outer(y, torch.arange(1.0, 4.0)), y),
        "dead units": (torch.relu(x - 3.0), y),
        "more columns than rows": make_batch((4, 50), (4, 2)),
        "tiny numbers": (x * 1e-12, y * 1e-12),
        "huge numbers": (x * 1e12, y * 1e12),
        "numbers of all scales": (x * torch.tensor([1e-9, 1.0, 1e9]), y),
    }
    if even:
        del found["one row"]
    wide = {f"{kind} in float64": (x.double(), y.double()) for kind, (x, y) in found.items()}
    return found | wide
