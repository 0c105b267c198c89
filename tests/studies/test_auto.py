"""What ``auto`` means: what a short study recommends, without a look at rows kept apart."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import regaug
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.splits import random_split
from regaug.ensemble import calibration_rows, fit_as, leave_out
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.problems import Problem
from regaug.runs.run import Run
from regaug.studies import auto
from regaug.studies import plan as module
from regaug.studies.auto import FEWEST_ROWS, choose_run, fit
from regaug.studies.compare import compare
from regaug.training.recipe import default_recipe
from regaug.training.settings import Settings


@pytest.fixture(autouse=True)
def _small(monkeypatch, shorten):
    shorten(monkeypatch, 4)
    monkeypatch.setattr(module, "QUICK_METHODS", ("erm", "mixup"))
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


def make_problem(n=80, splits=5, seed=2, data=None):
    problem = Problem.from_table(data or make_data(n=n), splits=splits, seed=seed)
    return replace(problem, hidden=(8,))


def same_weights(model, other):
    weights, others = model.members.weights, other.members.weights
    return weights.keys() == others.keys() and all(
        torch.equal(weights[name], others[name]) for name in weights
    )


# Which run


def test_it_is_the_run_that_a_quick_study_recommends():
    choice = choose_run(make_problem(), seed=2)
    study = compare(make_problem(), quick=True, seed=2)
    assert choice.run == study.best[study.verdict.recommended]
    assert choice.errors == {row.name: row.mean for row in study.comparison.rows if row.is_net}
    assert choose_run(make_problem(), seed=2) == choice
    assert choose_run(make_problem(), seed=3) != choice


def test_an_augmentation_is_taken_only_if_it_differs(monkeypatch):
    # Every other number is noise: what is not significant is not recommended.
    choice = choose_run(make_problem(splits=2))
    assert choice.run.method == "erm"
    assert choice.errors.keys() == {"erm", "mixup"}


def test_what_helps_beyond_doubt_is_taken():
    # Plain training at a rate that learns nothing, mixup at a good one.
    own = {
        "erm": Settings(epochs=20, learning_rate=1e-9),
        "mixup": Settings(epochs=20, learning_rate=1e-2, method_settings={"alpha": 0.1}),
    }
    choice = choose_run(make_problem(), settings=own)
    assert choice.run.method == "mixup"
    assert replace(choice.run.settings, seed=0) == own["mixup"]
    assert choice.errors["mixup"] < 0.8 * choice.errors["erm"]


def test_a_method_that_always_diverges_has_an_infinite_error():
    own = {"erm": Settings(epochs=2), "mixup": Settings(epochs=2, learning_rate=1e30)}
    choice = choose_run(make_problem(splits=2), settings=own)
    assert choice.run.method == "erm"
    assert choice.errors["mixup"] == float("inf")


def test_with_few_rows_nothing_is_compared_and_it_is_plain_training():
    few, enough = (make_problem(n, splits=2) for n in (FEWEST_ROWS - 1, FEWEST_ROWS))
    seen = []
    choice = choose_run(few, observer=seen.append)
    assert (choice.run.method, choice.errors, seen) == ("erm", {}, [])
    expected = replace(default_recipe(len(few.splits[0].train)), epochs=4, patience=None)
    assert replace(choice.run.settings, seed=0) == expected
    choose_run(enough, observer=seen.append)
    assert seen


# The model


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


def test_the_model_is_that_of_a_study_of_the_other_rows():
    data, seen = make_data(), []
    model = fit(data, members=2, seed=2, progress=seen.append)
    known = leave_out(data, calibration_rows(data, seed=2))
    study = compare(known, quick=True, seed=2)
    best = study.best[study.verdict.recommended]
    assert model.method == best.method
    for name in (
        "learning_rate",
        "weight_decay",
        "batch_size",
        "epochs",
        "patience",
        "method_settings",
    ):
        assert getattr(model.settings, name) == getattr(best.settings, name)
    assert sum(len(event.records) for event in seen) == 8 * 5 + 2 * 4 * 5
    assert same_weights(model, fit_as(data, best, members=2, seed=2))


def make_run(name, log=False, **settings):
    return Run("waves", name, 0, 0, Settings(**({"epochs": 3} | settings)), 0, log)


def test_what_is_recommended_is_trained():
    own = {"alpha": 0.3, "p": 0.25}
    run = make_run("mixup", method_settings=own, learning_rate=0.005, batch_size=16)
    model = fit_as(make_data(), run, members=2)
    assert model.method == "mixup"
    assert (model.settings.learning_rate, model.settings.batch_size) == (0.005, 16)
    assert {name: model.settings.method_settings[name] for name in own} == own
    assert not model.members.log


def test_the_logarithm_is_fitted_if_recommended_and_if_every_target_has_one():
    run, positive, data = make_run("erm", log=True), make_data(), make_data()
    positive.y, data.y = np.exp(positive.y), np.exp(data.y)
    data.y[calibration_rows(data)[0]] = 0.0  # a row that the study has not seen
    assert fit_as(positive, run, members=2).members.log
    assert not fit_as(data, run, members=2).members.log


def test_a_method_may_be_named_and_then_there_is_no_study(monkeypatch):
    def refuse(*problem, **options):
        raise AssertionError("a study")

    monkeypatch.setattr(auto, "choose_run", refuse)
    model = regaug.fit(make_data(), method="noise", members=1, method_settings={"sigma": 0.1})
    assert (model.method, model.settings.method_settings["sigma"]) == ("noise", 0.1)
    with pytest.raises(UnknownNameError, match="Unknown method 'automatic'"):
        fit(make_data(), method="automatic")
    with pytest.raises(AssertionError, match="a study"):
        fit(make_data())


def test_settings_of_a_method_need_a_method():
    with pytest.raises(ArgumentError, match=r"`method_settings` must be None .* Name a method"):
        fit(make_data(), method_settings={"rho": 0.9})
