"""The model of a short study: what it recommends, without a look at the rows to calibrate on."""

import numpy as np
import pytest
import torch

from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.splits import random_split
from regaug.ensemble import calibration_rows, leave_out
from regaug.exceptions import UnknownNameError
from regaug.studies import auto
from regaug.studies import compare as module
from regaug.studies.auto import fit, fit_recommended
from regaug.studies.compare import compare
from regaug.studies.verdict import Verdict


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    for name, value in (("EPOCHS", 4), ("PATIENCE", 4), ("QUICK_METHODS", ("erm", "mixup"))):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "baseline_names", lambda split: ("mean",))


def make_data(change=None, n=80):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    y = np.sin(x[:, 0]) + x[:, 1] + 0.2 * rng.standard_normal(n)
    info = Info(name="waves", task="table", metric="rmse", split="At random.")
    data = ArrayData(x, y, info=info, rule=lambda seed: random_split(n, seed=seed))
    if change is not None:
        rows = calibration_rows(data, seed=2)
        data.y[rows] = change(data.y[rows])
    return data


def same_weights(model, other):
    weights, others = model.members.weights, other.members.weights
    return weights.keys() == others.keys() and all(
        torch.equal(weights[name], others[name]) for name in weights
    )


def test_rows_to_calibrate_on_change_the_intervals_and_nothing_else():
    model, other = (
        fit(make_data(change), members=2, seed=2) for change in (None, lambda y: 50 - 9 * y)
    )
    assert model.method == other.method
    assert model.settings == other.settings
    assert same_weights(model, other)
    rows = np.zeros((1, 3))
    narrow, wide = (each.predict(rows, interval=0.9) for each in (model, other))
    assert torch.equal(narrow.mean, wide.mean)
    assert (wide.high - wide.low) > 5 * (narrow.high - narrow.low)


def test_the_model_has_the_settings_that_a_study_of_the_other_rows_recommends():
    data, seen = make_data(), []
    model = fit(data, members=2, seed=2, watch=seen.append)
    known = leave_out(data, calibration_rows(data, seed=2))
    study = compare(known, quick=True, seed=2)
    method = study.verdict.recommended
    expected = study.settings[method]["settings"]
    assert model.method == method
    for name in ("learning_rate", "weight_decay", "batch_size", "epochs", "patience"):
        assert getattr(model.settings, name) == expected[name]
    assert model.settings.method == expected["method"]
    assert sum(len(outcome) for outcome in seen) == 2 * 8 * 5 + 5
    assert same_weights(model, fit_recommended(data, study, members=2, seed=2))


class Recommendation:
    """A study's answer, given by hand."""

    def __init__(self, name, log=False, **settings):
        self.verdict = Verdict("", name, (name,), ())
        self.settings = {name: {"settings": {"epochs": 3} | settings, "log": log}}


def test_what_is_recommended_is_trained():
    own = {"alpha": 0.3, "p": 0.25}
    study = Recommendation("mixup", method=own, learning_rate=0.005, batch_size=16)
    model = fit_recommended(make_data(), study, members=2)
    assert model.method == "mixup"
    assert (model.settings.learning_rate, model.settings.batch_size) == (0.005, 16)
    assert {name: model.settings.method[name] for name in own} == own
    assert not model.members.log


def test_the_logarithm_is_fitted_if_recommended_and_if_every_target_has_one():
    study, positive, data = Recommendation("erm", log=True), make_data(), make_data()
    positive.y, data.y = np.exp(positive.y), np.exp(data.y)
    data.y[calibration_rows(data)[0]] = 0.0  # a row that the study has not seen
    assert fit_recommended(positive, study, members=2).members.log
    assert not fit_recommended(data, study, members=2).members.log


def test_a_method_may_be_named_and_then_there_is_no_study(monkeypatch):
    def refuse(*data, **options):
        raise AssertionError("a study")

    monkeypatch.setattr(auto, "compare", refuse)
    assert fit(make_data(), method="noise", members=1).method == "noise"
    with pytest.raises(UnknownNameError, match="Unknown method 'automatic'"):
        fit(make_data(), method="automatic")
    with pytest.raises(AssertionError, match="a study"):
        fit(make_data())
