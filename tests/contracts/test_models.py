"""What every network keeps to. A new one is covered by being in the table and given a case."""

import copy
import functools
import inspect

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from regaug import ADA, FOMA, Mixup, models
from regaug.exceptions import ArgumentError, ArgumentTypeError, PlaceError

# Arguments of a small net, the shape of a sample, the number of targets. No dropout, so that a
# difference between two passes in training comes from the augmentation.
CASES = {
    "MLP": ({"inputs": 5, "outputs": 2, "hidden": [16, 8, 8], "slope": 0.2}, (5,), 2),
    "LSTNet": (
        {"outputs": 3, "window": 31, "hidden_cnn": 7, "hidden_rnn": 6, "hidden_skip": 2}
        | {"kernel": 4, "skip": 5, "highway": 9, "dropout": 0.0, "output_activation": "tanh"},
        (31, 3),
        3,
    ),
    "ResNet18": ({"outputs": 2, "channels": 1}, (1, 28, 28), 2),
    "DeepDTA": ({"outputs": 1, "drug": [6, 20], "protein": [4, 40]}, (6 * 20 + 4 * 40,), 1),
    "R2Plus1D18": ({"outputs": 1, "bias": 2.5}, (3, 4, 16, 16), 1),
}
# Where the rest of the net looks past the place at inputs of the old number of rows.
FIXED_ROWS = {("LSTNet", "convolution")}
ROWS = 6


@functools.cache
def build(name):
    return make(name, seed=0)


def make(name, **changes):
    # A copy is made faster than a net with new weights.
    return (
        getattr(models, name)(**CASES[name][0] | changes) if changes else copy.deepcopy(build(name))
    )


PLACES = [(name, place) for name in CASES for place in build(name).places]


def arguments_of(model):
    """Return what a net was built with: an attribute for every argument."""
    return {name: getattr(model, name) for name in inspect.signature(type(model)).parameters}


def make_batch(name, n=ROWS, seed=0):
    _, shape, targets = CASES[name]
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, *shape, generator=generator), torch.randn(n, targets, generator=generator)


def weights_equal(first, second):
    pairs = zip(first.state_dict().items(), second.state_dict().items(), strict=True)
    return all(a == b and torch.equal(u, v) for (a, u), (b, v) in pairs)


def assert_finite_gradients(model):
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def test_every_network_has_a_case():
    assert set(CASES) == set(models.__all__)


def test_a_prediction_has_a_row_per_sample_and_a_column_per_target(name):
    x, y = make_batch(name)
    assert make(name)(x).shape == y.shape


def test_every_parameter_gets_a_finite_gradient(name):
    x, y = make_batch(name)
    model = make(name)
    F.mse_loss(model(x), y).backward()
    assert_finite_gradients(model)


def test_the_input_is_not_changed(name):
    x, _ = make_batch(name)
    before = x.clone()
    make(name)(x)
    assert torch.equal(x, before)


def test_the_seed_alone_decides_the_initial_weights(name):
    torch.manual_seed(1)
    first = make(name, seed=3)
    torch.manual_seed(2)
    assert weights_equal(first, make(name, seed=3))
    assert not weights_equal(first, make(name, seed=4))


def test_building_leaves_the_global_generator_alone(name):
    state = torch.get_rng_state()
    make(name, seed=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_in_eval_a_prediction_depends_on_its_own_row_alone(name):
    x, _ = make_batch(name)
    model = make(name).eval()
    together = model(x)
    assert torch.equal(model(x), together)
    alone = torch.cat([model(row[None]) for row in x])
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-5)
    assert len(together.unique(dim=0)) == ROWS


def test_a_net_of_the_same_arguments_is_the_same(name):
    model = make(name, seed=5)
    again = type(model)(**arguments_of(model))
    assert weights_equal(model, again)
    assert arguments_of(again) == arguments_of(model)
    x, _ = make_batch(name)
    assert torch.equal(again.eval()(x), model.eval()(x))


def test_the_width_of_the_output_is_called_outputs(name):
    assert make(name).outputs == CASES[name][2]


def test_weights_can_be_loaded_into_another_net(name):
    model, other = make(name, seed=1), make(name, seed=2)
    other.load_state_dict(model.state_dict())
    x, _ = make_batch(name)
    assert torch.equal(other.eval()(x), model.eval()(x))


def test_a_copy_shares_nothing(name):
    model = make(name)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        next(twin.parameters()).zero_()
    assert not weights_equal(model, twin)


