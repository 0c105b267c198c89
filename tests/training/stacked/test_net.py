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
    return layout, torch.stack([layout.join(net.state_dict()) for net in nets])


@given(
    runs=st.integers(1, 4),
    n=st.integers(1, 6),
    inputs=st.integers(1, 5),
    targets=st.integers(1, 3),
    hidden=st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_every_run_predicts_as_its_own_net(runs, n, inputs, targets, hidden):
    nets = make_nets(runs, inputs, targets, tuple(hidden))
    layout, rows = stacked(nets)
    x = torch.randn(runs, n, inputs, generator=torch.Generator().manual_seed(n)).double()
    prediction = predict(layout.stages(rows), x)
    expected = torch.stack([net(one) for net, one in zip(nets, x, strict=True)])
    torch.testing.assert_close(prediction, expected, rtol=0, atol=1e-12)


def test_the_gradient_of_every_run_is_that_of_its_own_net():
    nets = make_nets()
    layout, rows = stacked(nets)
    x = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0)).double()
    rows.requires_grad_()
    predict(layout.stages(rows), x).square().sum().backward()
    for net, one, gradient in zip(nets, x, rows.grad, strict=True):
        net(one).square().sum().backward()
        expected = layout.join({name: p.grad for name, p in net.named_parameters()})
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)


class Nothing:
    """What acts between the stages when nothing does."""

    def __init__(self, targets, factors=None):
        self.targets, self.factors = targets, factors

    def forward(self, place, x):
        return x

    def backward(self, place, delta, of_targets):
        return delta

    def loss_weights(self):
        return self.factors


def make_case(runs, n, targets, hidden, seed=0):
    layout, rows = stacked(make_nets(runs, 3, targets, tuple(hidden)))
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(runs, n, d, generator=generator, dtype=torch.float64) for d in (3, targets))
    return layout, rows, x, y


@given(
    runs=st.integers(1, 4),
    n=st.integers(1, 6),
    targets=st.integers(1, 3),
    hidden=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    has_factors=st.booleans(),
)
def test_loss_and_gradient_are_those_of_autograd(runs, n, targets, hidden, has_factors):
    layout, rows, x, y = make_case(runs, n, targets, hidden, seed=n)
    generator = torch.Generator().manual_seed(n)
    factors = torch.rand(runs, generator=generator, dtype=torch.float64) if has_factors else None
    learner = Learner(layout, rows)
    for _ in range(2):  # the memory of the first step is used again
        loss = learner.loss_and_gradient(x, Nothing(y, factors))
    leaf = rows.clone().requires_grad_()
    error = (predict(layout.stages(leaf), x) - y).square().mean(dim=(1, 2))
    expected = error if factors is None else error * factors
    torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=1e-12)
    expected.sum().backward()
    torch.testing.assert_close(learner.gradient, leaf.grad, rtol=0, atol=1e-12)


class Bending(Nothing):
    """Bends what comes to a place, and the targets along with it, as an augmentation may."""

    def __init__(self, targets, place):
        super().__init__(targets)
        self.place, self.seen = place, []

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
    layout, rows, x, y = make_case(3, 6, 2, (5, 7))
    learner, bending = Learner(layout, rows), Bending(y, place)
    loss = learner.loss_and_gradient(x, bending)
    assert bending.seen == [("block_1", (3, 6, 5)), ("block_2", (3, 6, 7))]
    leaf = rows.clone().requires_grad_()
    for stage in layout.stages(leaf):
        x = stage.forward(x)
        if stage.place == place:
            x, y = bending.bend(x, y)
    expected = (x - y).square().mean(dim=(1, 2))
    torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=1e-12)
    expected.sum().backward()
    torch.testing.assert_close(learner.gradient, leaf.grad, rtol=0, atol=1e-12)


def test_weights_return_by_their_names():
    nets = make_nets()
    layout, rows = stacked(nets)
    for net, row in zip(nets, rows, strict=True):
        named, own = layout.name(row), net.state_dict()
        assert list(named) == list(own)
        assert all(torch.equal(named[name], weight) for name, weight in own.items())


def test_named_weights_have_memory_of_their_own():
    layout, rows = stacked(make_nets())
    before = layout.name(rows[1])
    rows.zero_()
    assert all(weight.any() for weight in before.values())


def test_split_weights_share_the_memory_of_the_rows():
    """The optimizer changes the rows in place, and the net must see it."""
    layout, rows = stacked(make_nets())
    parts = layout.split(rows)
    rows.zero_()
    assert not any(part.any() for part in parts)


@pytest.mark.parametrize(("hidden", "widest"), [((5, 7), 7), ((1,), 2), ((9, 3, 3), 9)])
def test_the_widest_layer_may_be_any(hidden, widest):
    assert Layout.of(MLP(20, 2, hidden=hidden)).widest == widest
