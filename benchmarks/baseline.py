"""The plain way a user would write it: the baseline of the step budgets."""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]


def make_data(n: int = 4096) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=generator)
    return x, x.sin().sum(dim=1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=generator)


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )


def plain_loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss(net(x), y)


def make_step(
    batch_size: int = 32, *, fused: bool = False, loss: Loss = plain_loss
) -> Callable[[], None]:
    """Return one step of the plain loop; an augmentation changes how its loss is made."""
    x, y = make_data()
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), fused=fused or None)
    batches = torch.randperm(len(x), generator=torch.Generator().manual_seed(1)).split(batch_size)
    position = 0

    def step() -> None:
        nonlocal position
        batch = batches[position % len(batches)]
        position += 1
        error = loss(net, x[batch], y[batch])
        optimizer.zero_grad()
        error.backward()
        optimizer.step()

    return step
