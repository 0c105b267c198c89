"""Which run a quick study recommends."""

from dataclasses import replace

import numpy as np
import pytest

from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.splits import random_split
from regaug.problems import Problem
from regaug.studies import plan as module
from regaug.studies.auto import FEWEST_ROWS, choose_run
from regaug.studies.compare import compare
from regaug.training.recipe import default_recipe
from regaug.training.settings import Settings


@pytest.fixture(autouse=True)
def _small(monkeypatch, shorten):
    shorten(monkeypatch, 4)
    monkeypatch.setattr(module, "QUICK_METHODS", ("erm", "mixup"))
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))


def make_data(n=80):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    y = np.sin(x[:, 0]) + x[:, 1] + 0.2 * rng.standard_normal(n)
    info = Info(name="waves", task="table", metric="rmse", split="At random.")
    return ArrayData(x, y, info=info, rule=lambda seed: random_split(n, seed=seed))


def make_problem(n=80, splits=5, seed=2):
    problem = Problem.from_table(make_data(n), splits=splits, seed=seed)
    return replace(problem, hidden=(8,))


def test_it_is_the_run_that_a_quick_study_recommends():
    problem = make_problem(splits=2)
    choice = choose_run(problem, seed=2)
    study = compare(problem, quick=True, seed=2)
    assert choice.run == study.best[study.verdict.recommended]
    assert choice.errors == {row.name: row.mean for row in study.comparison.rows if row.is_net}
    assert choose_run(make_problem(splits=2), seed=2) == choice
    assert choose_run(problem, seed=3) != choice


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
    usual = default_recipe(len(few.splits[0].train))
    expected = replace(usual, epochs=4, patience=None, halve=True)
    assert replace(choice.run.settings, seed=0) == expected
    choose_run(enough, observer=seen.append)
    assert seen
