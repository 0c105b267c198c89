"""A training loop with Accelerate, on one process or on several.

    python examples/accelerate_loop.py
    torchrun --nproc-per-node 2 examples/accelerate_loop.py

Accelerate prepares the model and the optimizer, not the loader: the batch samplers of this library
give every process its own share of the batches already, and Accelerate would share them out a
second time.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA, NearestBatchSampler

EPOCHS, BATCH = 20, 16


def main() -> None:
    """Train a net on noisy rows of a sine and print the error on clean ones."""
    accelerator = Accelerator(cpu=True)
    generator = torch.Generator().manual_seed(0)
    x = 6 * torch.rand(320, 1, generator=generator) - 3
    y = x.sin() + 0.3 * torch.randn(320, 1, generator=generator)

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    net, optimizer = accelerator.prepare(net, optimizer)

    sampler = NearestBatchSampler(y, BATCH, drop_last=True)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler)
    # Every process draws for itself: give each a generator of its own.
    own = torch.Generator().manual_seed(accelerator.process_index)
    augment = FOMA(rho=0.9, anneal=0.7, generator=own)
    seen = 0
    for epoch in range(EPOCHS):
        augment.progress = epoch / EPOCHS
        for batch in loader:
            batch_x, batch_y = (part.to(accelerator.device) for part in batch)
            new_x, new_y = augment(batch_x, batch_y)
            loss = F.mse_loss(net(new_x), new_y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            seen += len(batch_y)

    test_x = torch.linspace(-3, 3, 500)[:, None].to(accelerator.device)
    error = (net(test_x) - test_x.sin()).square().mean().sqrt().item()
    weights = sum(p.detach().double().sum().item() for p in net.parameters())
    print(
        f"process {accelerator.process_index} of {accelerator.num_processes}: {seen} samples, "
        f"test error {error:.3f}, sum of weights {weights:.10f}"
    )
    # Torch may wait for ever if the net is the last to let go of the group of processes.
    net, optimizer = accelerator.free_memory(net, optimizer)
    accelerator.end_training()


if __name__ == "__main__":
    main()
