"""What a recipe adds to the table net: periodic features, a linear part, waves of the rate."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regaug.data.base import Part, Split
from regaug.models import MLP
from regaug.training import Machine, Settings, fit, fit_many
from regaug.training.stacked import groundwork
from regaug.training.stacked.groundwork import (
    PENALTIES,
    Groundwork,
    column_factors,
    fit_linear,
)
from regaug.training.stacked.net import Layout, Learner, predict
from regaug.training.stacked.training import MOST_PERIODIC, make_table_net, periodic_columns

SMALL = (16, 16)
WIDE = {"hidden": SMALL, "dtype": torch.float64}


def make_split(train=40, columns=4, targets=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(columns, targets, generator=generator)

    def part(n):
        x = torch.randn(n, columns, generator=generator)
        x[:, 1] = (x[:, 1] > 0).float()
        y = x @ mixing + (3 * x[:, :1]).sin() + 0.1 * torch.randn(n, targets, generator=generator)
        return Part(x=x, y=y, rows=np.arange(n))

    return Split(part(train), part(20), part(25))


def test_the_gradient_with_periodic_features_is_that_of_autograd(nothing):
    nets = [
        MLP(5, 2, hidden=(6, 7), periodic=[4, 0], frequencies=3, spread=0.5, seed=seed).double()
        for seed in range(3)
    ]
    layout = Layout.of(nets[0])
    weights = layout.stack([net.state_dict() for net in nets], torch.float64)
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(3, 6, width, generator=generator).double() for width in (5, 2))
    learner = Learner(layout, weights)
    losses = learner.loss_and_gradient(x, nothing(y))
    for run, net in enumerate(nets):
        loss = (net(x[run]) - y[run]).square().mean()
        loss.backward()
        assert losses[run].item() == pytest.approx(loss.item())
        found = layout.name(learner.gradient, run)
        for name, weight in net.named_parameters():
            torch.testing.assert_close(found[name], weight.grad)
    torch.testing.assert_close(
        predict(layout.stages(weights), x),
        torch.stack([n(a) for n, a in zip(nets, x, strict=True)]),
    )


def test_periodic_features_hand_on_the_derivative_by_their_input():
    net = MLP(4, periodic=[1, 3], frequencies=2, spread=0.5).double()
    layout = Layout.of(net)
    weights = layout.stack([net.state_dict()], torch.float64)
    stage = layout.stages(weights, [torch.empty_like(weight) for weight in weights])[0]
    x = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
    net.features(x[0]).square().sum().backward()
    out = stage.learn(x.detach())
    torch.testing.assert_close(stage.backward(2 * out, is_first=False), x.grad)


def test_columns_with_two_values_have_no_periodic_features():
    x = torch.randn(30, 4)
    x[:, 1], x[:, 2] = (x[:, 1] > 0).float(), 1.0
    assert periodic_columns(x) == (0, 3)
    assert periodic_columns(torch.randn(9, MOST_PERIODIC)) == tuple(range(MOST_PERIODIC))
    assert periodic_columns(torch.randn(9, MOST_PERIODIC + 1)) == ()


@pytest.mark.parametrize("method", ["erm", "foma-rho", "manifold-mixup", "c-mixup"])
@pytest.mark.parametrize("schedule", ["constant", "waves"])
def test_runs_with_periodic_features_are_the_same_stacked_and_one_by_one(method, schedule):
    splits = [make_split(seed=seed) for seed in range(3)]
    settings = [
        Settings(epochs=4, batch_size=16, seed=seed, frequencies=3, spread=s, schedule=schedule)
        for seed, s in enumerate((0.1, 0.3, 0.1))
    ]
    many = fit_many(splits, method, settings, hidden=SMALL, dtype=torch.float64)
    for split, own, result in zip(splits, settings, many, strict=True):
        net = make_table_net(split, own, hidden=SMALL)
        assert net.form.periodic == (0, 2, 3)
        one = fit(net, split, method, own, machine=Machine(precision="64"))
        assert result.best_epoch == one.best_epoch
        torch.testing.assert_close(result.predictions["test"], one.predictions["test"])
        for name, weight in one.weights.items():
            torch.testing.assert_close(result.weights[name], weight, rtol=0, atol=1e-8)


# Methods whose batches are of rows with near targets take the targets as they are for that.
@pytest.mark.parametrize("method", ["erm", "mixup", "manifold-mixup"])
@pytest.mark.parametrize("relevance", [False, True])
def test_nets_see_scaled_columns_and_learn_what_ridge_leaves(method, relevance):
    # Pooled: the spreads of what is left are others.
    split = replace(make_split(targets=2), pooled=True)
    settings = Settings(epochs=4, batch_size=16, linear=True, frequencies=2, relevance=relevance)
    plain = replace(settings, linear=False, relevance=False)
    x, y = split.train.x.double(), split.train.y.double()
    scale = column_factors(x, y) if relevance else torch.ones(4)
    line = fit_linear(x * scale, y)
    rest = (y - line(x * scale)).square().mean().sqrt()

    def prepared(part):
        left = (part.y - line(part.x * scale)) / rest
        return replace(part, x=(part.x * scale).float(), y=left.float())

    left = Split(*map(prepared, (split.train, split.validation, split.test)), pooled=True)
    both = fit_many([split, split], method, [settings, plain], hidden=SMALL)
    expected = fit_many(left, method, [plain], hidden=SMALL)[0]
    found = both[0]
    assert found.best_epoch == expected.best_epoch
    wanted = rest * expected.predictions["test"] + line(split.test.x * scale)
    torch.testing.assert_close(found.predictions["test"].double(), wanted, rtol=1e-4, atol=1e-4)
    for own, other in zip(found.history, expected.history, strict=True):
        assert own.validation == pytest.approx(rest.item() * other.validation, rel=1e-4)
        assert own.loss == pytest.approx(rest.item() ** 2 * other.loss, rel=1e-4)
    alone = fit_many(split, method, [plain], hidden=SMALL)[0]
    torch.testing.assert_close(both[1].predictions["test"], alone.predictions["test"])


@pytest.mark.parametrize("frequencies", [0, 2])
@pytest.mark.parametrize(("linear", "relevance"), [(True, False), (False, True), (True, True)])
def test_what_was_done_before_a_net_learns_is_folded_into_its_weights(
    frequencies, linear, relevance
):
    split = make_split()
    own = {"linear": linear, "relevance": relevance, "frequencies": frequencies}
    settings = Settings(epochs=3, batch_size=16, **own)
    result = fit_many(split, "erm", [settings], hidden=SMALL)[0]
    net = replace(make_table_net(split, settings, hidden=SMALL).form, linear=linear).make()
    net.load_state_dict(dict(result.weights))
    torch.testing.assert_close(net(split.test.x), result.predictions["test"], rtol=1e-4, atol=1e-5)


def test_what_a_split_needs_is_found_once():
    split, settings = make_split(), Settings(linear=True, relevance=True)
    known = Groundwork.of(split, settings)
    assert Groundwork.of(split, replace(settings, learning_rate=0.1)) is known
    assert Groundwork.of(split, replace(settings, relevance=False)).scale is None
    assert Groundwork.of(make_split(), settings) is not known


def test_columns_that_matter_are_larger():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(150, 6, generator=generator).double()
    y = (2 * x[:, :1]).sin() + x[:, 1:2].square()
    factors = column_factors(x, y)
    assert factors[:2].min() > 3 * factors[2:].max()
    # Of two targets each counts as much as it varies.
    both = column_factors(x, torch.cat([y[:, :1], 3 * (2 * x[:, 5:]).sin()], dim=1))
    assert both[5] > both[0] > 2 * both[2:5].max()


def test_columns_are_left_alone_if_nothing_can_be_said_of_them():
    assert column_factors(torch.randn(20, 1).double(), torch.randn(20, 1).double()) is None
    assert column_factors(torch.randn(2, 4).double(), torch.randn(2, 1).double()) is None
    assert column_factors(torch.randn(20, 4).double(), torch.ones(20, 1).double()) is None


@pytest.mark.parametrize("average", [0.0, 0.5, 1.0])
def test_the_mean_of_the_weights_is_what_counts(average):
    """Epochs one by one, the weights of each taken into the mean by hand."""
    split = make_split()
    settings = Settings(epochs=5, batch_size=16, average=average, frequencies=2)
    result = fit_many(split, "erm", [settings], hidden=SMALL, dtype=torch.float64)[0]
    after = [
        fit_many(_blind(split), "erm", [replace(settings, average=0.0, epochs=epochs)], **WIDE)[0]
        for epochs in range(1, 6)
    ]
    net, mean, errors, nets = make_table_net(split, settings, hidden=SMALL).double(), None, [], []
    for epoch, own in enumerate(after):
        kept = min(average, epoch / (epoch + 1))
        mean = {
            name: weight if mean is None else kept * mean[name] + (1 - kept) * weight
            for name, weight in own.weights.items()
        }
        net.load_state_dict(mean)
        nets.append(mean)
        found = net(split.validation.x.double())
        errors.append((found - split.validation.y).square().mean().sqrt().item())
    assert [epoch.validation for epoch in result.history] == pytest.approx(errors, rel=1e-9)
    best = nets[result.best_epoch - 1]
    for name, weight in result.weights.items():
        torch.testing.assert_close(weight, best[name], rtol=0, atol=1e-9)


def _blind(split):
    """Without validation rows the last epoch is kept."""
    return Split(split.train, split.validation.take([]), split.test)


@pytest.mark.parametrize(
    ("n", "d", "m"), [(30, 4, 1), (30, 4, 2), (12, 40, 1), (2, 3, 1), (1, 2, 1)]
)
def test_the_penalty_is_that_of_leaving_one_out(n, d, m):
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(n, d, generator=generator).double()
    y = x[:, :1] + torch.randn(n, m, generator=generator).double()
    found = fit_linear(x, y)
    assert found(x).isfinite().all()
    if n < 5:
        return

    def slope(rows, target, penalty):
        own, of = x[rows] - x[rows].mean(0), y[rows, target] - y[rows, target].mean()
        # The share of the penalty is that of all rows, whichever are left out.
        gram = own.T @ own + n * penalty * torch.eye(d).double()
        return torch.linalg.solve(gram, own.T @ of)

    for target in range(m):
        slopes = torch.stack([slope(range(n), target, penalty) for penalty in PENALTIES])
        near = (slopes - found.slope[:, target]).abs().amax(dim=1)
        chosen = int(near.argmin())
        assert near[chosen] < 1e-8
        errors = []
        for penalty in PENALTIES:
            left = []
            for row in range(n):
                others = [other for other in range(n) if other != row]
                own = slope(others, target, penalty)
                offset = y[others, target].mean() - x[others].mean(0) @ own
                left.append((x[row] @ own + offset - y[row, target]).square())
            errors.append(float(torch.stack(left).mean()))
        assert errors[chosen] == pytest.approx(min(errors), rel=1e-6)


def test_penalties_that_are_tried_one_by_one_give_the_same_line(monkeypatch):
    x = torch.randn(50, 4, generator=torch.manual_seed(0)).double()
    y = torch.stack([x[:, 0], x.square().sum(1)], dim=1)
    at_once = fit_linear(x, y)
    monkeypatch.setattr(groundwork, "_MOST_LEFT", 1)
    one_by_one = fit_linear(x, y)
    torch.testing.assert_close(one_by_one.slope, at_once.slope, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one_by_one.offset, at_once.offset, rtol=1e-12, atol=1e-12)


def test_columns_and_targets_that_do_not_vary_are_no_trouble():
    x = torch.zeros(20, 3)
    x[:, 0] = torch.arange(20.0)
    found = fit_linear(x, torch.ones(20, 1))
    torch.testing.assert_close(found(x), torch.ones(20, 1).double())
