"""Acting at a layer: right values, right targets, any module, and no trace left behind."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import FOMA
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

    def forward(self, x):
        z = self.block_2(self.block_1(x))
        z, _ = self.rnn(z[:, None])
        return self.head(z[:, 0])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(12, 3, generator=generator), torch.randn(12, 1, generator=generator)


def by_hand(net, x, y, params):
    """The same step, written out for block_1."""
    z, new_y = foma(net.block_1(x), y, lam=params.lam, k=params.k)
    z, _ = net.rnn(net.block_2(z)[:, None])
    return net.head(z[:, 0]), new_y


def hooks_of(net):
    return [
        module for module in net.modules() if module._forward_hooks or module._forward_pre_hooks
    ]


def assert_untouched(net):
    assert not hooks_of(net)
    assert "forward" not in net.__dict__


def test_the_loss_and_its_gradient_are_those_of_the_step_written_out(batch):
    x, y = batch
    net, reference, augmentation = Net(), Net(), FOMA()
    with augmentation.at(net, "block_1") as tap:
        loss = F.mse_loss(net(x), tap.targets(y))
        loss.backward()
    expected = F.mse_loss(*by_hand(reference, x, y, tap.params))
    expected.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(net.block_1[0].weight.grad, reference.block_1[0].weight.grad)
    assert tap.params is augmentation.params
    assert tap.place == "block_1"
    assert_untouched(net)


def test_targets_may_come_first(batch):
    x, y = batch
    net, reference = Net(), Net()
    with FOMA().at(net, "block_1") as tap:
        target = tap.targets(y)
        output = net(x)
        assert isinstance(output, torch.Tensor)
        loss = F.mse_loss(output, target)
        loss.backward()
    expected = F.mse_loss(*by_hand(reference, x, y, tap.params))
    expected.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(net.block_1[0].weight.grad, reference.block_1[0].weight.grad)
    assert not torch.equal(target, y)


USES = {
    "method": lambda output, y: (output().squeeze(1) - y().squeeze(1)).square().mean(),
    "function": lambda output, y: torch.mean((torch.squeeze(output(), 1) - y()[:, 0]) ** 2),
    "module": lambda output, y: nn.MSELoss()(output(), y()),
    "arithmetic": lambda output, y: (((2.0 * output() + 1.0) / 2.0 - 0.5 - y()) ** 2).mean(),
    "index": lambda output, y: F.mse_loss(output()[:, 0], y()[:, 0]),
    "stack": lambda output, y: F.mse_loss(
        torch.stack([output(), output.last]), y().expand(2, 12, 1)
    ),
}


@pytest.mark.parametrize("use", USES)
def test_the_output_can_be_used_before_its_values_are_known(batch, use):
    x, y = batch
    net, reference = Net(), Net()
    with FOMA().at(net, "block_1") as tap:

        def output():
            output.last = net(x)
            return output.last

        loss = USES[use](output, lambda: tap.targets(y))
        assert loss.isfinite()
    expected = F.mse_loss(*by_hand(reference, x, y, tap.params))
    torch.testing.assert_close(loss, expected)


def test_values_asked_for_too_early_say_what_to_do(batch):
    x, y = batch
    net = Net()
    with FOMA().at(net, "block_1") as tap:
        output = net(x)
        assert "waits for" in repr(output)
        for use in (float, bool, len, list):
            with pytest.raises(PlaceError, match=r"Call `tap.targets\(y\)` before"):
                use(output)
        tap.targets(y)
        assert output.shape == (12, 1)
        assert len(output) == 12
        assert torch.is_tensor(output + 0)
        assert "tensor" in repr(output)


def test_the_model_runs_once(batch):
    x, y = batch
    net, runs = Net(), []
    net.head.register_forward_hook(lambda *_: runs.append(1))
    with FOMA().at(net, "block_1") as tap:
        F.mse_loss(net(x), tap.targets(y))
    assert len(runs) == 1


@pytest.mark.parametrize("switch", ["net", "augmentation"])
def test_nothing_changes_outside_training(batch, switch):
    x, y = batch
    net, augmentation = Net(), FOMA()
    expected = net(x)
    (net if switch == "net" else augmentation).eval()
    with augmentation.at(net, "block_1") as tap:
        output, target = net(x), tap.targets(y)
    assert torch.equal(output, expected)
    assert target is y


def test_one_block_may_last_for_the_whole_training(batch):
    x, y = batch
    net = Net()
    with FOMA().at(net, "block_1") as tap:
        for _ in range(3):
            net.train()
            assert F.mse_loss(net(x), tap.targets(y)).isfinite()
            net.eval()
            assert tap.targets(y) is y
            assert isinstance(net(x), torch.Tensor)


def test_one_of_several_places_is_drawn_per_step(batch):
    x, y = batch
    net, places, shapes = Net(), [], set()
    names = ["block_1", "block_2.0", "input"]
    with FOMA().at(net, names) as tap:
        for _ in range(60):
            F.mse_loss(net(x), tap.targets(y))
            places.append(tap.place)
            shapes.add(tuple(hooks_of(net)))
    assert {name for name in names if places.count(name) >= 8} == set(names)
    assert shapes == {()}


def test_the_input_is_a_place_too(batch):
    x, y = batch
    net, augmentation = Net(), FOMA()
    with augmentation.at(net, "input") as tap:
        output, target = net(x), tap.targets(y)
        new_x, new_y = foma(x, y, lam=tap.params.lam, k=tap.params.k)
        torch.testing.assert_close(target, new_y)
        torch.testing.assert_close(output + 0, net.eval()(new_x))


@pytest.mark.parametrize("targets_first", [False, True])
def test_two_augmentations_act_in_one_step(batch, targets_first):
    x, y = batch
    net = Net()
    with FOMA().at(net, "block_1") as first, FOMA(k=2).at(net, "block_2") as second:
        if targets_first:
            target = second.targets(first.targets(y))
            output = net(x)
        else:
            output = net(x)
            target = second.targets(first.targets(y))
        loss = F.mse_loss(output, target)
        loss.backward()
    reference = Net()
    z, new_y = foma(reference.block_1(x), y, lam=first.params.lam, k=first.params.k)
    z, new_y = foma(reference.block_2(z), new_y, lam=second.params.lam, k=2)
    z, _ = reference.rnn(z[:, None])
    expected = F.mse_loss(reference.head(z[:, 0]), new_y)
    expected.backward()
    torch.testing.assert_close(target, new_y)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(net.block_1[0].weight.grad, reference.block_1[0].weight.grad)
    assert_untouched(net)


def test_appended_samples_go_through_the_rest_of_the_model(batch):
    x, y = batch
    net = Net()
    with FOMA(append=True).at(net, "block_1") as tap:
        output, target = net(x), tap.targets(y)
        assert output.shape == target.shape == (24, 1)
        assert torch.equal(target[:12], y)
        tap.targets(y)
        with pytest.raises(PlaceError, match="made 24 samples of 12"):
            net(x)


def test_the_weight_is_that_of_the_step(batch):
    x, y = batch
    net = Net()
    with FOMA(weight="lam").at(net, "block_1") as tap:
        loss = F.mse_loss(net(x), tap.targets(y)) * tap.params.weight
    assert loss.isfinite()
    assert tap.params.weight == tap.params.lam


def test_a_module_that_puts_out_a_tuple_is_named(batch):
    x, y = batch
    net = Net()
    with (
        pytest.raises(PlaceError, match="the module 'rnn' puts out a tuple"),
        FOMA().at(net, "rnn") as tap,
    ):
        F.mse_loss(net(x), tap.targets(y))
    assert_untouched(net)


def test_a_module_that_does_not_run_is_named(batch):
    x, y = batch
    net = Net()
    with (
        pytest.raises(PlaceError, match="'unused' did not run"),
        FOMA().at(net, "unused") as tap,
    ):
        F.mse_loss(net(x), tap.targets(y))
    assert_untouched(net)


def test_a_module_that_runs_twice_is_named(batch):
    x, y = batch
    relu = nn.ReLU()
    net = nn.Sequential(nn.Linear(3, 8), relu, nn.Linear(8, 8), relu, nn.Linear(8, 1))
    with pytest.raises(PlaceError, match="'1' runs more than once"), FOMA().at(net, "1") as tap:
        F.mse_loss(net(x), tap.targets(y))
    assert_untouched(net)


def test_an_output_with_other_rows_is_named(batch):
    x, y = batch
    net = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (12, 3)), nn.Linear(3, 1))
    with pytest.raises(PlaceError, match=r"output of '0' must have a row for each of the 12"):
        with FOMA().at(net, "0") as tap:
            F.mse_loss(net(x), tap.targets(y))
    assert_untouched(net)


def test_unknown_layers_get_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"Unknown layer 'blok_1'. Did you mean 'block_1'\?"):
        FOMA().at(Net(), "blok_1")
    with pytest.raises(UnknownNameError, match="Available: .*block_2.0.*input"):
        FOMA().at(Net(), ["block_1", ""])
    with pytest.raises(ArgumentError, match="`place` must name at least one layer"):
        FOMA().at(Net(), [])


@pytest.mark.parametrize("moment", ["before", "inside", "after"])
def test_nothing_is_left_behind_by_an_exception(batch, moment):
    x, y = batch
    net = Net()

    def fail(*_):
        raise RuntimeError("of the test")

    if moment == "inside":
        net.head.forward = fail
    with pytest.raises(RuntimeError, match="of the test"), FOMA().at(net, "block_1") as tap:
        if moment == "before":
            fail()
        net(x)
        if moment == "after":
            fail()
        tap.targets(y)
    assert_untouched(net)


def test_a_forgotten_call_is_reported(batch):
    x, y = batch
    net = Net()
    with pytest.raises(PlaceError, match=r"needs one call of `tap.targets\(y\)`"):
        with FOMA().at(net, "block_1"):
            net(x)
    with pytest.raises(PlaceError, match="the block ended with one of them missing"):
        with FOMA().at(net, "block_1") as tap:
            tap.targets(y)
    assert_untouched(net)


def test_a_forward_of_its_own_is_put_back(batch):
    net = Net()
    own = net.forward
    net.forward = own
    with FOMA().at(net, "block_1"):
        assert net.__dict__["forward"] != own
    assert net.__dict__["forward"] == own


@pytest.mark.parametrize("gradient", ["exact", "frozen"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_trains(batch, gradient, dtype):
    x, y = batch
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.autocast("cpu", dtype=dtype), FOMA(gradient=gradient).at(net, "1") as tap:
        loss = F.mse_loss(net(x).float(), tap.targets(y))
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
@pytest.mark.parametrize("name", ["1", "_orig_mod.1"])
def test_a_compiled_model_gives_the_same_loss(batch, name):
    x, y = batch
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    with FOMA().at(net, "1") as tap:
        expected = F.mse_loss(net(x), tap.targets(y))
    compiled = torch.compile(net, backend="aot_eager")
    compiled(x)  # compiled before the layer is tapped
    with FOMA().at(compiled, name) as tap:
        loss = F.mse_loss(compiled(x), tap.targets(y))
        loss.backward()
    torch.testing.assert_close(loss, expected)


def test_run_gives_a_plain_output_and_its_targets(batch):
    net, (x, y) = Net(), batch
    with FOMA().at(net, "block_1") as tap:
        output, new_y = tap.run(lambda: net(x), y)
        params = tap.params
    assert type(output) is torch.Tensor
    expected, expected_y = by_hand(net, x, y, params)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(new_y, expected_y)
    net.eval()
    with FOMA().at(net, "block_1") as tap:
        output, same_y = tap.run(lambda: net(x), y)
    assert torch.equal(output, net(x))
    assert same_y is y


def test_run_may_change_the_number_of_samples(batch):
    net, (x, y) = Net(), batch
    with FOMA(append=True).at(net, "block_1") as tap:
        output, new_y = tap.run(lambda: net(x), y)
    assert len(output) == len(new_y) == 24
    assert torch.equal(new_y[:12], y)


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_whole_step_may_be_run_around_the_layer(batch, is_compiled):
    net, (x, y) = Net(), batch
    model = torch.compile(net, backend="aot_eager") if is_compiled else net

    def step(x, y):
        view = y[:]
        output = model(x)
        return output, view, F.mse_loss(output, y)

    before = y.clone()
    tap = FOMA().at(net, "block_1")
    output, new_y, loss = tap.around(step, x, y)
    expected, expected_y = by_hand(net, x, y, tap.params)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(new_y, expected_y)
    torch.testing.assert_close(loss, F.mse_loss(expected, expected_y))
    first = list(net.block_1.parameters())
    gradients = torch.autograd.grad(loss, first)
    wanted = torch.autograd.grad(F.mse_loss(expected, expected_y), first)
    torch.testing.assert_close(gradients, wanted)
    assert torch.equal(y, before)
    assert not any(module._forward_hooks for module in net.modules())
    net.eval()
    assert tap.around(step, x, y)[1].data_ptr() == y.data_ptr()
