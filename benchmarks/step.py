"""A training step with FOMA against the same step without."""

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from benchmarks.baseline import Loss, make_step
from benchmarks.timing import Row, interleaved
from regaug import FOMA
from regaug.augment import Augmentation

REPEATS = 600


def measure() -> Iterator[Row]:
    yield from _measure("step, batch 32", 32, budgets=(1.3, 2.0))
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
            make_step(batch_size, fused=fused, loss=on_inputs(FOMA(**options))),
            make_step(batch_size, fused=fused, loss=at_a_layer(FOMA(**options))),
        ],
        REPEATS,
    )
    yield Row(f"{name}: FOMA on inputs", plain, inputs, faster=False, budget=budgets[0])
    yield Row(f"{name}: FOMA at a layer", plain, layer, faster=False, budget=budgets[1])


def on_inputs(augment: Augmentation[Any]) -> Loss:
    def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        new_x, new_y = augment(x, y)
        return F.mse_loss(net(new_x), new_y)

    return loss


def at_a_layer(augment: FOMA) -> Loss:
    def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        prediction, new_y = augment.at(net, "1")(x, y)
        return F.mse_loss(prediction, new_y)

    return loss
