"""Acting at a layer: right values, right targets, any module, and no trace left behind."""

import copy
import pickle
from collections import OrderedDict, namedtuple

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regaug import FOMA, Compose, Mixup
from regaug.exceptions import ArgumentError, PlaceError, UnknownNameError
from regaug.functional import foma


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.block_1 = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        self.block_2 = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.rnn = nn.GRU(8, 8)
        self.unused = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x, *, shift=0.0):
        return self.after(self.block_1(x)) + shift

    def after(self, z):
        z, _ = self.rnn(self.block_2(z)[:, None])
        return self.head(z[:, 0])


class Skip(nn.Module):
    """What goes around a layer is not augmented."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.inner = nn.Linear(3, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        z = self.first(x)
        return self.head(z + self.inner(z))


def make_sequential():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(12, 3, generator=generator), torch.randn(12, 1, generator=generator)


def by_hand(net, x, y, params):
    """The same step, written out for block_1."""
    z, new_y = foma(net.block_1(x), y, lam=params.lam, k=params.k)
    return net.after(z), new_y


def assert_untouched(net):
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert "forward" not in net.__dict__


def gradients(net, loss):
    """Return the loss and the gradients of all weights."""
    net.zero_grad()
    loss.backward()
    return [loss.detach(), *(None if p.grad is None else p.grad.clone() for p in net.parameters())]


def skip_by_hand(net, augment, x, y):
    z = net.first(x)
    inner, new_y = augment(net.inner(z), y)
    return net.head(z + inner), new_y


def sequential_by_hand(net, augment, x, y):
    z, new_y = augment(net[:2](x), y)
    return net[2:](z), new_y


def net_by_hand(net, augment, x, y):
    z, new_y = augment(net.block_1(x), y)
    return net.after(z), new_y


STEPS = {
    "sequential": (make_sequential, "1", sequential_by_hand),
    "skip": (Skip, "inner", skip_by_hand),
    "net": (Net, "block_1", net_by_hand),
}
AUGMENTATIONS = {
    "foma": FOMA,
    "sometimes": lambda: FOMA(p=0.5),
    "frozen": lambda: FOMA(gradient="frozen"),
    "append": lambda: FOMA(append=True),
    "paired": lambda: Mixup(paired=True),
    "chain": lambda: Compose(Mixup(), FOMA(weight="lam")),
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize("step", STEPS)
def test_the_call_is_the_step_written_out_by_hand(batch, step, name):
    make, place, written_out = STEPS[step]
    if step == "skip" and AUGMENTATIONS[name]().changes_rows:
        pytest.skip("what goes around the layer has its rows as before")
    net, alike, augment = make(), AUGMENTATIONS[name](), AUGMENTATIONS[name]()
    at = augment.at(net, place)
    for _ in range(4):
        prediction, new_y = at(*batch)
        found = gradients(net, augment.weight * F.mse_loss(prediction, new_y))
        expected, expected_y = written_out(net, alike, *batch)
        torch.testing.assert_close(
            found, gradients(net, alike.weight * F.mse_loss(expected, expected_y))
        )
        torch.testing.assert_close(new_y, expected_y)
    assert at.params is augment.params
    assert at.place == place
    assert_untouched(net)


def test_the_model_runs_once_and_gets_what_else_is_given(batch):
    net, runs = Net(), []
    net.head.register_forward_hook(lambda *_: runs.append(1))
    at = FOMA().at(net, "block_1")
    prediction, _ = at(*batch, shift=1.0)
    assert len(runs) == 1
    torch.testing.assert_close(prediction, by_hand(net, *batch, at.params)[0] + 1.0)


@pytest.mark.parametrize("switch", ["net", "augmentation"])
@pytest.mark.parametrize("place", ["block_1", "input"])
def test_nothing_changes_outside_training(batch, switch, place):
    x, y = batch
    net, augmentation = Net(), FOMA()
    expected = net(x)
    (net if switch == "net" else augmentation).eval()
    output, target = augmentation.at(net, place)(x, y)
    assert torch.equal(output, expected)
    assert target is y


def test_one_of_several_places_is_drawn_per_call(batch):
    x, y = batch
    net, places = Net(), []
    names = ["block_1", "block_2.0", "input"]
    at = FOMA().at(net, names)
    for _ in range(60):
        prediction, new_y = at(x, y)
        places.append(at.place)
        if at.place == "block_1":
            torch.testing.assert_close((prediction, new_y), by_hand(net, x, y, at.params))
    assert {name for name in names if places.count(name) >= 8} == set(names)
    assert_untouched(net)


def test_the_input_is_a_place_too(batch):
    x, y = batch
    net = Net()
    at = FOMA().at(net, "input")
    output, target = at(x, y)
    new_x, new_y = foma(x, y, lam=at.params.lam, k=at.params.k)
    torch.testing.assert_close(target, new_y)
    torch.testing.assert_close(output, net(new_x))


def test_two_augmentations_act_in_one_step(batch):
    x, y = batch
    net, reference = Net(), Net()
    first, second = FOMA().at(net, "block_1"), FOMA(k=2).at(net, "block_2")
    output, target = first.act_in(second, x, y)
    z, new_y = foma(reference.block_1(x), y, lam=first.params.lam, k=first.params.k)
    z, new_y = foma(reference.block_2(z), new_y, lam=second.params.lam, k=2)
    z, _ = reference.rnn(z[:, None])
    expected = F.mse_loss(reference.head(z[:, 0]), new_y)
    torch.testing.assert_close(target, new_y)
    torch.testing.assert_close(
        gradients(net, F.mse_loss(output, target)), gradients(reference, expected)
    )
    assert_untouched(net)


def test_the_weight_is_that_of_the_call(batch):
    augment = FOMA(weight="lam")
    at = augment.at(Net(), "block_1")
    at(*batch)
    assert augment.weight == at.params.weight == at.params.lam != 1.0


# Modules that put out a tuple


class Pair(nn.Module):
    """Puts out a tuple, a list or a named tuple, of which the model uses both items."""

    kinds = {  # noqa: RUF012
        "tuple": lambda *items: items,
        "list": lambda *items: list(items),
        "named": namedtuple("Both", ["a", "b"]),
    }

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.kind = kind
        self.a, self.b, self.head = nn.Linear(3, 8), nn.Linear(3, 8), nn.Linear(8, 1)
        self.both = nn.Module()
        self.both.forward = lambda x: self.kinds[kind](self.a(x), self.b(x))

    def forward(self, x):
        both = self.both(x)
        assert type(both) is type(self.kinds[self.kind](1, 2))
        return self.head(both[0] * both[1])


@pytest.mark.parametrize("kind", Pair.kinds)
@pytest.mark.parametrize("output", [0, 1])
def test_of_several_outputs_one_is_augmented(batch, kind, output):
    x, y = batch
    net, reference = Pair(kind), Pair(kind)
    at = FOMA().at(net, "both", output=output)
    prediction, new_y = at(x, y)
    items = [reference.a(x), reference.b(x)]
    items[output], expected_y = foma(items[output], y, lam=at.params.lam, k=at.params.k)
    expected = F.mse_loss(reference.head(items[0] * items[1]), expected_y)
    torch.testing.assert_close(
        gradients(net, F.mse_loss(prediction, new_y)), gradients(reference, expected)
    )


@pytest.mark.parametrize("kind", Pair.kinds)
def test_of_several_outputs_the_first_tensor_is_meant(batch, kind):
    first, named = (FOMA().at(Pair(kind), "both", output=key)(*batch) for key in (None, 0))
    assert all(torch.equal(a, b) for a, b in zip(first, named, strict=True))


class Outputs(nn.Module):
    """A module that puts out anything."""

    def __init__(self, make):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.head = nn.Linear(3, 8), nn.Linear(8, 1)
        self.any = nn.Module()
        self.any.forward = make

    def forward(self, x):
        self.seen = self.any(self.first(x))
        return self.head(self.seen if isinstance(self.seen, torch.Tensor) else self.first(x))


class Ordered(OrderedDict):
    """What some libraries put out: a dict of their own."""


@pytest.mark.parametrize(
    ("make", "output", "key"),
    [
        (lambda z: (None, "words", z, -z), None, 2),
        (lambda z: [3, z], None, 1),
        (lambda z: {"mask": None, "a": z, "b": -z}, None, "a"),
        (lambda z: Ordered(a=z, b=-z), "b", "b"),
        (lambda z: z, 0, None),
    ],
    ids=["behind others", "list", "dict", "by its key", "only one"],
)
def test_the_others_stay_as_they_are(batch, make, output, key):
    x, y = batch
    net = Outputs(make)
    at = Mixup().at(net, "any", output=output)
    at(x, y)
    before = make(net.first(x))
    assert type(net.seen) is type(before)
    keys = before if isinstance(before, dict) else range(len(before))
    for name in [] if key is None else keys:
        old, new = before[name], net.seen[name]
        if name == key:
            expected, _ = Mixup().transform(old, y, at.params)
            torch.testing.assert_close(new, expected)
        elif isinstance(old, torch.Tensor):
            torch.testing.assert_close(new, old)
        else:
            assert new is old


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_needs_no_number(make):
    class Series(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.rnn, self.head = make(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    x, y = torch.randn(12, 5, 3), torch.randn(12, 1)
    net = Series()
    at = Mixup().at(net, "rnn")
    prediction, new_y = at(x, y)
    hidden, expected_y = Mixup().transform(net.rnn(x)[0], y, at.params)
    torch.testing.assert_close(prediction, net.head(hidden[:, -1]))
    torch.testing.assert_close(new_y, expected_y)


def test_an_output_that_there_is_not_is_named(batch):
    net = Pair("tuple")
    with pytest.raises(PlaceError, match=r"one of the 2 outputs of 'both' \(0, 1\), got 2"):
        FOMA().at(net, "both", output=2)(*batch)
    with pytest.raises(PlaceError, match=r"outputs of 'any' \('a', 'b'\), got 'c'"):
        FOMA().at(Outputs(lambda z: {"a": z, "b": z}), "any", output="c")(*batch)
    with pytest.raises(PlaceError, match="'any' puts out a tuple.*output=0"):
        FOMA().at(Outputs(lambda z: ("a", None)), "any")(*batch)
    assert_untouched(net)


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.pack = nn.Module()
        lengths = torch.tensor([4, 3, 1])
        self.pack.forward = lambda x: pack_padded_sequence(x, lengths, batch_first=True)
        self.rnn, self.head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)

    def forward(self, x):
        z, _ = self.rnn(self.pack(x))
        z, _ = pad_packed_sequence(z, batch_first=True)
        return self.head(z[:, 0])


@pytest.mark.parametrize("place", ["pack", "rnn"])
@pytest.mark.parametrize("n", [3, 8])  # eight is the number of all time steps
def test_packed_sequences_are_refused_with_the_way_out(place, n):
    x, y = torch.randn(3, 4, 3), torch.randn(n, 1)
    with pytest.raises(PlaceError, match=f"'{place}' puts out a packed .*pad_packed_sequence"):
        Mixup().at(Packed(), place)(x, y)


def test_time_steps_are_not_taken_for_samples():
    class Series(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(3, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.rnn(x)[0][-1])

    for steps in (5, 12):  # as many as there are samples, too
        with pytest.raises(PlaceError, match=r"row for each of the 12 .* batch_first=True: LSTM"):
            Mixup().at(Series(), "rnn")(torch.randn(steps, 12, 3), torch.randn(12, 1))


# What is refused


def test_a_module_that_does_not_run_is_named(batch):
    net = Net()
    with pytest.raises(PlaceError, match="'unused' did not run"):
        FOMA().at(net, "unused")(*batch)
    assert_untouched(net)


def test_a_module_that_runs_twice_is_named(batch):
    relu = nn.ReLU()
    net = nn.Sequential(nn.Linear(3, 8), relu, nn.Linear(8, 8), relu, nn.Linear(8, 1))
    with pytest.raises(PlaceError, match="'1' runs more than once"):
        FOMA().at(net, "1")(*batch)
    assert_untouched(net)


def test_an_output_with_other_rows_is_named(batch):
    net = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (12, 3)), nn.Linear(3, 1))
    with pytest.raises(PlaceError, match=r"output of '0' must have a row for each of the 12"):
        FOMA().at(net, "0")(*batch)
    assert_untouched(net)


def test_unknown_layers_get_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"Unknown layer 'blok_1'. Did you mean 'block_1'\?"):
        FOMA().at(Net(), "blok_1")
    with pytest.raises(UnknownNameError, match="Available: .*block_2.0.*input"):
        FOMA().at(Net(), ["block_1", ""])
    with pytest.raises(ArgumentError, match="`place` must name at least one layer"):
        FOMA().at(Net(), [])


def test_nothing_is_left_behind_by_an_exception(batch):
    net = Net()

    def fail(*_):
        raise RuntimeError("of the test")

    net.head.forward = fail
    with pytest.raises(RuntimeError, match="of the test"):
        FOMA().at(net, "block_1")(*batch)
    assert_untouched(net)


# Other ways to run a model


@pytest.mark.parametrize("gradient", ["exact", "frozen"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_call_is_the_step_written_out(batch, gradient, dtype):
    net = make_sequential()
    augment, alike = FOMA(gradient=gradient), FOMA(gradient=gradient)
    with torch.autocast("cpu", dtype=dtype):
        prediction, new_y = augment.at(net, "1")(*batch)
        expected, expected_y = sequential_by_hand(net, alike, *batch)
    assert prediction.dtype == dtype
    found = gradients(net, F.mse_loss(prediction.float(), new_y))
    torch.testing.assert_close(found, gradients(net, F.mse_loss(expected.float(), expected_y)))
    assert all(part.isfinite().all() for part in found)


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
@pytest.mark.parametrize("name", ["1", "_orig_mod.1", "in place", "a part"])
def test_a_compiled_model_gives_the_same(batch, name):
    net, reference = make_sequential(), make_sequential()
    compiled, place = net, "1"
    if name == "in place":
        net.compile(backend="aot_eager")
    elif name == "a part":
        compiled = nn.Sequential(torch.compile(net[:4], backend="aot_eager"), net[4])
        place = "0._orig_mod.1"
    else:
        compiled, place = torch.compile(net, backend="aot_eager"), name
    compiled(batch[0])  # compiled before anything acts at a layer
    at, alike = FOMA().at(compiled, place), FOMA()
    for _ in range(2):
        found = gradients(net, F.mse_loss(*at(*batch)))
        expected = F.mse_loss(*sequential_by_hand(reference, alike, *batch))
        torch.testing.assert_close(found, gradients(reference, expected))


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_whole_step_may_be_run_with_the_layer_augmented(batch, is_compiled):
    net, (x, y) = Net(), batch
    model = torch.compile(net, backend="aot_eager") if is_compiled else net

    def step(x, y):
        view = y[:]
        output = model(x)
        return output, view, F.mse_loss(output, y)

    before = y.clone()
    at = FOMA().at(net, "block_1")
    output, new_y, loss = at.act_in(step, x, y)
    expected, expected_y = by_hand(net, x, y, at.params)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(new_y, expected_y)
    wanted = gradients(net, F.mse_loss(expected, expected_y))
    torch.testing.assert_close(gradients(net, loss), wanted)
    assert torch.equal(y, before)
    assert_untouched(net)
    net.eval()
    assert at.act_in(step, x, y)[1].data_ptr() == y.data_ptr()


def test_a_model_may_be_run_by_a_function_of_its_own(batch):
    net, (x, y) = Net(), batch
    at = FOMA().at(net, "block_1")
    prediction, new_y = at.call(lambda x: net(x["x"]), {"x": x}, y)
    torch.testing.assert_close((prediction, new_y), by_hand(net, x, y, at.params))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_model_can_be_copied_between_calls(batch, copied):
    net = Net()
    loss = F.mse_loss(*FOMA().at(net, "block_1")(*batch))
    other = copied(net)
    loss.backward()
    assert torch.equal(other(batch[0]), net(batch[0]))


class Branches(nn.Module):
    """Two layers side by side."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.head = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.cat([self.left(x), self.right(x)], dim=1))


def test_a_branch_with_more_rows_than_the_others_is_told(batch):
    x, y = batch
    net, n = Branches(), len(batch[1])
    with pytest.raises(RuntimeError, match="Sizes of tensors must match") as error:
        Mixup(append=True).at(net, "left")(x, y)
    note = error.value.__notes__[0]
    assert f"at 'left' had made {2 * n} rows of {n}" in note
    assert "behind the place where they meet" in note
    assert_untouched(net)
    prediction, new_y = Mixup(append=True).at(net, "head")(x, y)
    assert len(prediction) == len(new_y) == 2 * n
    with pytest.raises(RuntimeError) as error:  # which has nothing to do with it
        Mixup().at(net, "left")(x[:, :2], y)
    assert not hasattr(error.value, "__notes__")
