"""What every method keeps to. A new one is covered by being in the table."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import methods
from regaug.methods import INPUT, LAYER, LAYERS, Between, OneOf


@pytest.fixture(params=methods.names())
def method(request):
    return methods.get(request.param)


@pytest.fixture(scope="module")
def table():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 4, generator=generator)
    y = x.sin().sum(1, keepdim=True) + 0.1 * torch.randn(120, 1, generator=generator)
    return x, y


def make_net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.1), nn.Linear(16, 1))


def train(method, settings, x, y, epochs=3, seed=0):
    """Train as the settings say; return the weights after every epoch."""
    net = make_net(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    ready = method.prepare(settings, seed=seed).fit(x, y)
    augmentation, sampler = ready.augmentation, ready.sampler(y, 16)
    at = augmentation.at(net, "input" if settings["place"] == INPUT else "0")
    history = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        augmentation.progress = epoch / epochs
        for batch in sampler:
            loss = F.mse_loss(*at(x[batch], y[batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert loss.isfinite()
        history.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    return history


def test_it_trains_with_its_defaults(method, table):
    first, *_, last = train(method, method.settings(), *table)
    assert not torch.equal(first, last)


def test_same_seed_same_weights(method, table):
    one, two = (train(method, method.settings(), *table) for _ in range(2))
    assert torch.equal(one[-1], two[-1])


def test_it_trains_with_any_settings_of_its_space(method, table):
    rng = np.random.default_rng(0)
    for _ in range(6):
        train(method, method.draw_settings(rng), *table, epochs=1)


def test_the_space_names_known_settings_within_reach(method):
    assert method.defaults["place"] in (INPUT, LAYER, LAYERS)
    assert set(method.space) <= set(method.defaults)
    for name, choice in method.space.items():
        default = method.defaults[name]
        if isinstance(choice, Between):
            assert choice.low <= default <= choice.high, name
        else:
            assert isinstance(choice, OneOf)
            assert default in choice.values, name


def test_almost_off_is_within_reach(method):
    if method.space:
        assert method.space["p"].low <= 0.05


def test_unknown_settings_get_a_suggestion(method):
    with pytest.raises(LookupError, match="Unknown setting 'plaze'. Did you mean 'place'"):
        method.settings(plaze="input")
