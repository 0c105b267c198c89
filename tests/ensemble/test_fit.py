"""Fitting: who sees which rows, what the seed decides, and how good the result is."""

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import load, read_table
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.splits import random_split
from regaug.ensemble import calibration_rows, fit_ensemble
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DivergedError,
    UnknownNameError,
)
from regaug.models import MLP
from regaug.training import Settings

INFO = Info(name="made", task="table", metric="rmse", split="At random.")


def make_data(x, y, groups=None):
    n = len(y)
    return ArrayData(x, y, info=INFO, rule=lambda seed: random_split(n, seed=seed), groups=groups)


def make_noisy(n, seed, targets=1):
    """Noise that grows with the first column."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    noise = (0.1 + 0.4 * (x[:, :1] + 1)) * rng.normal(size=(n, targets))
    return x, np.sin(3 * x[:, 1:2]) + x[:, 2:] ** 2 + noise


def nets_of(model):
    (component,) = model.components
    return component.models


def weights_of(model):
    return torch.cat([weight.flatten() for weight in nets_of(model).weights.values()])


def test_calibration_rows_influence_nothing_but_the_intervals(houses, quick):
    held_out = calibration_rows(read_table(houses, target="price"), seed=4)
    changed = houses.copy()
    changed.loc[held_out, "price"] = 1e6
    changed.loc[held_out, "size"] = 5.0
    changed.loc[held_out, "city"] = "Atlantis"
    models = [
        fit_ensemble(read_table(f, target="price"), settings=quick, members=2, hidden=(8,), seed=4)
        for f in (houses, changed)
    ]
    assert torch.equal(*map(weights_of, models))
    assert models[0].preparation.encoder == models[1].preparation.encoder
    assert models[0].scale.scaler.to_dict() == models[1].scale.scaler.to_dict()
    before, after = (model.predict(houses, interval=0.9) for model in models)
    assert torch.equal(before.mean, after.mean)
    assert (after.high - after.low > 100 * (before.high - before.low)).all()


def test_calibration_rows_of_arrays_influence_nothing_but_the_intervals(quick):
    x, y = make_noisy(60, 0)
    x[::7, 1] = np.nan
    held_out = calibration_rows(make_data(x, y))
    other_x, other_y = x.copy(), y.copy()
    other_x[held_out], other_y[held_out] = 9.0, 1e6
    models = [
        fit_ensemble(make_data(*pair), settings=quick, members=2, hidden=(8,))
        for pair in ((x, y), (other_x, other_y))
    ]
    assert torch.equal(models[0].predict(x).mean, models[1].predict(x).mean)
    assert not torch.equal(models[0].calibration.scores, models[1].calibration.scores)
    assert models[0].held_out.rmse < models[1].held_out.rmse


def test_the_seed_decides_and_nothing_else(quick):
    data = load("synthetic-sine", n=80)
    models = []
    for seed, other in ((0, 1), (0, 2), (1, 2)):
        torch.manual_seed(other)
        models.append(fit_ensemble(data, settings=quick, members=2, hidden=(8,), seed=seed))
    assert torch.equal(weights_of(models[0]), weights_of(models[1]))
    assert torch.equal(models[0].calibration.scores, models[1].calibration.scores)
    assert not torch.equal(weights_of(models[0]), weights_of(models[2]))


def test_members_differ(model):
    first = next(iter(nets_of(model).weights.values()))
    assert len(first.unique(dim=0)) == len(model) == 3


def test_the_stack_predicts_as_its_nets_do_one_by_one(model, new_houses):
    x = model.preparation(new_houses)
    nets = nets_of(model)
    together = nets(x)
    for number in range(len(nets)):
        net = MLP(x.shape[1], 2, hidden=nets.form.hidden)
        net.load_state_dict({k: w[number] for k, w in nets.weights.items()})
        torch.testing.assert_close(together[number].float(), net(x.float()).detach())
    own = model.bounds.clamp(nets.scale.inverse(together))
    prediction = model.predict(new_houses)
    torch.testing.assert_close(prediction.mean, own.mean(dim=0))
    torch.testing.assert_close(prediction.spread, own.std(dim=0, correction=0))


def test_it_learns():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (300, 1))
    data, settings = make_data(x, 1e3 + 1e2 * np.sin(x)), Settings(epochs=50, learning_rate=5e-3)
    model = fit_ensemble(data, settings=settings, members=4, hidden=(32, 32))
    new = np.linspace(-2.5, 2.5, 50)[:, None]
    error = model.predict(new).mean.numpy() - (1e3 + 1e2 * np.sin(new))
    assert np.sqrt(np.mean(error**2)) < 10  # the target's own deviation is 70
    assert model.held_out.rmse < 10


def test_intervals_cover_the_share_they_promise():
    covered = []
    for seed in range(4):
        data = make_data(*make_noisy(250, seed))
        settings = Settings(epochs=25, learning_rate=3e-3)
        model = fit_ensemble(data, settings=settings, members=4, hidden=(32,), seed=seed)
        x, y = make_noisy(1000, 100 + seed)
        prediction = model.predict(x, interval=0.8)
        covered.append(((prediction.low.numpy() <= y) & (y <= prediction.high.numpy())).mean())
    assert 0.73 < np.mean(covered) < 0.87


def test_every_target_has_its_own_predictions_and_intervals(quick):
    x, y = make_noisy(120, 0)
    data = make_data(x, np.column_stack([y, 1000 * y]))
    model = fit_ensemble(data, settings=quick, members=2, hidden=(8,))
    assert model.targets == ("target_1", "target_2")
    prediction = model.predict(x, interval=0.9)
    width = (prediction.high - prediction.low).mean(dim=0)
    assert prediction.mean.shape == (120, 2)
    assert 300 < width[1] / width[0] < 3000


@pytest.mark.parametrize("n", [20, 30])
def test_a_tiny_table_is_enough(n):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["u", "v"], n)})
    frame["y"] = frame["a"] + (frame["b"] == "u")
    model = fit_ensemble(read_table(frame, target="y"), members=2, settings=Settings(epochs=3))
    prediction = model.predict(frame, interval=model.calibration.highest)
    assert torch.isfinite(prediction.low).all()
    assert torch.isfinite(prediction.high).all()


@pytest.mark.parametrize("kind", ["group", "time"])
def test_tables_with_groups_and_with_times(houses, quick, kind):
    column = {"group": "street", "time": "sold"}[kind]
    table = read_table(houses, target="price", **{kind: column})
    model = fit_ensemble(table, settings=quick, members=3, hidden=(8,))
    assert len(model.calibration) == len(calibration_rows(table))
    assert len(model.predict(houses.drop(columns=column)).mean) == len(houses)


@pytest.mark.parametrize("method", ["foma-rho", "c-mixup", "ada"])
def test_members_are_trained_with_the_method_that_was_asked_for(method, quick):
    data = load("synthetic-sine", n=80)
    plain, other = (
        fit_ensemble(data, method=name, settings=quick, members=2, hidden=(8,))
        for name in ("erm", method)
    )
    assert other.method == method
    assert not torch.equal(weights_of(plain), weights_of(other))


def test_logarithms_give_positive_predictions_and_intervals_that_grow_with_them():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (200, 1))
    y = np.exp(3 * x + 0.3 * rng.normal(size=x.shape))
    settings = Settings(epochs=25, learning_rate=1e-2)
    model = fit_ensemble(make_data(x, y), members=3, hidden=(16,), log=True, settings=settings)
    prediction = model.predict([[-1.5], [1.5]], interval=0.9)
    assert (prediction.low > 0).all()
    assert (prediction.low < prediction.mean).all()
    assert (prediction.mean < prediction.high).all()
    width = prediction.high - prediction.low
    assert width[1] > 100 * width[0]


def test_logarithms_of_targets_that_are_not_positive_are_refused():
    with pytest.raises(ArgumentError, match="`log` must be False"):
        fit_ensemble(make_data(*make_noisy(40, 0)), log=True)


def test_an_unknown_method_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownNameError, match="Did you mean 'foma'"):
        fit_ensemble(load("synthetic-sine", n=50), method="fomma")
    with pytest.raises(UnknownNameError):
        fit_ensemble(load("synthetic-sine", n=50), method="auto")


def test_data_and_members_are_checked():
    with pytest.raises(ArgumentTypeError, match="`data` must be a table"):
        fit_ensemble(np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="`members` must be from 1"):
        fit_ensemble(load("synthetic-sine", n=50), members=0)


def test_an_ensemble_whose_members_all_diverge_is_an_error():
    settings = Settings(epochs=3, learning_rate=1e30)
    with pytest.raises(DivergedError, match="every member"):
        fit_ensemble(load("synthetic-sine", n=50), settings=settings, members=2, hidden=(4, 4))


def test_a_constant_target_gives_finite_intervals(quick):
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = fit_ensemble(make_data(x, np.full(60, 7.0)), settings=quick, members=2, hidden=(4,))
    prediction = model.predict(x, interval=0.9)
    assert torch.isfinite(prediction.high - prediction.low).all()


def test_a_column_that_is_missing_everywhere_does_no_harm(quick):
    x, y = make_noisy(60, 0)
    x[:, 2] = np.nan
    model = fit_ensemble(make_data(x, y), settings=quick, members=2, hidden=(4,))
    assert torch.isfinite(model.predict(x).mean).all()


def test_one_member_has_no_spread(quick):
    model = fit_ensemble(load("synthetic-sine", n=60), settings=quick, members=1, hidden=(4,))
    assert model.predict([[0.5]]).spread.tolist() == [[0.0]]


def test_no_member_predicts_far_beyond_the_targets_that_were_seen(quick):
    x, y = make_noisy(60, 0)
    model = fit_ensemble(make_data(x, y), settings=quick, members=2, hidden=(8,))
    rest = np.setdiff1d(np.arange(60), calibration_rows(make_data(x, y)))
    low, high = y[rest].min(), y[rest].max()
    far = model.predict(1e6 * np.eye(3)).mean.numpy()
    assert (far <= high + (high - low) + 1e-9).all()
    assert (far >= low - (high - low) - 1e-9).all()


@pytest.mark.parametrize("metric", ["r2", "pearson", "mape"])
def test_a_metric_that_is_undefined_on_a_fold_does_not_choose_epochs(metric):
    x, y = make_noisy(20, 0)
    y = np.where(np.arange(20) % 2, 0.0, np.round(y[:, 0]))  # folds of two rows, often alike
    settings = Settings(epochs=2, metric=metric)
    model = fit_ensemble(make_data(x, y), settings=settings, members=8, hidden=(4,))
    assert len(model) == 8
    assert model.settings.metric == "rmse"
