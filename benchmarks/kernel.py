"""scale_singular_values against SVD + rebuild + autograd."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.timing import Row, interleaved
from regaug.functional import rank_at_share, scale_singular_values

# Shapes of the paper: tables, a latent layer, windows of a series, images.
SHAPES = [(32, 129), (64, 136), (16, 1352), (128, 25089)]


def by_svd(a: Tensor, lam: float, k: int) -> Tensor:
    """The paper's pseudo-code."""
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    factors = torch.where(torch.arange(len(s)) < k, 1.0, lam)
    return u @ torch.diag(s * factors) @ vh


def measure() -> Iterator[Row]:
    ratios = []
    for shape in [(32, 6), *SHAPES]:
        generator = torch.Generator().manual_seed(0)
        a = torch.randn(shape, generator=generator)
        gradient = torch.randn(shape, generator=generator)
        k = int(rank_at_share(torch.linalg.svdvals(a), 0.9))
        large = shape[1] > 20_000
        functions = [
            lambda a, k=k: by_svd(a, 0.5, k),
            lambda a, k=k: scale_singular_values(a, lam=0.5, k=k),
        ]
        size = f"{shape[0]}x{shape[1]}"
        plain, ours = interleaved([_forward(f, a) for f in functions], 15 if large else 400)
        yield Row(f"kernel {size}, forward", plain, ours, budget=8.0 if large else None)
        plain, ours = interleaved([_both(f, a, gradient) for f in functions], 15 if large else 400)
        row = Row(f"kernel {size}, forward + backward", plain, ours, budget=0.9)
        yield row
        if shape in SHAPES:
            ratios.append(row.ratio)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    yield Row("kernel, geometric mean of forward + backward", mean, 1.0, budget=2.5)


def _forward(function: Callable[[Tensor], Tensor], a: Tensor) -> Callable[[], object]:
    return lambda: function(a)


def _both(function: Callable[[Tensor], Tensor], a: Tensor, grad: Tensor) -> Callable[[], object]:
    leaf = a.clone().requires_grad_()

    def run() -> None:
        leaf.grad = None
        function(leaf).backward(grad)

    return run
