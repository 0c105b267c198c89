"""One run: a plain training, whatever the method, and an honest account of it."""

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import _random, methods
from regaug.data import standardize
from regaug.data.base import Info, Part, Split
from regaug.data.datasets.series import SeriesData
from regaug.data.lazy import Lazy
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    PlaceError,
    UnknownNameError,
)
from regaug.models import MLP, LSTNet
from regaug.training import Machine, Settings, fit
from regaug.training.loop import _Training
from regaug.training.results import why_end
from regaug.training.scores import MOST_TRAINING_ROWS


def make_split(n=100, targets=1, noise=0.3, seed=0):
    """A table whose targets are far from zero and wide, so that units matter."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    y = np.sin(2 * x[:, :targets]) + x[:, 2:] ** 2 + noise * rng.standard_normal((n, targets))
    groups = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]

    def part(rows):
        inputs, values = (torch.tensor(a[rows], dtype=torch.float32) for a in (x, 40 + 15 * y))
        return Part(x=inputs, y=values, rows=rows, groups=groups[rows])

    first, second = int(0.6 * n), int(0.8 * n)
    return Split(*map(part, np.split(np.arange(n), [first, second])))


def make_net(targets=1):
    return MLP(3, targets, hidden=(8, 8))


def make_series():
    time = np.arange(160)[:, None]
    series = 2 + np.sin(2 * np.pi * time / np.array([12, 8]))
    info = Info(name="waves", task="series", metric="rmse", split="By time.")
    return SeriesData(series, info=info, window=12, horizon=1).split()


def make_lstnet():
    sizes = {"hidden_cnn": 6, "hidden_rnn": 6, "hidden_skip": 2, "kernel": 3, "skip": 4}
    return LSTNet(2, window=12, highway=4, dropout=0.3, **sizes)


def same(some, others):
    return some.keys() == others.keys() and all(torch.equal(some[n], others[n]) for n in some)


# The slow, obvious training. A pass takes model, batch and augmentation; it returns prediction and
# targets.


def on_input(model, x, y, augment):
    x, y = augment(x, y)
    return model(x), y


def at_block_1(model, x, y, augment):
    hidden, y = augment(model.block_1(x), y)
    return model.head(model.block_2(hidden)), y


def after_first_module(model, x, y, augment):
    hidden, y = augment(model[0](x), y)
    return model[1:](hidden), y


def adam_step(parameters, memory, number, rate, settings):
    """Adam as in its paper, number counted from 1; decay through or beside the gradient."""
    gradients = [p.grad.clone() for p in parameters]
    if settings.clip is not None:
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        gradients = [g * min(1.0, settings.clip / float(norm)) for g in gradients]
    for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
        if settings.optimizer == "adam":
            g = g + settings.weight_decay * p
        else:
            p.mul_(1 - rate * settings.weight_decay)
        first, second = memory.get(i, (torch.zeros_like(p), torch.zeros_like(p)))
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        memory[i] = first, second
        mean, square = first / (1 - 0.9**number), second / (1 - 0.999**number)
        p.sub_(rate * mean / (square.sqrt() + 1e-8))


def slow_fit(model, split, name, settings, run=on_input, augmented=1.0):
    """Return weights and mean loss of every epoch; nothing is augmented after that share."""
    ready = methods.get(name).prepare(settings.method_settings, seed=settings.seed)
    size = min(settings.batch_size, len(split.train))
    sampler = ready.sampler(split.train.y, size, drop_last=True)
    augmentation = ready.augmentation.fit(split.train.x, split.train.y)
    model, x, y = model.double(), split.train.x.double(), split.train.y.double()
    parameters, memory, lines, number = list(model.parameters()), {}, [], 0
    for epoch in range(settings.epochs):
        sampler.set_epoch(epoch)
        augmentation.generator.manual_seed(
            _random.derive(_random.Stream.EPOCHS, settings.seed, epoch, 0)
        )
        losses = []
        for batch in sampler:
            progress = number / (settings.epochs * len(sampler))
            augmentation.progress = progress
            augment = augmentation if progress < augmented else augmentation.originals
            prediction, target = run(model, x[batch], y[batch], augment)
            loss = F.mse_loss(prediction, target)
            model.zero_grad()
            loss.backward()
            number += 1
            rate = settings.learning_rate
            if settings.schedule == "cosine":
                rate *= (1 + math.cos(math.pi * progress)) / 2
            with torch.no_grad():
                adam_step(parameters, memory, number, rate, settings)
            losses.append(loss.item())
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        lines.append((weights, np.mean(losses)))
    return lines


def check_against_slow(make_model, split, name, settings, **slow):
    result = fit(make_model(), split, name, settings, machine=Machine(precision="64"))
    lines = slow_fit(make_model(), split, name, settings, **slow)
    losses = [loss for _, loss in lines]
    # Fabric hands the loss out in float32; its gradient is in float64.
    assert [line.loss for line in result.history] == pytest.approx(losses, rel=1e-6)
    expected = lines[result.best_epoch - 1][0]
    for layer, value in result.weights.items():
        torch.testing.assert_close(value, expected[layer], rtol=0, atol=1e-10)
    return result


@pytest.mark.parametrize(
    ("name", "options", "slow"),
    [
        ("erm", {"optimizer": "adam"}, {}),
        ("erm", {"optimizer": "adam", "weight_decay": 0.1}, {}),
        ("erm", {"optimizer": "adamw", "weight_decay": 0.1}, {}),
        ("erm", {"schedule": "cosine"}, {}),
        ("mixup", {}, {}),
        ("c-mixup", {}, {}),
        ("ada", {}, {}),
        ("foma-rho", {}, {}),
        ("foma-rho", {"method_settings": {"anneal": None, "rho": 0.5}, "schedule": "cosine"}, {}),
        ("foma-rho", {"method_settings": {"place": "layer"}}, {"run": at_block_1}),
        (
            "foma-rho",
            {"method_settings": {"place": "block_1", "append": True}},
            {"run": at_block_1},
        ),
    ],
)
def test_fit_is_a_plain_training(name, options, slow):
    settings = Settings(epochs=6, batch_size=16, learning_rate=0.02, seed=3, **options)
    check_against_slow(make_net, standardize(make_split()), name, settings, **slow)


def test_clipping_is_by_the_norm_of_the_whole_gradient():
    # The library's way adds 1e-6 to the norm, hence the large clip and the rough comparison.
    split, settings = standardize(make_split()), Settings(epochs=3, learning_rate=0.02, clip=0.5)
    result = fit(make_net(), split, "erm", settings, machine=Machine(precision="64"))
    expected = slow_fit(make_net(), split, "erm", settings)[result.best_epoch - 1][0]
    plain = fit(
        make_net(), split, "erm", replace(settings, clip=None), machine=Machine(precision="64")
    )
    for layer, value in result.weights.items():
        torch.testing.assert_close(value, expected[layer], rtol=0, atol=1e-5)
    assert not torch.allclose(
        result.weights["head.weight"], plain.weights["head.weight"], atol=1e-4
    )


def test_any_model_takes_the_name_of_a_layer():
    def make_model():
        with _random.seeded(0):
            return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    settings = Settings(epochs=4, batch_size=16, method_settings={"place": "0"})
    split = standardize(make_split())
    check_against_slow(make_model, split, "foma-rho", settings, run=after_first_module)


@pytest.mark.parametrize("name", ["foma-rho", "c-mixup", "noise"])
def test_after_the_end_of_anneal_batches_are_untouched(name):
    settings = Settings(
        epochs=6, batch_size=16, learning_rate=0.02, method_settings={"anneal": 0.5}
    )
    split = standardize(make_split())
    check_against_slow(make_net, split, name, settings, augmented=0.5)
    # Toward the end of the fade few batches are touched, and with a single seed perhaps none.
    seeds = [replace(settings, seed=seed) for seed in range(5)]
    late, early = (
        [slow_fit(make_net(), split, name, own, augmented=share)[-1][1] for own in seeds]
        for share in (1.0, 0.25)
    )
    assert not np.allclose(early, late)


def hand_made(metric, prediction, target):
    error, spread = prediction - target, target - target.mean(axis=0)
    return {
        "rmse": lambda: np.sqrt((error**2).mean()),
        "mae": lambda: np.abs(error).mean(),
        "mape": lambda: 100 * np.abs(error / target).mean(),
        "r2": lambda: 1 - (error**2).sum() / (spread**2).sum(),
        "pearson": lambda: np.corrcoef(prediction[:, 0], target[:, 0])[0, 1],
    }[metric]()


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("metric", ["rmse", "mae", "mape", "r2", "pearson"])
def test_errors_are_those_of_the_weights_in_the_targets_own_units(metric, scaled):
    raw = make_split()
    split = standardize(raw) if scaled else raw
    settings = Settings(epochs=8, batch_size=16, learning_rate=0.05, metric=metric)
    result = fit(make_net(), split, "erm", settings, machine=Machine(precision="64"))
    errors = {"train": [], "validation": [], "test": []}
    model = make_net().double()
    for weights, _ in slow_fit(make_net(), split, "erm", settings):
        model.load_state_dict(weights)
        for name, values in errors.items():
            prediction = model(getattr(split, name).x.double()).detach().numpy()
            if scaled:
                prediction = prediction * split.y_scaler.std + split.y_scaler.mean
            values.append(hand_made(metric, prediction, getattr(raw, name).y.double().numpy()))
    for name, values in errors.items():
        assert [getattr(line, name) for line in result.history] == pytest.approx(values, rel=1e-5)
    best = np.argmax if metric in ("r2", "pearson") else np.argmin
    assert result.best_epoch == 1 + best(errors["validation"])
    for name in ("validation", "test"):
        at_best = errors[name][result.best_epoch - 1]
        assert getattr(result.scores[name], metric) == pytest.approx(at_best, rel=1e-5)


def test_only_what_is_asked_for_is_recorded():
    split, settings = standardize(make_split()), Settings(epochs=2)
    everything = fit(make_net(), split, "erm", settings)
    for record in [("validation",), (), ("test",)]:
        result = fit(make_net(), split, "erm", settings, record=record)
        assert all(line.train is None for line in result.history)
        assert all((line.test is not None) == ("test" in record) for line in result.history)
        assert [a.validation for a in result.history] == [a.validation for a in everything.history]
        assert same(result.weights, everything.weights)


def test_a_part_may_be_looked_at_after_every_few_epochs():
    split, settings = standardize(make_split()), Settings(epochs=8)
    everything = fit(make_net(), split, "erm", settings)
    result = fit(make_net(), split, "erm", settings, record={"train": 3, "test": 5})
    assert [n for n, line in enumerate(result.history, 1) if line.train is not None] == [3, 6, 8]
    assert [n for n, line in enumerate(result.history, 1) if line.test is not None] == [5, 8]
    assert result.history[5].train == everything.history[5].train
    assert [a.validation for a in result.history] == [a.validation for a in everything.history]
    assert same(result.weights, everything.weights)


def test_the_training_error_of_many_rows_is_that_of_some_of_them():
    split = make_split(n=4000)
    model = make_net()
    result = fit(model, split, "erm", Settings(epochs=1, batch_size=800))
    rows = np.linspace(0, 2399, MOST_TRAINING_ROWS).astype(int)
    assert len(rows) == 500
    with torch.no_grad():
        expected = F.mse_loss(model(split.train.x[rows]), split.train.y[rows]).sqrt()
    assert result.history[0].train == pytest.approx(expected.item(), rel=1e-5)


def test_the_model_and_the_result_have_the_best_epoch():
    split = standardize(make_split(n=40, noise=1.0))
    settings = Settings(epochs=40, batch_size=8, learning_rate=0.05)
    model = make_net()
    result = fit(model, split, "erm", settings)
    assert result.best_epoch < 40  # otherwise the last epoch would pass for the best one
    assert result.best_epoch == 1 + np.argmin([line.validation for line in result.history])
    assert not model.training
    assert same(result.weights, dict(model.state_dict()))
    with torch.no_grad():
        for name in ("validation", "test"):
            expected = split.restore(model(getattr(split, name).x))
            torch.testing.assert_close(result.predictions[name], expected)
        model.head.bias.add_(1.0)
    assert not same(result.weights, dict(model.state_dict()))  # no shared memory


def test_patience_ends_a_training_that_makes_no_progress():
    split = standardize(make_split(n=40, noise=1.0))
    settings = Settings(epochs=40, batch_size=8, learning_rate=0.05)
    whole = fit(make_net(), split, "erm", settings)
    errors = [line.validation for line in whole.history]
    for patience in (1, 3, 6):
        result = fit(make_net(), split, "erm", replace(settings, patience=patience))
        stop = next(
            done
            for done in range(1, 41)
            if done - (1 + np.argmin(errors[:done])) >= patience or done == 40
        )
        assert [line.validation for line in result.history] == errors[:stop]
        assert result.ending == "early"
        assert result.best_epoch == stop - patience
    assert whole.ending == "finished"


@pytest.mark.parametrize(
    ("best", "patience", "share", "end"),
    [(2, 5, 0.0, 7), (2, 5, 0.5, 7), (20, 5, 0.5, 30), (21, 5, 0.5, 32), (20, None, 0.5, None)],
)
def test_a_net_that_has_learned_for_long_may_rest_for_longer(best, patience, share, end):
    settings = Settings(epochs=100, patience=patience, patience_share=share)
    ended = [done for done in range(best, 100) if why_end(done, best, settings) == "early"]
    assert next(iter(ended), None) == end


def test_no_epoch_is_best_when_the_metric_is_undefined():
    split = make_split()
    constant = replace(split.validation, y=torch.full_like(split.validation.y, 2.0))
    split, model = replace(split, validation=constant), make_net()
    result = fit(model, split, "erm", Settings(epochs=3, metric="pearson"))
    assert (result.best_epoch, result.ending) == (0, "finished")
    assert all(math.isnan(line.validation) for line in result.history)
    assert same(dict(model.state_dict()), dict(make_net().state_dict()))


def test_scores_know_the_worst_group_and_further_parts():
    split = make_split()
    split = standardize(replace(split, more={"elsewhere": split.test}))
    result = fit(make_net(), split, "erm", Settings(epochs=2))
    test, target = result.scores["test"], make_split().test
    assert set(test.groups) == {"north", "south", "east"}
    rmse = {
        name: F.mse_loss(result.predictions["test"][rows], target.y[rows]).sqrt().item()
        for name in test.groups
        for rows in [target.groups == name]
    }
    assert test.worst("rmse")[0] == max(rmse, key=rmse.get)
    assert test.worst("rmse")[1] == pytest.approx(max(rmse.values()), rel=1e-5)
    assert result.scores["elsewhere"] == test


@pytest.mark.parametrize("name", ["erm", "foma-rho"])
def test_the_same_seed_gives_the_same_bits_whatever_ran_before(name):
    settings = Settings(epochs=3, batch_size=16, seed=5)
    split = make_series()
    first = fit(make_lstnet(), split, name, settings)
    states = torch.get_rng_state(), random.getstate()
    fit(make_net(), make_split(), "mixup", Settings(epochs=1, seed=9))
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]
    with _random.seeded(12345):
        second = fit(make_lstnet(), split, name, settings)
    assert same(first.weights, second.weights)
    assert first.history == second.history
    other = fit(make_lstnet(), split, name, replace(settings, seed=6))
    assert not same(first.weights, other.weights)


class Drawing(nn.Module):
    """Notes what it draws in training, as dropout does, from the only generator it can."""

    def __init__(self):
        super().__init__()
        self.layer, self.drawn = nn.Linear(3, 1), []

    def forward(self, x):
        if self.training:
            self.drawn.append(torch.rand(()).item())
        return self.layer(x)


def test_what_dropout_draws_depends_on_seed_and_epoch():
    draws = []
    for seed in (1, 1, 2):
        model = Drawing()
        fit(model, make_split(), "erm", Settings(epochs=3, batch_size=60, seed=seed))
        draws.append(model.drawn)
    assert draws[0] == draws[1]
    assert len(set(draws[0] + draws[2])) == 6


@pytest.mark.parametrize("name", ["erm", "foma-rho", "c-mixup", "ada", "cems", "manifold-mixup"])
@pytest.mark.parametrize("targets", [1, 2])
def test_fewer_rows_than_a_batch_are_one_batch(name, targets):
    split = standardize(make_split(n=25, targets=targets))  # 15 of them for training
    models = [make_net(targets) for _ in range(2)]
    results = [
        fit(model, split, name, Settings(epochs=2, batch_size=size))
        for model, size in zip(models, (32, 15), strict=True)
    ]
    assert same(results[0].weights, results[1].weights)
    assert not same(results[0].weights, dict(make_net(targets).state_dict()))
    assert results[0].predictions["test"].shape == (5, targets)


def test_a_single_training_row_is_enough_for_every_method():
    split = make_split(n=5)
    one = Part(x=split.train.x[:1], y=split.train.y[:1], rows=split.train.rows[:1])
    split, settings = standardize(replace(split, train=one)), Settings(epochs=2, batch_size=4)
    for name in methods.names():
        result = fit(make_net(), split, name, settings)
        assert all(math.isfinite(line.validation) for line in result.history), name


class Stored(Lazy):
    """Inputs that are read one by one, from memory."""

    def __init__(self, values):
        super().__init__(len(values), tuple(values.shape[1:]))
        self.values = values

    def _read(self, place):
        return self.values[place]


@pytest.mark.parametrize("name", ["foma-rho", "cems"])
def test_inputs_that_are_read_when_asked_for_make_no_difference(name):
    split = standardize(make_split())
    parts = {
        part: replace(getattr(split, part), x=Stored(getattr(split, part).x))
        for part in ("train", "validation", "test")
    }
    settings = Settings(epochs=2, batch_size=16)
    first = fit(make_net(), split, name, settings)
    second = fit(make_net(), replace(split, **parts), name, settings)
    assert same(first.weights, second.weights)
    assert first.history == second.history


class Shifting(Stored):
    """Inputs that differ from epoch to epoch."""

    def __init__(self, values):
        super().__init__(values)
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch):
        self.epoch.fill_(epoch)

    def _read(self, place):
        return self.values[place] + int(self.epoch)


def test_training_inputs_are_told_the_epoch_in_workers_too():
    split, settings = standardize(make_split()), Settings(epochs=3, batch_size=16)
    losses = []
    for kind, workers in ((Shifting, 0), (Shifting, 2), (Stored, 0)):
        changed = replace(split, train=replace(split.train, x=kind(split.train.x)))
        result = fit(make_net(), changed, "erm", settings, machine=Machine(workers=workers))
        losses.append([line.loss for line in result.history])
    assert losses[0] == losses[1]
    assert losses[0][0] == losses[2][0]
    assert losses[0][1] != losses[2][1]


def test_workers_make_no_difference_not_even_to_dropout():
    settings = Settings(epochs=3, batch_size=16)
    none, two = (
        fit(make_lstnet(), make_series(), "foma-rho", settings, machine=Machine(workers=workers))
        for workers in (0, 2)
    )
    assert same(none.weights, two.weights)
    assert none.history == two.history


def test_bfloat16_trains_weights_that_stay_in_float32():
    settings = Settings(epochs=20, batch_size=16, learning_rate=0.03)
    half, single = (
        fit(
            make_net(),
            standardize(make_split()),
            "foma-rho",
            settings,
            machine=Machine(precision=precision),
        )
        for precision in ("bf16", "32")
    )
    assert half.history[-1].train < 0.8 * half.history[0].train
    assert {value.dtype for value in half.weights.values()} == {torch.float32}
    assert half.history != single.history
    assert half.history[-1].train == pytest.approx(single.history[-1].train, rel=0.1)


def test_half_precision_on_a_cpu_warns_and_takes_bfloat16():
    split, settings = standardize(make_split()), Settings(epochs=2)
    with pytest.warns(UserWarning, match="not supported on CPU.*bf16"):
        result = fit(
            make_net(), split, "erm", settings, machine=Machine(device="cpu", precision="16")
        )
    expected = fit(
        make_net(), split, "erm", settings, machine=Machine(device="cpu", precision="bf16")
    )
    assert same(result.weights, expected.weights)


def test_frozen_weights_stay_as_they_are():
    model = make_net()
    model.block_1.requires_grad_(False)
    fit(model, standardize(make_split()), "erm", Settings(epochs=2, weight_decay=0.1, clip=1.0))
    now, before = model.state_dict(), make_net().state_dict()
    assert [name for name in now if torch.equal(now[name], before[name])] == [
        "block_1.linear.weight",
        "block_1.linear.bias",
    ]


def test_a_result_says_what_made_it_in_plain_values():
    settings = Settings(epochs=2, method_settings={"rho": 0.8})
    result = fit(make_net(), standardize(make_split()), "foma-rho", settings)
    values = json.loads(json.dumps(result.to_dict()))
    assert values["settings"]["method_settings"]["rho"] == 0.8
    assert (
        values["settings"]["method_settings"]["sampler"] == "nearest"
    )  # completed by the defaults
    assert len(values["history"]) == 2
    assert values["scores"]["test"]["rmse"] == result.scores["test"].rmse
    assert values["made_by"]["torch"] == torch.__version__
    assert 0 < values["seconds"] < 600


class Flat(nn.Module):
    """Puts out (n,) instead of (n, 1)."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x).squeeze(1)


