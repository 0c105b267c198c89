"""Baselines on splits: scored as any method, chosen in the target's own units."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from regaug.data import load
from regaug.data.base import Info, Part, Split
from regaug.data.datasets.series import SeriesData, Windows
from regaug.data.scaling import Scaler, StandardizedSplit, standardize
from regaug.exceptions import ArgumentError, NonFiniteError, UnknownNameError
from regaug.training.baselines import (
    BASELINES,
    baseline,
    baseline_names,
    boosting,
    fit_baseline,
    load_predictor,
    trees,
)
from regaug.training.baselines.baseline import LARGEST
from regaug.training.baselines.linear import PENALTIES

FITTED = ("mean", "ridge", "boosting", "trees", "gp")
CHOOSING = FITTED[1:]
INFO = Info(name="made", task="series", metric="rmse", split="By time.")


def make_part(n, d, seed, *, weight=1.0, m=2):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator) * torch.logspace(-1, 1, d) + 5.0
    signal = (x[:, :1] - 5.0) * torch.arange(1.0, m + 1)
    y = 20.0 + weight * 10.0 * signal + torch.randn(n, m, generator=generator)
    return Part(x=x, y=y, rows=np.arange(n))


def make_split(d=4, n=60, **options):
    return Split(*(make_part(size, d, seed, **options) for seed, size in enumerate((n, 30, 20))))


def positive(split):
    """Return a split whose targets are positive and skewed."""
    parts = (split.train, split.validation, split.test)
    return Split(*(replace(part, y=(part.y / 10.0).exp()) for part in parts))


def with_other_test_targets(split):
    other = replace(split.test, y=split.test.y.flip(0) * 3.0 + 1.0)
    return replace(split, test=other)


def make_series(seed=0, rows=60, columns=3):
    steps = np.random.default_rng(seed).standard_normal((rows, columns))
    return SeriesData(50 + steps.cumsum(axis=0), info=INFO, window=5, horizon=2)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(trees, "TREES", 20)
    monkeypatch.setattr(trees, "FEWEST_TREES", 2)
    monkeypatch.setattr(boosting, "FIRST", 20)
    monkeypatch.setattr(boosting, "ROUND", 20)
    monkeypatch.setattr(boosting, "MOST_TREES", 60)


@pytest.mark.parametrize("prepare", [lambda split: split, standardize])
def test_mean_is_the_mean_of_the_training_targets(prepare):
    split = replace(make_split(), pooled=True)
    result = fit_baseline("mean", prepare(split))
    expected = split.train.y.mean(dim=0)
    torch.testing.assert_close(result.predictions["test"].float(), expected.expand(20, 2))
    error = (split.test.y - expected).square().mean().sqrt()
    assert result.scores["test"].rmse == pytest.approx(error.item(), rel=1e-5)
    assert result.scores["test"].pearson == 0.0


@pytest.mark.parametrize("name", FITTED)
def test_a_result_is_that_of_any_method(name, small):
    split = replace(make_split(), more={"later": make_part(7, 4, 9)})
    result = fit_baseline(name, split, seed=3, metric="mae")
    assert (result.method, result.ending, result.best_epoch) == (name, "finished", 0)
    assert (result.settings.seed, result.settings.metric) == (3, "mae")
    assert (result.history, result.weights) == ((), {})
    assert list(result.scores) == list(result.predictions) == ["validation", "test", "later"]
    assert {value.dtype for value in result.predictions.values()} == {torch.float64}
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("d", [4, 100])  # fewer and more columns than rows
def test_ridge_is_that_of_scikit_learn_on_standardized_inputs(d):
    split = make_split(d)
    result = fit_baseline("ridge", split)
    mean, std = split.train.x.double().mean(0), split.train.x.double().std(0, correction=0)
    x, x_test = ((part.x - mean) / std for part in (split.train, split.test))
    model = Ridge(alpha=result.settings.method_settings["penalty"], solver="svd").fit(
        x, split.train.y
    )
    torch.testing.assert_close(
        result.predictions["test"].double(), torch.from_numpy(model.predict(x_test)).double()
    )


def test_validation_rows_choose_the_penalty_and_test_rows_do_not():
    # In the validation rows the inputs matter as in training, in the test rows they do not.
    split = make_split(weight=1.0)
    split = replace(split, test=make_part(20, 4, 2, weight=0.0))
    result = fit_baseline("ridge", split)
    other = fit_baseline("ridge", replace(split, validation=split.test))
    assert result.settings.method_settings["penalty"] < 10.0
    assert other.settings.method_settings["penalty"] == PENALTIES[-1]
    assert result.scores["test"].rmse > 2 * other.scores["test"].rmse


@pytest.mark.parametrize("name", FITTED)
def test_test_targets_decide_nothing(name, small):
    split = make_split()
    result, other = (fit_baseline(name, s) for s in (split, with_other_test_targets(split)))
    assert torch.equal(result.predictions["test"], other.predictions["test"])
    assert result.settings == other.settings
    assert result.scores["test"] != other.scores["test"]


@pytest.mark.parametrize("name", ["ridge", "boosting"])
def test_a_metric_of_agreement_is_maximized(name, small):
    split = make_split(n=200)
    error, agreement = (
        fit_baseline(name, split, metric=metric).scores["validation"]
        for metric in ("rmse", "pearson")
    )
    assert agreement.pearson >= error.pearson > 0.5
    assert error.rmse <= agreement.rmse


@pytest.mark.parametrize("name", FITTED)
def test_a_split_is_seen_standardized_as_the_nets_see_it(name, small):
    split = make_split()
    raw, scaled = (fit_baseline(name, s) for s in (split, standardize(split)))
    assert torch.equal(raw.predictions["test"], scaled.predictions["test"])
    assert raw.settings == scaled.settings


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize("log", [False, True])
def test_the_choice_is_made_in_the_units_of_the_target(name, log, small, monkeypatch):
    split = positive(make_split(m=1))
    scaled, seen = standardize(split, log=log), []
    real = baseline.METRICS["mape"]

    def function(prediction, target, *, rows):
        if len(target) == len(split.validation):  # the others are scores of the test rows
            seen.append((real.function(prediction, target).item(), target))
        return real.function(prediction, target)

    monkeypatch.setitem(baseline.METRICS, "mape", replace(real, function=function))
    result = fit_baseline(name, scaled, metric="mape")
    monkeypatch.undo()
    errors, targets = zip(*seen, strict=True)
    for target in targets:
        torch.testing.assert_close(target, split.validation.y.double(), rtol=1e-5, atol=0)
    found = result.scores["validation"].mape
    assert found == pytest.approx(min(errors), rel=0.2 if name == "trees" else 1e-4)


@pytest.mark.parametrize("name", FITTED)
def test_logarithms_are_fitted_where_they_are_the_scale(name, small):
    split = standardize(positive(make_split(m=1)), log=True)
    result = fit_baseline(name, split)
    assert bool((result.predictions["test"] > 0).all())
    logs = split.y_scaler.inverse(result.predictor(split.test.x))
    torch.testing.assert_close(logs.exp(), result.predictions["test"])


def test_logarithms_that_overflow_are_not_chosen():
    split = standardize(positive(make_split(m=1, n=20)), log=True)
    split.validation.x[0] = 1e6  # where a steep line ends at infinity
    result = fit_baseline("ridge", split)
    assert result.settings.method_settings["penalty"] == PENALTIES[-1]


@pytest.mark.parametrize("name", FITTED)
def test_a_result_has_what_predicts(name, small):
    split = make_split()
    result = fit_baseline(name, split)
    scaled = standardize(split)
    found = scaled.restore(result.predictor(scaled.test.x))
    torch.testing.assert_close(found, result.predictions["test"], rtol=1e-12, atol=1e-12)
    back = load_predictor(name, result.predictor.to_state(), inputs=4, outputs=2)
    assert torch.equal(back(scaled.test.x), result.predictor(scaled.test.x))
    assert "predictor" not in result.to_dict()


@pytest.mark.parametrize("name", FITTED)
def test_windows_of_a_series_are_inputs_like_others(name, small):
    result = fit_baseline(name, make_series().split())
    assert result.predictor.inputs == 5 * 3
    assert result.scores["test"].rmse > 0


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize(("metric", "value"), [("r2", 3.0), ("pearson", 3.0), ("mape", 0.0)])
def test_a_metric_without_a_value_on_the_validation_rows_cannot_choose(name, metric, value, small):
    split = make_split()
    split.validation.y.fill_(value)
    with pytest.raises(ArgumentError, match="`metric` must be defined on the validation rows"):
        fit_baseline(name, split, metric=metric)


@pytest.mark.parametrize("protocol", ["tuned", "paper"])
def test_last_value_is_the_last_row_of_the_window_in_units_of_the_series(protocol):
    data = make_series()
    split = replace(data.split(protocol=protocol), pooled=True)
    result = fit_baseline("last-value", split)
    # Targets of the test part are the rows from 48 on; what is known is two rows older.
    expected = torch.from_numpy(data.series[46:-2])
    torch.testing.assert_close(result.predictions["test"], expected)
    error = np.sqrt(np.square(data.series[48:] - data.series[46:-2]).mean())
    assert result.scores["test"].rmse == pytest.approx(error, rel=1e-5)


def test_last_value_finds_its_way_through_any_scales():
    raw = make_series().split()
    raw = Split(*(replace(part, x=part.x[:]) for part in (raw.train, raw.validation, raw.test)))
    expected = fit_baseline("last-value", raw).predictions["test"]
    both = standardize(raw)
    assert both.x_scaler is not None
    torch.testing.assert_close(fit_baseline("last-value", both).predictions["test"], expected)
    y_scaler = Scaler.fit(raw.train.y)
    parts = (replace(p, y=y_scaler.transform(p.y)) for p in (raw.train, raw.validation, raw.test))
    targets_only = StandardizedSplit(*parts, y_scaler=y_scaler)
    torch.testing.assert_close(
        fit_baseline("last-value", targets_only).predictions["test"], expected
    )


def test_last_value_needs_a_series():
    with pytest.raises(ArgumentError, match=r"inputs \(n, window, columns\).*got \(60, 4\)"):
        fit_baseline("last-value", make_split())
    split = make_series().split()
    fewer = replace(split, train=replace(split.train, y=split.train.y[:, :2]))
    with pytest.raises(ArgumentError, match="the 2 target"):
        fit_baseline("last-value", fewer)


def test_names_are_those_that_suit_the_split():
    assert baseline_names(make_split()) == FITTED
    assert baseline_names(make_series().split()) == BASELINES


def test_inputs_too_large_for_memory_leave_the_mean_and_the_last_value():
    n = LARGEST // 1000 + 1
    windows = Windows(torch.zeros(n + 999, 1), 1000, first=0, n=n)
    part = Part(x=windows, y=torch.arange(float(n))[:, None], rows=np.arange(n))
    small = replace(part, x=windows[:3], y=part.y[:3])
    split = Split(small, small, small, more={"large": part})
    assert baseline_names(split) == ("mean", "last-value")
    with pytest.raises(ArgumentError, match=f"at most {LARGEST} numbers, got {n * 1000}"):
        fit_baseline("ridge", split)


def test_many_rows_or_numbers_leave_out_what_would_take_minutes(monkeypatch):
    split = make_split(n=60)
    monkeypatch.setattr(baseline, "MOST_ROWS", {"trees": 60, "gp": 59})
    assert baseline_names(split) == ("mean", "ridge", "boosting", "trees")
    with pytest.raises(ArgumentError, match="'gp': it must have at most 59 training rows, got 60"):
        fit_baseline("gp", split)
    monkeypatch.setattr(baseline, "MOST_NUMBERS", 60 * 4 - 1)
    assert baseline_names(split) == ("mean", "ridge", "boosting")
    with pytest.raises(ArgumentError, match="training inputs must be at most 239 numbers, got 240"):
        fit_baseline("trees", split)


def test_unknown_names_and_missing_inputs_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'ridge'"):
        fit_baseline("rigde", make_split())
    with pytest.raises(ArgumentError, match="`metric`"):
        fit_baseline("mean", make_split(), metric="mse")
    split = make_split()
    split.train.x[3, 1] = float("nan")
    with pytest.raises(NonFiniteError, match="`x`"):
        fit_baseline("ridge", split)


@pytest.mark.parametrize("name", FITTED)
def test_one_validation_row_and_constant_targets_are_enough(name, small):
    split = make_split()
    split = replace(split, validation=make_part(1, 4, 5))
    for part in (split.train, split.validation, split.test):
        part.y.fill_(7.0)
    scores = fit_baseline(name, split).scores
    assert scores["test"].rmse == pytest.approx(0.0, abs=1e-6)
    assert scores["test"].r2 is None


def test_last_value_of_exchange_rate_is_the_known_figure(monkeypatch, real_data):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    split = replace(load("exchange-rate").split(protocol="paper"), pooled=True)
    scores = fit_baseline("last-value", split).scores["test"]
    assert scores.mape == pytest.approx(1.17, abs=0.005)
    assert scores.rmse == pytest.approx(0.01502, abs=5e-6)
    # The figure that is compared with the paper is in units of each column's largest value.
    divided = Split(split.train, split.validation, split.test, pooled=True)
    assert fit_baseline("last-value", divided).scores["test"].rmse == pytest.approx(
        0.01348, abs=5e-6
    )


def test_on_airfoil_each_is_as_good_as_it_should_be(monkeypatch, real_data):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    split = standardize(load("airfoil").split().subsample(600))
    error = {name: fit_baseline(name, split).scores["test"].rmse for name in baseline_names(split)}
    for name in ("boosting", "trees", "gp"):
        assert 1.0 < error[name] < 3.0
    assert 4.0 < error["ridge"] < 5.5
    assert 6.0 < error["mean"] < 8.0


@pytest.mark.parametrize("name", CHOOSING)
def test_the_unit_of_a_target_has_no_part_in_the_choice(name, small):
    split = make_split()
    unit = torch.tensor([1.0, 1e5])
    parts = [replace(part, y=part.y * unit) for part in (split.train, split.validation, split.test)]
    own, other = fit_baseline(name, split), fit_baseline(name, Split(*parts))
    assert own.settings == other.settings
    assert own.scores["validation"].rmse == pytest.approx(other.scores["validation"].rmse, rel=1e-3)
