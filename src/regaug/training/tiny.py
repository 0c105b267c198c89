"""Numbers that are too small to matter and slow to compute with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def tiny_as_zero() -> Iterator[None]:
    """Take numbers nearer to zero than the smallest normal one as zero for a while, on a CPU.

    The gradient of a recurrence dies away over its steps into such numbers, and processors compute
    with them many times slower. It holds for the calling thread; afterwards it is as it was.
    """
    smallest = torch.tensor(torch.finfo(torch.float64).tiny, dtype=torch.float64)
    before = (smallest / 2).item() == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
