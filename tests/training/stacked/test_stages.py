from dataclasses import dataclass

import pytest
import torch

from regaug.models import MLP
from regaug.training.stacked.net import Layout, Learner, predict
from regaug.training.stacked.optimizer import _clip
from regaug.training.stacked.stages import Room

RUNS, N, COLUMNS, WIDTH = 3, 6, 4, 2


@dataclass(frozen=True)
class PerColumnForm:
    """A small linear map for every column: a stage of another kind, with a weight of three axes."""

    name = "map"

    @property
    def shapes(self):
        return {self.name: torch.Size((COLUMNS, WIDTH, 1))}

    @property
    def width(self):
        return COLUMNS * WIDTH

    def make(self, weights, gradient):
        return PerColumn(weights[0], None if gradient is None else gradient[0])


class PerColumn:
    place = None

    def __init__(self, weight, gradient):
        self.weight, self.gradient = weight, gradient

    def forward(self, x):
        return (x[..., None] * self.weight[:, None, :, 0]).flatten(2)

    def learn(self, x):
        self.x = x
        return self.forward(x)

    def backward(self, delta, *, is_first):
        delta = delta.unflatten(2, (COLUMNS, WIDTH))
        self.gradient[:, :, 0] = (delta * self.x[..., None]).sum(dim=1)
        return delta if is_first else (delta * self.weight[:, None, :, 0]).sum(dim=3)


def make_case():
    nets = [MLP(COLUMNS * WIDTH, hidden=(5, 7), seed=seed).double() for seed in range(RUNS)]
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    states = [{"map": draw(COLUMNS, WIDTH, 1), **net.state_dict()} for net in nets]
    layout = Layout((PerColumnForm(), *Layout.of(nets[0]).forms))
    weights = layout.stack(states, torch.float64)
    return layout, states, weights, draw(RUNS, N, COLUMNS), draw(RUNS, N, 1)


def test_a_stage_of_another_kind_fits_before_the_others(nothing):
    layout, states, weights, x, y = make_case()
    learner = Learner(layout, weights)
    loss = learner.loss_and_gradient(x, nothing(y))
    own = [weight.clone().requires_grad_() for weight in weights]
    expected = (predict(layout.stages(own), x) - y).square().mean(dim=(1, 2))
    torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=1e-12)
    expected.sum().backward()
    for found, weight in zip(learner.gradient, own, strict=True):
        torch.testing.assert_close(found, weight.grad, rtol=0, atol=1e-12)
    assert layout.widest == COLUMNS * WIDTH
    for run, state in enumerate(states):
        named = layout.name(weights, run)
        assert list(named) == list(state)
        assert all(torch.equal(named[name], weight) for name, weight in state.items())


def test_clipped_gradients_have_the_norm_of_all_weights_of_a_run():
    gradient = make_case()[2]
    clipped = _clip(gradient, 0.1)
    for run in range(RUNS):
        whole, short = (torch.cat([part[run].flatten() for part in w]) for w in (gradient, clipped))
        assert short.norm().item() == pytest.approx(0.1, rel=1e-5)
        torch.testing.assert_close(short / short.norm(), whole / whole.norm())
    for part, same in zip(gradient, _clip(gradient, 1e6), strict=True):
        assert torch.equal(part, same)


def test_room_is_used_again_as_long_as_it_fits():
    room, x = Room(), torch.zeros(2, 3, 4)
    first = room.of(x, 5)
    assert first.shape == (2, 3, 5)
    assert room.of(x, 5) is first
    assert room.of(x[:1], 5).shape == (1, 3, 5)