def test_what_cannot_be_trained_is_refused_with_the_way_out():
    split = standardize(make_split())
    with pytest.raises(ArgumentError, match=r"`model` must put out .* \(32, 1\), got \(32, 2\)"):
        fit(make_net(targets=2), split)
    with pytest.raises(ArgumentTypeError, match=r"`data` must be a split, got Part\. Split it"):
        fit(make_net(), split.train)
    with pytest.raises(UnknownNameError, match=r"'fomma-rho'\. Did you mean 'foma-rho'\?"):
        fit(make_net(), split, "fomma-rho")
    with pytest.raises(UnknownNameError, match=r"setting 'rhoo'\. Did you mean 'rho'\?"):
        fit(make_net(), split, "foma-rho", Settings(method_settings={"rhoo": 0.9}))
    with pytest.raises(PlaceError, match=r"Flat does not say where 'layer' is: .*'layer'"):
        fit(Flat(), split, "foma-rho", Settings(method_settings={"place": "layer"}))
    with pytest.raises(ArgumentError, match="`record` must be one of 'train'.*, got 'tset'"):
        fit(make_net(), split, record=("tset",))
    with pytest.raises(ArgumentError, match="`precision` must be one of '32'.*, got '8'"):
        fit(make_net(), split, machine=Machine(precision="8"))


