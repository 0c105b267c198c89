"""Whole trainings on real data: what must never happen is a loss that is not finite."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import FOMA, NearestBatchSampler


@pytest.fixture(scope="module")
def airfoil(real_data):
    rows = np.loadtxt(real_data / "airfoil" / "airfoil_self_noise.dat")[:1003]
    low, high = rows[:, :5].min(0), rows[:, :5].max(0)
    x = torch.tensor((rows[:, :5] - low) / (high - low), dtype=torch.float32)
    return x, torch.tensor(rows[:, 5:], dtype=torch.float32)


def make_net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(5, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
    )


@pytest.mark.parametrize("options", [{"rho": 0.9}, {"k": "two_nn"}], ids=["foma-rho", "foma"])
def test_airfoil_trains_at_the_first_layer_for_twenty_seeds(airfoil, options):
    x, y = airfoil
    for seed in range(20):
        net = make_net(seed)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        augmentation = FOMA(generator=torch.Generator().manual_seed(seed), **options)
        sampler = NearestBatchSampler(y, 32, seed=seed)
        losses = []
        with augmentation.at(net, "1") as tap:
            while len(losses) < 200:
                sampler.set_epoch(len(losses))
                for batch in sampler:
                    loss = F.mse_loss(net(x[batch]), tap.targets(y[batch]))
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
        assert np.isfinite(losses).all(), seed
        assert np.mean(losses[-30:]) < 0.1 * y.square().mean()  # the loss of predicting zero


def test_anneal_ends_at_plain_training(airfoil):
    x, y = airfoil
    augmentation = FOMA(anneal=0.5)
    for step in range(100):
        augmentation.progress = step / 100
        new_x, new_y = augmentation(x[:32], y[:32])
        if step >= 50:
            assert new_x.data_ptr() == x.data_ptr()
            assert torch.equal(new_y, y[:32])
