"""The recurrence of LSTNet against torch's GRU: a step forth and back, windows of 163 rows."""

from collections.abc import Callable, Iterator

import torch
from torch import nn

from benchmarks.timing import Row, interleaved
from regaug.models.recurrence import LastState
from regaug.training.step import tiny_as_zero

TIME, COLUMNS, SIZE, REPEATS = 163, 50, 50, 11


def measure() -> Iterator[Row]:
    for n in (8, 16, 32, 128):
        plain, ours = interleaved([_step(_torch(), n), _step(LastState(COLUMNS, SIZE), n)], REPEATS)
        yield Row(f"recurrence, {TIME} steps, state {SIZE}, batch {n}", plain, ours)


def _torch() -> Callable[[torch.Tensor], torch.Tensor]:
    gru = nn.GRU(COLUMNS, SIZE, batch_first=True)
    return lambda x: gru(x)[1][0]


def _step(net: Callable[[torch.Tensor], torch.Tensor], n: int) -> Callable[[], None]:
    x = torch.randn(n, TIME, COLUMNS, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()

    def step() -> None:
        with tiny_as_zero():  # as in `fit`
            net(x).square().sum().backward()

    return step