# Inputs of several tensors, and codes


class PairNet(nn.Module):
    """Numbers and codes, by name."""

    places = ("hidden",)

    def __init__(self):
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(7, 4), nn.Linear(3 + 4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, row, code):
        assert code.dtype == torch.int64
        both = torch.cat([row, self.embedding(code)], dim=1)
        return self.head(self.hidden(both).relu())


class Pairs(Lazy):
    """The inputs of a part, read one by one."""

    def __init__(self, inputs):
        super().__init__(len(inputs), (4,))
        self.inputs = inputs

    def _read(self, place):
        return self.inputs[place]

    def _stack(self, places):
        return self.inputs[places]


def make_pairs(form=dict, *, lazily=False):
    def changed(part):
        codes = part.rows % 7
        inputs = {"row": part.x, "code": torch.from_numpy(codes)}
        whole = replace(part, x=inputs if form is dict else form(inputs.values()))
        return replace(whole, x=Pairs(whole.x)) if lazily else whole

    split = standardize(make_split())
    return replace(split, **{name: changed(part) for name, part in split.parts.items()})


def make_pair_net():
    with _random.seeded(0):
        return PairNet()


@pytest.mark.parametrize("form", [dict, tuple, list])
def test_tensors_in_any_form_make_the_same_net(form):
    settings = Settings(epochs=3, method_settings={"place": "layer"})
    expected = fit(make_pair_net(), make_pairs(), "mixup", settings)
    result = fit(make_pair_net(), make_pairs(form), "mixup", settings)
    assert same(result.weights, expected.weights)
    assert torch.equal(result.predictions["test"], expected.predictions["test"])
    assert result.scores["test"].rmse < 100


