"""How fast this machine is, beside the one that the figures of estimates were measured on."""

import time
from functools import cache

import torch

from regaug.runs.threads import one_thread

# What the work below took there, in seconds: a core of an Intel Xeon with AVX-512, torch 2.13.
_THERE = 6.6e-4
# However odd the clock is, no estimate changes by more than that.
_LEAST, _MOST = 0.25, 8.0


@cache
def slowness() -> float:
    """Return how many times as long as there a core takes here; it is found out in a moment.

    Example:
        >>> slowness() == slowness() > 0
        True
    """
    times = []
    with one_thread(), torch.inference_mode():
        x = torch.ones(8, 32, 128, dtype=torch.float32, device="cpu")
        weights = torch.full((8, 128, 128), 1 / 128, dtype=torch.float32, device="cpu")
        for _ in range(20):  # the best of many: others may be busy
            start = time.perf_counter()
            for _ in range(10):  # as in a step of stacked nets: products and what lies between them
                x = torch.baddbmm(x, x, weights, beta=0.5, alpha=0.5).tanh_()
            times.append(time.perf_counter() - start)
    return min(max(min(times) / _THERE, _LEAST), _MOST)
