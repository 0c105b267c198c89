import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.models import MLP
from regaug.training.stacked.net import Layout, Learner, predict


def make_nets(runs=3, inputs=4, targets=2, hidden=(5, 7)):
    return [MLP(inputs, targets, hidden=hidden, seed=seed).double() for seed in range(runs)]


def stacked(nets):
    layout = Layout.of(nets[0])
    return layout, layout.stack([net.state_dict() for net in nets], torch.float64)


def leaves(weights):
    return [weight.clone().requires_grad_() for weight in weights]


def assert_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@given(
    runs=st.integers(1, 4),
    n=st.integers(1, 6),
    inputs=st.integers(1, 5),
    targets=st.integers(1, 3),
    hidden=st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_every_run_predicts_as_its_own_net(runs, n, inputs, targets, hidden):
    nets = make_nets(runs, inputs, targets, tuple(hidden))
    layout, weights = stacked(nets)
    x = torch.randn(runs, n, inputs, generator=torch.Generator().manual_seed(n)).double()
    prediction = predict(layout.stages(weights), x)
    expected = torch.stack([net(one) for net, one in zip(nets, x, strict=True)])
    torch.testing.assert_close(prediction, expected, rtol=0, atol=1e-12)


def test_the_gradient_of_every_run_is_that_of_its_own_net():
    nets = make_nets()
    layout, weights = stacked(nets)
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0)).double()
    own = leaves(weights)
    predict(layout.stages(own), x).square().sum().backward()
    for run, (net, one) in enumerate(zip(nets, x, strict=True)):
        net(one).square().sum().backward()
        found = layout.name([weight.grad for weight in own], run)
        assert_close(found.values(), [weight.grad for weight in net.parameters()])


def make_case(runs, n, targets, hidden, seed=0):
    layout, weights = stacked(make_nets(runs, 3, targets, tuple(hidden)))
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(runs, n, d, generator=generator, dtype=torch.float64) for d in (3, targets))
    return layout, weights, x, y


@given(
    runs=st.integers(1, 4),
    n=st.integers(1, 6),
    targets=st.integers(1, 3),
    hidden=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    has_factors=st.booleans(),
)
def test_loss_and_gradient_are_those_of_autograd(nothing, runs, n, targets, hidden, has_factors):
    layout, weights, x, y = make_case(runs, n, targets, hidden, seed=n)
    generator = torch.Generator().manual_seed(n)
    factors = torch.rand(runs, generator=generator, dtype=torch.float64) if has_factors else None
    learner = Learner(layout, weights)
    for _ in range(2):  # the memory of the first step is used again
        loss = learner.loss_and_gradient(x, nothing(y, factors))
    own = leaves(weights)
    error = (predict(layout.stages(own), x) - y).square().mean(dim=(1, 2))
    expected = error if factors is None else error * factors
    torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=1e-12)
    expected.sum().backward()
    assert_close(learner.gradient, [weight.grad for weight in own])


class Bending:
    """Bends what comes to a place, and the targets along with it, as an augmentation may."""

    def __init__(self, targets, place):
        self.targets, self.place, self.seen = targets, place, []

    def loss_weights(self):
        return None

    def bend(self, x, y):
        return torch.sin(2 * x), y * x.mean(dim=2, keepdim=True).cos()

    def forward(self, place, x):
        self.seen.append((place, tuple(x.shape)))
        if place != self.place:
            return x
        self.leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            self.new = self.bend(self.leaf, self.targets)
        x, self.targets = (tensor.detach() for tensor in self.new)
        return x

    def backward(self, place, delta, of_targets):
        if place != self.place:
            return delta
        return torch.autograd.grad(self.new, self.leaf, (delta, of_targets))[0]


@pytest.mark.parametrize("place", ["block_1", "block_2"])
def test_what_acts_at_a_place_gets_every_block_and_its_derivative_counts(place):
    layout, weights, x, y = make_case(3, 6, 2, (5, 7))
    learner, bending = Learner(layout, weights), Bending(y, place)
    loss = learner.loss_and_gradient(x, bending)
    assert bending.seen == [("block_1", (3, 6, 5)), ("block_2", (3, 6, 7))]
    own = leaves(weights)
    for stage in layout.stages(own):
        x = stage.forward(x)
        if stage.place == place:
            x, y = bending.bend(x, y)
    expected = (x - y).square().mean(dim=(1, 2))
    torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=1e-12)
    expected.sum().backward()
    assert_close(learner.gradient, [weight.grad for weight in own])


def test_weights_return_by_their_names():
    nets = make_nets()
    layout, weights = stacked(nets)
    for run, net in enumerate(nets):
        named, own = layout.name(weights, run), net.state_dict()
        assert list(named) == list(own)
        assert all(torch.equal(named[name], weight) for name, weight in own.items())


def test_named_weights_have_memory_of_their_own():
    layout, weights = stacked(make_nets())
    before = layout.name(weights, 1)
    for weight in weights:
        weight.zero_()
    assert all(weight.any() for weight in before.values())


def test_stacked_weights_have_memory_of_their_own():
    nets = make_nets()
    for weight in stacked(nets)[1]:
        weight.zero_()
    assert all(weight.any() for net in nets for weight in net.state_dict().values())


def test_the_nets_follow_their_weights():
    """The optimizer changes these in place."""
    layout, weights = stacked(make_nets())
    stages = layout.stages(weights)
    for weight in weights:
        weight.zero_()
    assert not predict(stages, torch.ones(3, 6, 4).double()).any()


@pytest.mark.parametrize(("hidden", "widest"), [((5, 7), 7), ((1,), 2), ((9, 3, 3), 9)])
def test_the_widest_layer_may_be_any(hidden, widest):
    assert Layout.of(MLP(20, 2, hidden=hidden)).widest == widest
