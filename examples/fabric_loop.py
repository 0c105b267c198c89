"""A loop with Lightning Fabric: the batch sampler shares the batches out among the processes.

One process: ``python examples/fabric_loop.py``; two: ``torchrun --nproc-per-node 2 ...``.
"""

import os

import torch
import torch.nn.functional as F  # noqa: N812
from lightning_fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA, NearestBatchSampler
from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold

EPOCHS = 20


def main() -> None:
    """Train a small net with FOMA on batches of samples that lie close together."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    fabric = Fabric(accelerator="cpu", devices=processes)
    fabric.launch()
    torch.manual_seed(0)
    train = standardize(make_manifold("sine", n=400).split(0)).train
    net = nn.Sequential(nn.Linear(train.x.shape[1], 32), nn.Tanh(), nn.Linear(32, 1))
    net, optimizer = fabric.setup(net, torch.optim.Adam(net.parameters(), lr=0.01))

    loader = DataLoader(
        TensorDataset(train.x[:], train.y), batch_sampler=NearestBatchSampler(train.y, 20)
    )
    # Fabric would put a sampler of its own in the place of this one.
    loader = fabric.setup_dataloaders(loader, use_distributed_sampler=False)
    generator = torch.Generator().manual_seed(fabric.global_rank)
    augment = FOMA(anneal=0.7, total_steps=EPOCHS * len(loader), generator=generator)
    for epoch in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            new_x, new_y = augment(x, y)
            loss = F.mse_loss(net(new_x), new_y)
            fabric.backward(loss)
            optimizer.step()
        if epoch % 5 == 4:
            fabric.print(f"epoch {epoch + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
