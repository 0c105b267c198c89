"""A training loop of your own, with augmentation: on the inputs, at a layer, or in the loader.

    python examples/training_loop.py

Each of the three ways adds two lines to a plain loop. The data: a sine with noise, 200 rows to
train on.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA, Mixup, NearestBatchSampler

EPOCHS, BATCH = 30, 20


def make_data(n: int, noise: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return inputs ``(n, 1)`` and targets ``(n, 1)``."""
    generator = torch.Generator().manual_seed(seed)
    x = 6 * torch.rand(n, 1, generator=generator) - 3
    return x, x.sin() + noise * torch.randn(n, 1, generator=generator)


def make_net() -> tuple[nn.Sequential, torch.optim.Optimizer]:
    """Return a small net, the same every time, and its optimizer."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)


def step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take one step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def on_inputs(x: Tensor, y: Tensor) -> nn.Module:
    """FOMA on the inputs, with batches whose targets are close; it fades out over the training."""
    net, optimizer = make_net()
    augment = FOMA(rho=0.9, anneal=0.7)
    sampler = NearestBatchSampler(y, BATCH)
    for epoch in range(EPOCHS):
        augment.progress = epoch / EPOCHS
        for batch in sampler:
            new_x, new_y = augment(x[batch], y[batch])
            step(optimizer, F.mse_loss(net(new_x), new_y))
    return net


def at_a_layer(x: Tensor, y: Tensor) -> nn.Module:
    """FOMA on what the first hidden layer puts out: the net itself is not edited."""
    net, optimizer = make_net()
    augment = FOMA(rho=0.9, anneal=0.7)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=NearestBatchSampler(y, BATCH))
    at_layer = augment.at(net, "1")
    for epoch in range(EPOCHS):
        augment.progress = epoch / EPOCHS
        for batch_x, batch_y in loader:
            prediction, new_y = at_layer(batch_x, batch_y)
            step(optimizer, F.mse_loss(prediction, new_y))
    return net


def in_the_loader(x: Tensor, y: Tensor) -> nn.Module:
    """Mixup as the loader's ``collate_fn``: the loop stays as it is, workers do the work."""
    net, optimizer = make_net()
    augment = Mixup(alpha=0.2)
    shuffle = torch.Generator().manual_seed(0)
    loader = DataLoader(
        TensorDataset(x, y),
        BATCH,
        shuffle=True,
        generator=shuffle,
        collate_fn=augment.as_collate_fn(),
    )
    for _ in range(EPOCHS):
        for batch_x, batch_y in loader:
            step(optimizer, F.mse_loss(net(batch_x), batch_y))
    return net


def main() -> None:
    """Train in the three ways and print the error of each."""
    x, y = make_data(200, noise=0.3, seed=0)
    test_x, test_y = make_data(1000, noise=0.0, seed=1)
    for train in (on_inputs, at_a_layer, in_the_loader):
        net = train(x, y)
        error = (net(test_x) - test_y).square().mean().sqrt().item()
        print(f"{train.__name__:15} test error {error:.3f}")


if __name__ == "__main__":
    main()
