"""The plain way a user would write it: the baseline of the step budgets."""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Change = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def make_data(n: int = 4096) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=generator)
    return x, x.sin().sum(dim=1, keepdim=True) + 0.1 * torch.randn(n, 1, generator=generator)


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )


def make_step(
    batch_size: int = 32, *, fused: bool = False, augment: Change | None = None
) -> Callable[[], None]:
    """Return one step of the plain loop, with the augmentation's line if there is one."""
    x, y = make_data()
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), fused=fused or None)
    batches = torch.randperm(len(x), generator=torch.Generator().manual_seed(1)).split(batch_size)
    position = 0

    def step() -> None:
        nonlocal position
        batch = batches[position % len(batches)]
        position += 1
        batch_x, batch_y = x[batch], y[batch]
        if augment is not None:
            batch_x, batch_y = augment(batch_x, batch_y)
        loss = F.mse_loss(net(batch_x), batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
