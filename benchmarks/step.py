"""A training step with FOMA against the same step without."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from benchmarks.baseline import make_data, make_net, make_step
from benchmarks.timing import Row, interleaved
from regaug import FOMA

REPEATS = 600


def measure() -> Iterator[Row]:
    yield from _measure("step, batch 32", 32, budgets=(1.5, 2.2))
    yield from _measure("step, batch 64", 64)
    yield from _measure("step, batch 128", 128)
    yield from _measure("step, batch 32, fused Adam", 32, fused=True)
    yield from _measure('step, batch 32, k="two_nn"', 32, k="two_nn")


def _measure(
    name: str,
    batch_size: int,
    *,
    fused: bool = False,
    budgets: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> Iterator[Row]:
    plain, inputs, layer = interleaved(
        [
            make_step(batch_size, fused=fused),
            make_step(batch_size, fused=fused, augment=FOMA(**options)),
            _make_layer_step(batch_size, fused=fused, augment=FOMA(**options)),
        ],
        REPEATS,
    )
    yield Row(f"{name}: FOMA on inputs", plain, inputs, faster=False, budget=budgets[0])
    yield Row(f"{name}: FOMA at a layer", plain, layer, faster=False, budget=budgets[1])


def _make_layer_step(batch_size: int, *, fused: bool, augment: FOMA) -> Callable[[], None]:
    """The plain step with FOMA at the first hidden layer: two lines differ."""
    x, y = make_data()
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), fused=fused or None)
    batches = torch.randperm(len(x), generator=torch.Generator().manual_seed(1)).split(batch_size)
    position = 0

    def step() -> None:
        nonlocal position
        batch = batches[position % len(batches)]
        position += 1
        with augment.at(net, "1") as tap:
            loss = F.mse_loss(net(x[batch]), tap.targets(y[batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
