"""The parts of a step: the augmented loss, the optimizer, the rate, and words for divergence."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from regaug import FOMA, CMixup, Identity, Mixup, _random
from regaug.data.base import Part, Split
from regaug.exceptions import ArgumentError, ArgumentTypeError, DivergedError, PlaceError
from regaug.models import MLP
from regaug.training import Settings, fit, fit_many
from regaug.training.checkpoint import Checkpoints
from regaug.training.step import (
    AugmentedLoss,
    call_model,
    explain_divergence,
    make_optimizer,
    tiny_as_zero,
)

TINY = torch.finfo(torch.float32).tiny


def make_batch(n=12, targets=1, seed=0):
    generator = _random.make_generator(seed)
    return torch.randn(n, 3, generator=generator), torch.randn(n, targets, generator=generator)


def make_net(targets=1):
    return MLP(3, targets, hidden=(6, 6))


def gradients(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def same(some, others):
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def make_loss(model, augmentation, place, **options):
    at = None if place == "input" else augmentation.at(model, place)
    return AugmentedLoss(model, augmentation, at, **options)


class TwoInputs(nn.Module):
    """A network of two inputs, which remembers how it was called."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.Linear(3, 5), nn.Linear(3, 5), nn.Linear(5, 1)

    def forward(self, a, b):
        self.given = a, b
        return self.head(self.a(a) + self.b(b))


FORMS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"b": b, "a": a},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_several_inputs_are_the_arguments_of_a_model(form):
    (a, _), (b, _), net = make_batch(), make_batch(seed=1), TwoInputs()
    assert torch.equal(call_model(net, form(a, b)), net(a, b))
    assert torch.equal(call_model(make_net(), a), make_net()(a))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_several_inputs_are_augmented_with_one_draw(form):
    (a, y), (b, _), net = make_batch(), make_batch(seed=1), TwoInputs()
    AugmentedLoss(net, Mixup())(form(a, b), y)
    new, _ = Mixup()(torch.cat([a, b] if form is not FORMS["dict"] else [b, a], dim=1), y)
    expected = new.split(3, dim=1) if form is not FORMS["dict"] else new.split(3, dim=1)[::-1]
    assert same(net.given, expected)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("augmentation", [Mixup, FOMA])
def test_at_a_layer_a_model_of_several_inputs_is_given_them_as_they_are(form, augmentation):
    (a, y), (b, _), net = make_batch(), make_batch(seed=1), TwoInputs()
    loss = make_loss(net, augmentation(), "a")(form(a, b), y)
    assert net.given[0] is a
    assert net.given[1] is b
    hidden, new_y = augmentation()(net.a(a), y)
    assert torch.equal(loss, F.mse_loss(net.head(hidden + net.b(b)), new_y))


def test_plain_training_takes_codes():
    ids, net = torch.arange(12).reshape(6, 2), nn.EmbeddingBag(12, 1)
    assert AugmentedLoss(net, Identity())(ids, torch.zeros(6, 1)).isfinite()


def test_predictions_of_a_window_may_have_its_shape():
    x, y = make_batch(targets=6)
    net = nn.Sequential(nn.Linear(3, 6), nn.Unflatten(1, (3, 2)))
    loss = AugmentedLoss(net, Identity())(x, y)
    assert torch.equal(loss, F.mse_loss(net(x).flatten(1), y))


def test_a_model_that_puts_out_no_tensor_is_refused():
    x, y = make_batch()
    with pytest.raises(ArgumentTypeError, match="`model` must put out one tensor, got a tuple"):
        AugmentedLoss(nn.LSTM(3, 1), Identity())(x, y)


def test_divergence_of_several_inputs_is_put_in_words():
    (a, y), (b, _) = make_batch(), make_batch(seed=1)
    said = explain_divergence(TwoInputs(), "here", math.nan, (a, b.long()), y, Settings())
    assert "12 rows, inputs from" in said


@pytest.mark.parametrize("targets", [1, 2])
def test_the_plain_loss_is_the_mean_squared_error(targets):
    x, y = make_batch(targets=targets)
    model = make_net(targets)
    loss = AugmentedLoss(model, Identity())(x, y)
    assert loss.item() == pytest.approx((model(x) - y).square().mean().item(), rel=1e-6)


def test_on_inputs_the_model_sees_the_augmented_batch():
    x, y = make_batch()
    model = make_net()
    loss = AugmentedLoss(model, Mixup())(x, y)
    new_x, new_y = Mixup()(x, y)
    assert torch.equal(loss, F.mse_loss(model(new_x), new_y))