def test_double_precision_is_kept(name):
    x, _ = make_batch(name)
    assert make(name).double()(x.double()).dtype == torch.float64


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in ("ResNet18", "R2Plus1D18") else name
        for name in CASES
    ],
)
def test_bfloat16_autocast_trains(name):
    x, y = make_batch(name)
    model = make(name)
    with torch.autocast("cpu", torch.bfloat16):
        prediction = model(x)
    F.mse_loss(prediction.float(), y).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_a_wrong_shape_is_refused_with_the_right_one(name):
    x, _ = make_batch(name)
    for wrong in (x[0], x[:, :-1], x[None], torch.zeros(3)):
        with pytest.raises(ArgumentError, match=r"`x` must be \(n, .* got shape"):
            build(name)(wrong)


@pytest.mark.parametrize(("seed", "error"), [(-1, ArgumentError), (0.5, ArgumentTypeError)])
def test_a_seed_that_is_no_whole_number_is_refused(name, seed, error):
    with pytest.raises(error, match="`seed` must be"):
        make(name, seed=seed)


def test_sizes_must_be_positive_whole_numbers(name):
    sizes = {key: value for key, value in CASES[name][0].items() if type(value) is int}
    for key in sizes:
        with pytest.raises(ArgumentError, match=f"`{key}` must be"):
            make(name, **{key: -1})
        with pytest.raises(ArgumentTypeError, match=f"`{key}` must be"):
            make(name, **{key: 1.5})


def test_places_are_different_and_there(name):
    model = make(name)
    assert isinstance(model.places, tuple)
    assert len(set(model.places)) == len(model.places) > 0
    assert set(model.places) <= set(dict(model.named_modules()))


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_place_runs_once_and_puts_out_a_row_per_sample(name, place):
    outputs = []
    model = make(name)
    model.get_submodule(place).register_forward_hook(lambda *call: outputs.append(call[2]))
    model(make_batch(name)[0])
    assert len(outputs) == 1
    assert isinstance(outputs[0], torch.Tensor)
    assert len(outputs[0]) == ROWS


AUGMENTATIONS = {
    "foma": lambda x, y: FOMA(rho=0.9),
    "mixup": lambda x, y: Mixup(),
    "ada": lambda x, y: ADA(clusters=2).fit(x, y),
}


def cases():
    """Give every place with every augmentation; of the largest net one is tried every time."""
    for name, place in PLACES:
        for own in AUGMENTATIONS:
            is_slow = name == "R2Plus1D18" and own != "foma"
            yield pytest.param(name, place, own, marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.parametrize(("name", "place", "augmentation"), list(cases()))
def test_an_augmentation_at_a_place_changes_prediction_and_targets(name, place, augmentation):
    x, y = make_batch(name)
    model = make(name)
    plain = model(x).detach()
    prediction, targets = AUGMENTATIONS[augmentation](x, y).at(model, place)(x, y)
    F.mse_loss(prediction, targets).backward()
    assert_finite_gradients(model)
    assert not torch.allclose(prediction, plain, atol=1e-5)
    assert not torch.allclose(targets, y, atol=1e-5)


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_in_eval_an_augmentation_at_a_place_does_nothing(name, place):
    x, y = make_batch(name)
    model = make(name).eval()
    plain = model(x)
    prediction, targets = FOMA(rho=0.9).at(model, place)(x, y)
    assert torch.equal(prediction, plain)
    assert targets is y


@pytest.mark.parametrize(("options", "rows"), [({"append": True}, 12), ({"paired": True}, 3)])
@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_place_may_change_the_number_of_rows(name, place, options, rows):
    x, y = make_batch(name)
    model = make(name)
    at = Mixup(**options).at(model, place)
    if (name, place) in FIXED_ROWS:
        with pytest.raises(PlaceError, match=f"turned {ROWS} rows into {rows}"):
            at(x, y)
        return
    prediction, targets = at(x, y)
    assert len(prediction) == len(targets) == rows
    assert F.mse_loss(prediction, targets).isfinite()


@pytest.mark.parametrize(("name", "place"), [pair for pair in PLACES if pair not in FIXED_ROWS])
def test_what_follows_a_place_depends_on_it_alone(name, place):
    """Replace the output of the place by that of other inputs: the prediction is theirs."""
    model = make(name).eval()
    x, other = make_batch(name)[0], make_batch(name, seed=1)[0]
    outputs = []
    module = model.get_submodule(place)
    handle = module.register_forward_hook(lambda *call: outputs.append(call[2]))
    expected = model(other)
    handle.remove()
    module.register_forward_hook(lambda *call: outputs[0])
    assert torch.equal(model(x), expected)