def test_tensors_that_are_read_make_the_same_net_as_those_in_memory():
    settings = Settings(epochs=2)
    expected = fit(make_pair_net(), make_pairs(), "erm", settings)
    for machine in (Machine("cpu"), Machine("cpu", workers=1)):
        result = fit(make_pair_net(), make_pairs(lazily=True), "erm", settings, machine=machine)
        assert same(result.weights, expected.weights)


def test_a_training_on_several_tensors_goes_on_from_its_checkpoint_and_knows_its_rows(tmp_path):
    settings = Settings(epochs=4)
    expected = fit(make_pair_net(), make_pairs(), "erm", settings)
    fit(make_pair_net(), make_pairs(), "erm", settings, checkpoint=tmp_path)
    (tmp_path / "epoch-00004.safetensors").unlink()
    again = fit(make_pair_net(), make_pairs(), "erm", settings, checkpoint=tmp_path)
    assert same(again.weights, expected.weights)
    other = make_pairs()
    other.train.x.form["code"][0] += 1
    with pytest.raises(CheckpointError, match="training rows was"):
        fit(make_pair_net(), other, "erm", settings, checkpoint=tmp_path)


class TwoRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.hidden = nn.Linear(2, 6), nn.Linear(1, 6), nn.Tanh()
        self.head = nn.Linear(6, 1)

    def forward(self, a, b):
        return self.head(self.hidden(self.a(a) + self.b(b)))