def test_at_a_layer_the_rest_of_the_model_sees_the_augmented_output():
    x, y = make_batch()
    model, other = make_net(), make_net()
    augmented = make_loss(model, FOMA(rho=0.5), "block_1")
    augmented(x, y).backward()
    hidden, new_y = FOMA(rho=0.5)(other.block_1(x), y)
    F.mse_loss(other.head(other.block_2(hidden)), new_y).backward()
    assert same(gradients(model), gradients(other))
    assert not any(module._forward_hooks for module in model.modules())  # it is as it was


def test_of_several_layers_one_is_drawn_for_every_step():
    x, y = make_batch()
    model = make_net()
    at = Mixup().at(model, ("block_1", "block_2"))
    augmented = AugmentedLoss(model, at.augmentation, at)
    places = set()
    for _ in range(20):
        augmented(x, y)
        places.add(at.place)
    assert places == {"block_1", "block_2"}


@pytest.mark.parametrize("place", ["input", "block_1"])
def test_the_augmentations_weight_multiplies_the_loss(place):
    x, y = make_batch()
    losses, drawn = [], []
    for weight in ("one", "lam2"):
        augmentation = FOMA(weight=weight)
        losses.append(make_loss(make_net(), augmentation, place)(x, y).item())
        drawn.append(augmentation.params.lam)
    assert drawn[0] == drawn[1]
    assert losses[1] == pytest.approx(drawn[0] ** 2 * losses[0], rel=1e-5)


@pytest.mark.parametrize("place", ["input", "block_1"])
def test_appended_and_paired_samples_change_the_number_of_rows(place):
    x, y = make_batch()
    for augmentation in (FOMA(append=True), CMixup(paired=True)):
        assert make_loss(make_net(), augmentation, place)(x, y).isfinite()


def test_at_both_places_each_has_a_draw_of_its_own():
    x, y = make_batch()
    model, alike = make_net(), _random.make_generator
    both = make_loss(model, FOMA(weight="lam", generator=alike(4)), "block_1", inputs_too=True)
    loss = both(x, y)
    augment = FOMA(weight="lam", generator=alike(4))
    new_x, new_y = augment(x, y)
    first = augment.params
    hidden_loss = F.mse_loss(*augment.at(model, "block_1")(new_x, new_y))
    second = augment.params
    assert first.lam != second.lam
    assert loss.item() == pytest.approx(first.lam * second.lam * hidden_loss.item(), rel=1e-6)


def test_both_places_train_one_by_one_and_not_in_a_stack():
    x, y = make_batch(30)
    rows = torch.arange(30).numpy()
    split = Split(*(Part(x, y, rows) for _ in range(3)))
    settings = Settings(epochs=2, batch_size=10, method_settings={"place": "both"})
    assert fit(make_net(), split, "foma", settings).best_epoch > 0
    with pytest.raises(PlaceError, match="for stacked runs, got 'both'"):
        fit_many(split, "foma", [settings])


def test_pairs_cannot_be_used_at_both_places():
    settings = Settings(epochs=2, batch_size=4, method_settings={"place": "both"})
    with pytest.raises(PlaceError, match="for pairs of samples, got 'both'"):
        fit(make_net(), make_split(), "c-mixup", settings)


def test_the_augmentation_is_no_part_of_the_network():
    model = make_net()
    augmented = make_loss(model, FOMA(k="two_nn_data"), "block_1")
    assert list(augmented.state_dict()) == [f"model.{name}" for name in model.state_dict()]


def test_a_prediction_of_another_shape_is_refused():
    model = nn.Sequential(nn.Linear(3, 2), nn.Flatten(0))
    with pytest.raises(ArgumentError, match=r"\(12, 1\), got \(24,\)"):
        AugmentedLoss(model, Identity())(*make_batch())
    with pytest.raises(ArgumentError, match=r"\(12, 2\), got \(12, 1\)"):
        AugmentedLoss(make_net(), Identity())(*make_batch(targets=2))


def test_an_unknown_layer_is_refused_before_training():
    with pytest.raises((PlaceError, LookupError), match=r"'block_3'.*block_2"):
        fit(make_net(), make_split(), "foma", Settings(method_settings={"place": "block_3"}))


