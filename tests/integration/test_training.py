"""Whole trainings on real data: what must never happen is a loss that is not finite."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import FOMA, Identity, NearestBatchSampler, methods


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


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 20), marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("options", [{"rho": 0.9}, {"k": "two_nn"}], ids=["foma-rho", "foma"])
def test_airfoil_trains_at_the_first_layer_whatever_the_seed(airfoil, options, seeds):
    x, y = airfoil
    for seed in seeds:
        net = make_net(seed)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        augmentation = FOMA(generator=torch.Generator().manual_seed(seed), **options)
        sampler = NearestBatchSampler(y, 32, seed=seed)
        losses = []
        at = augmentation.at(net, "1")
        while len(losses) < 200:
            sampler.set_epoch(len(losses))
            for batch in sampler:
                loss = F.mse_loss(*at(x[batch], y[batch]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        assert np.isfinite(losses).all(), seed
        assert np.mean(losses[-30:]) < 0.1 * y.square().mean()  # the loss of predicting zero


def train(net, batches, augmentation, place, x, y, rate=1e-2):
    """Train one epoch on these batches; return the mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    losses = []
    at = augmentation.at(net, place)
    for batch in batches:
        loss = F.mse_loss(*at(x[batch], y[batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


def standardized(airfoil):
    return tuple((tensor - tensor.mean(0)) / tensor.std(0) for tensor in airfoil)


@pytest.mark.parametrize("name", methods.names())
def test_every_method_trains_on_airfoil(airfoil, name):
    x, y = standardized(airfoil)
    ready = methods.get(name).prepare().fit(x, y)
    net = make_net(seed=0)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    augmentation, sampler = ready.augmentation, ready.sampler(y, 32)
    at = augmentation.at(net, "1" if ready.settings["place"] == methods.LAYER else "input")
    losses = []
    for epoch in range(15):
        sampler.set_epoch(epoch)
        augmentation.progress = epoch / 15
        for batch in sampler:
            loss = F.mse_loss(*at(x[batch], y[batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.isfinite(losses).all()
    assert F.mse_loss(net(x), y) < 0.25  # of the targets' variance; erm is at about 0.09


@pytest.mark.parametrize("name", [name for name in methods.names() if name not in ("erm", "rare")])
def test_the_end_of_anneal_is_exactly_plain_training(airfoil, name):
    x, y = standardized(airfoil)
    ready = methods.get(name).prepare({"anneal": 0.7}).fit(x, y)
    augmentation, batches = ready.augmentation, list(ready.sampler(y, 32))
    place = "1" if ready.settings["place"] == methods.LAYER else "input"
    nets = [make_net(seed=0) for _ in range(3)]
    augmentation.progress = 0.7
    train(nets[0], batches, augmentation, place, x, y)
    samples = [batch[: len(batch) // 2] for batch in batches] if name == "c-mixup" else batches
    train(nets[1], samples, Identity(), place, x, y)
    augmentation.progress = 0.0
    train(nets[2], batches, augmentation, place, x, y)
    annealed, plain, early = (list(net.parameters()) for net in nets)
    assert all(torch.equal(a, b) for a, b in zip(annealed, plain, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(early, plain, strict=True))
