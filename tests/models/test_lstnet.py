"""The net for series."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import FOMA, Mixup
from regaug.exceptions import ArgumentError
from regaug.models import LSTNet

SMALL = {"window": 31, "hidden_cnn": 7, "hidden_rnn": 6, "hidden_skip": 2, "kernel": 4}
SMALL |= {"skip": 5, "highway": 9, "dropout": 0.0}


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def make_x(n=5, window=31, columns=3, seed=0):
    return torch.randn(n, window, columns, generator=torch.Generator().manual_seed(seed))


def written_out(model, x):
    """The network sample by sample and step by step, with the weights of ``model``."""
    rows = []
    for sample in x:
        weight, bias = model.convolution[0].weight, model.convolution[0].bias
        steps = torch.stack(
            [
                F.relu((weight * sample[t : t + model.kernel].T).sum(dim=(1, 2)) + bias)
                for t in range(len(sample) - model.kernel + 1)
            ]
        )
        states = [last_state(model.recurrence, steps)]
        n_steps = (model.window - model.kernel) // model.skip if model.skip else 0
        for phase in range(model.skip):
            # Counted back from the last step, so that the newest rows are always seen.
            end = len(steps) - model.skip + phase
            places = [end - model.skip * back for back in reversed(range(n_steps))]
            states.append(last_state(model.skip_recurrence, steps[places]))
        row = model.head(torch.cat(states))
        if model.highway:
            w, b = model.autoregression.weight[0], model.autoregression.bias[0]
            row = row + torch.stack([sample[-model.highway :, j] @ w + b for j in range(len(row))])
        rows.append(row)
    return torch.stack(rows)


def last_state(gru, steps):
    cell = nn.GRUCell(gru.input_size, gru.hidden_size)
    cell.load_state_dict({key.removesuffix("_l0"): v for key, v in gru.state_dict().items()})
    state = torch.zeros(1, gru.hidden_size)
    for step in steps:
        state = cell(step[None], state)
    return state[0]


@pytest.mark.parametrize(("columns", "size", "total"), [(8, 50, 19_998), (321, 100, 325_871)])
def test_parameter_counts_follow_from_the_sizes(columns, size, total):
    model = LSTNet(columns, hidden_cnn=size, hidden_rnn=size)
    convolution = 6 * columns * size + size
    recurrence = 3 * (size * size + size * size + 2 * size)
    skip_recurrence = 3 * (size * 5 + 5 * 5 + 2 * 5)
    head = (size + 24 * 5) * columns + columns
    highway = 24 + 1
    assert count(model) == convolution + recurrence + skip_recurrence + head + highway == total


@pytest.mark.parametrize("window", [29, 30, 31, 9])  # 25, 26, 27 and 5 rows beyond the kernel
def test_the_prediction_is_the_written_out_network(window):
    model = LSTNet(3, **SMALL | {"window": window})
    x = make_x(window=window)
    torch.testing.assert_close(model(x), written_out(model, x))


@pytest.mark.parametrize("off", [{"skip": 0}, {"highway": 0}, {"skip": 0, "highway": 0}])
def test_the_skip_recurrence_and_the_highway_can_be_left_out(off):
    model = LSTNet(3, **SMALL | off)
    x = make_x()
    torch.testing.assert_close(model(x), written_out(model, x))
    assert count(model) < count(LSTNet(3, **SMALL))
    model(x).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_smallest_window_has_one_row_of_everything():
    model = LSTNet(1, window=1, kernel=1, skip=0, highway=1, dropout=0.0)
    x = make_x(window=1, columns=1)
    torch.testing.assert_close(model(x), written_out(model, x))


@pytest.mark.parametrize(("output", "function"), [("sigmoid", torch.sigmoid), ("tanh", torch.tanh)])
def test_the_output_function_is_applied_last(output, function):
    x = make_x()
    linear = LSTNet(3, **SMALL)
    torch.testing.assert_close(LSTNet(3, **SMALL, output_activation=output)(x), function(linear(x)))


def test_the_convolution_puts_out_channels_by_time():
    model = LSTNet(3, **SMALL)
    shapes = []
    model.convolution.register_forward_hook(lambda *call: shapes.append(call[2].shape))
    model(make_x())
    assert shapes == [(5, 7, 31 - 4 + 1)]


def test_dropout_acts_in_training_only():
    model = LSTNet(3, **SMALL | {"dropout": 0.5})
    x = make_x()
    assert not torch.equal(model(x), model(x))
    model.eval()
    torch.testing.assert_close(model(x), written_out(model, x))


def test_the_highway_sees_the_inputs_as_they_were_when_the_convolution_is_augmented():
    model = LSTNet(3, **SMALL)
    with torch.no_grad():  # leave nothing but the highway
        model.head.weight.zero_()
        model.head.bias.zero_()
    x, y = make_x(), make_x(window=1)[:, 0]
    plain = model(x)
    prediction, _ = FOMA(rho=0.9).at(model, "convolution")(x, y)
    torch.testing.assert_close(prediction, plain)


def test_mixup_of_the_features_mixes_linear_predictions():
    model = LSTNet(3, **SMALL)
    x, y = make_x(), make_x(window=1)[:, 0]
    plain = model(x)
    at = Mixup().at(model, "features")
    prediction, _ = at(x, y)
    lam, partners = at.params.lam, at.params.partners
    torch.testing.assert_close(prediction, lam * plain + (1 - lam) * plain[partners])


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"kernel": 32}, "kernel"),
        ({"skip": 28}, "skip"),
        ({"highway": 32}, "highway"),
        ({"dropout": 1.5}, "dropout"),
        ({"output_activation": "relu"}, "output_activation"),
    ],
)
def test_bad_settings_are_refused(options, argument):
    with pytest.raises(ArgumentError, match=f"`{argument}` must be"):
        LSTNet(3, **SMALL | options)