@pytest.mark.parametrize(
    ("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_the_optimizer_is_the_one_that_was_asked_for(name, kind):
    model = make_net()
    settings = Settings(optimizer=name, learning_rate=0.5, weight_decay=0.25)
    optimizer = make_optimizer(model, settings, fused=False)
    assert type(optimizer) is kind
    [group] = optimizer.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.5, 0.25)
    assert [id(p) for p in group["params"]] == [id(p) for p in model.parameters()]


@given(st.floats(0.0, 1.0))
def test_the_cosine_falls_from_one_to_zero(progress):
    factor = Settings(learning_rate=1.0, schedule="cosine").rate_at(progress)
    assert factor == pytest.approx(math.cos(math.pi * progress / 2) ** 2, abs=1e-12)
    assert 0.0 <= factor <= 1.0
    assert Settings(learning_rate=0.3).rate_at(progress) == 0.3


def test_the_cosine_ends_at_zero():
    assert Settings(schedule="cosine").rate_at(1.0) == 0.0


def test_divergence_is_explained_with_the_batch_and_the_way_out():
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.fill_(-700.0)
    place, settings = "epoch 3, step 2 of 5", Settings(learning_rate=0.5)
    x, y = torch.tensor([[1.0, 3.0], [1.0, 3.0]]), torch.zeros(2, 1)
    assert explain_divergence(model, place, math.nan, x, y, settings) == (
        "The loss became nan in epoch 3, step 2 of 5. The batch: 2 rows, inputs from 1 to 3, mean "
        "2, standard deviation 1, targets from 0 to 0, mean 0, standard deviation 0; the largest "
        "weight of the model is 700. Lower `learning_rate` (it is 0.5), set `clip` to bound the "
        "gradient, or standardize the data."
    )
    x = torch.tensor([[1.0, math.nan], [3.0, math.inf]])
    assert explain_divergence(model, place, math.nan, x, y, settings) == (
        "The loss became nan in epoch 3, step 2 of 5. The batch: 2 rows, inputs from 1 to 3, mean "
        "2, standard deviation 1, 2 of them NaN or infinite, targets from 0 to 0, mean 0, standard "
        "deviation 0; the largest weight of the model is 700. Remove or impute what is not finite "
        "in the data."
    )


def test_a_batch_without_a_finite_value_is_said_to_be_one():
    x = torch.full((2, 2), math.nan)
    text = explain_divergence(make_net(), "step 1", math.inf, x, torch.ones(2, 1), Settings())
    assert "became inf" in text
    assert "inputs without a finite value, targets from 1 to 1" in text


def make_split():
    x, y = make_batch(n=40)
    rows = torch.arange(40).numpy()

    def part(which):
        return Part(x=x[which].clone(), y=y[which].clone(), rows=rows[which])

    return Split(part(slice(24)), part(slice(24, 32)), part(slice(32, 40)))


@pytest.mark.parametrize(
    ("name", "place"),
    [("erm", "input"), ("mixup", "layer"), ("foma-rho", "input"), ("foma-rho", "layer")],
)
def test_a_loss_that_is_not_finite_stops_the_training_and_spares_the_checkpoint(
    tmp_path, monkeypatch, name, place
):
    split, model = make_split(), make_net()
    settings = Settings(epochs=4, batch_size=8, method_settings={"place": place})
    real_save = Checkpoints.save

    def save_then_spoil(self, epoch, state):
        real_save(self, epoch, state)
        if epoch == 2:
            split.train.x[5, 1] = math.nan

    monkeypatch.setattr(Checkpoints, "save", save_then_spoil)
    with pytest.raises(DivergedError) as caught:
        fit(model, split, name, settings, checkpoint=tmp_path)
    message = str(caught.value)
    assert "became nan in epoch 3, step " in message
    assert " of 3. The batch: 8 rows, inputs from " in message
    assert "1 of them NaN or infinite" in message
    assert not any(module._forward_hooks for module in model.modules())  # nothing is left behind
    epoch, state = Checkpoints(tmp_path).latest()
    assert epoch == len(state["history"]) == 2
    assert all(value.isfinite().all() for value in state["weights"].values())


@pytest.mark.parametrize("name", ["erm", "foma-rho"])
def test_a_model_that_breaks_is_a_diverged_training_at_a_layer_too(name):
    model = make_net()
    with torch.no_grad():
        model.block_1.linear.bias[0] = math.inf
    settings = Settings(batch_size=8, method_settings={"place": "layer"})
    with pytest.raises(DivergedError, match=r"epoch 1, step 1 of 3.* weight .* is inf\. Lower"):
        fit(model, make_split(), name, settings)


def test_a_rate_that_is_far_too_high_is_named():
    settings = Settings(epochs=50, batch_size=8, learning_rate=1e30)
    with pytest.raises(DivergedError, match=r"became (inf|nan) in epoch 1, step 2 of 3.*1e\+30"):
        fit(make_net(), make_split(), "erm", settings)


def half():
    return (torch.tensor(TINY) / 2).item()


def test_tiny_numbers_are_zero_inside_and_kept_afterwards():
    assert half() == TINY / 2
    with tiny_as_zero():
        assert half() == 0.0
        with tiny_as_zero():
            assert half() == 0.0
        assert half() == 0.0
    assert half() == TINY / 2


def test_who_takes_them_as_zero_already_still_does_afterwards():
    torch.set_flush_denormal(True)
    try:
        with tiny_as_zero():
            pass
        assert half() == 0.0
    finally:
        torch.set_flush_denormal(False)


def test_an_error_restores_them():
    with pytest.raises(ZeroDivisionError), tiny_as_zero():
        1 / 0  # noqa: B018
    assert half() == TINY / 2
