"""The net for tables."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st

from regaug.exceptions import ArgumentError
from regaug.models import MLP
from regaug.models.mlp import NetForm


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_papers_net_has_two_hidden_layers_of_128():
    assert count(MLP(5)) == (5 * 128 + 128) + (128 * 128 + 128) + (128 + 1) == 17_409
    assert MLP(5).places == ("block_1", "block_2")


@given(st.integers(1, 9), st.integers(1, 4), st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_the_parameter_count_follows_from_the_widths(inputs, targets, hidden):
    widths = [inputs, *hidden, targets]
    expected = sum((a + 1) * b for a, b in itertools.pairwise(widths))
    assert count(MLP(inputs, targets, hidden=hidden)) == expected


def test_names_of_the_weights_are_regular():
    model = MLP(3, hidden=(4, 5))
    assert list(model.state_dict()) == [
        "block_1.linear.weight",
        "block_1.linear.bias",
        "block_2.linear.weight",
        "block_2.linear.bias",
        "head.weight",
        "head.bias",
    ]


def test_the_prediction_is_the_written_out_formula():
    model = MLP(3, 2, hidden=(4, 5), slope=0.3)
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    w = model.state_dict()
    h = F.leaky_relu(x @ w["block_1.linear.weight"].T + w["block_1.linear.bias"], 0.3)
    h = F.leaky_relu(h @ w["block_2.linear.weight"].T + w["block_2.linear.bias"], 0.3)
    torch.testing.assert_close(model(x), h @ w["head.weight"].T + w["head.bias"])


def test_initial_weights_are_those_of_torch_in_the_order_of_the_layers():
    model = MLP(3, hidden=(4, 5), seed=7)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        layers = [torch.nn.Linear(3, 4), torch.nn.Linear(4, 5), torch.nn.Linear(5, 1)]
    ours = [model.block_1.linear, model.block_2.linear, model.head]
    for our, layer in zip(ours, layers, strict=True):
        assert torch.equal(our.weight, layer.weight)
        assert torch.equal(our.bias, layer.bias)


def test_inputs_are_flattened():
    model = MLP(6)
    x = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(model(x), model(x.flatten(1)))


def test_a_net_without_hidden_layers_is_refused():
    with pytest.raises(ArgumentError, match="`hidden` must give the width of at least one layer"):
        MLP(3, hidden=())


@pytest.mark.parametrize(
    ("options", "argument"), [({"hidden": (8, 0)}, "hidden"), ({"slope": -0.1}, "slope")]
)
def test_bad_settings_are_refused(options, argument):
    with pytest.raises(ArgumentError, match=f"`{argument}` must be"):
        MLP(3, **options)


@pytest.mark.parametrize("periodic", [(), (1,), (0, 2, 3)])
@pytest.mark.parametrize("linear", [False, True])
def test_the_size_of_a_form_is_that_of_its_nets(periodic, linear):
    form = NetForm(4, 2, (5, 6), 0.1, periodic, 3, linear)
    net = form.make(seed=1)
    assert net.form == form
    assert form.size == sum(weight.numel() for weight in net.state_dict().values())
    assert NetForm(**form.to_dict()).size == form.size


def test_periodic_features_are_cosines_and_sines_of_turns_condensed():
    net = MLP(3, periodic=[2], frequencies=2, spread=0.4, seed=3)
    own, x = net.features, torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    for row in range(5):
        turns = [2 * math.pi * x[row, 2] * own.frequencies[f, 0] for f in range(2)]
        waves = torch.stack([*(t.cos() for t in turns), *(t.sin() for t in turns)])
        expected = torch.cat([x[row], waves @ own.weight[0] + own.bias[:, 0]])
        torch.testing.assert_close(own(x)[row], expected)


def test_the_linear_part_is_added_and_not_learned():
    net = MLP(3, linear=True, seed=1)
    plain = MLP(3, seed=1)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(net(x), plain(x))
    net.skip.weight.copy_(torch.ones(1, 3))
    torch.testing.assert_close(net(x), plain(x) + x.sum(dim=1, keepdim=True))
    assert not any(weight.requires_grad for weight in net.skip.parameters())


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ({"periodic": [3]}, "periodic"),
        ({"periodic": [0], "frequencies": 0}, "frequencies"),
        ({"periodic": [0], "spread": 0.0}, "spread"),
    ],
)
def test_periodic_features_that_cannot_be_are_refused(own, name):
    with pytest.raises(ArgumentError, match=f"`{name}` must be"):
        MLP(3, **own)