@pytest.mark.parametrize("method", methods.names())
@pytest.mark.parametrize("place", ["input", "hidden"])
def test_every_method_acts_on_several_tensors_and_at_a_layer_behind_them(method, place):
    def parted(part):
        return replace(part, x=(part.x[:, :2], part.x[:, 2:]))

    split = standardize(make_split())
    split = replace(split, **{name: parted(part) for name, part in split.parts.items()})
    if methods.get(method).teachers and place != "input":
        pytest.skip("a teacher knows nothing of layers")
    own = {"place": place}
    if method == "cems" and place != "input":
        own["neighbors"] = "batch"  # it knows no others there
    result = fit(TwoRows(), split, method, Settings(epochs=2, method_settings=own))
    assert result.ending == "finished"
    assert math.isfinite(result.scores["test"].rmse)


def test_steps_without_wrappers_are_those_of_fabric(monkeypatch):
    split = standardize(make_split())
    settings = Settings(epochs=2, clip=0.5)
    plain = fit(make_net(), split, "mixup", settings)
    make = _Training.__init__

    def wrap(self, model, split, name, settings, fabric, *others):
        make(self, model, split, name, settings, fabric, *others)
        assert not self.is_wrapped
        self.is_wrapped = True
        self.module, self.optimizer = fabric.setup(self.module, self.plain_optimizer)

    monkeypatch.setattr(_Training, "__init__", wrap)
    assert same(fit(make_net(), split, "mixup", settings).weights, plain.weights)
