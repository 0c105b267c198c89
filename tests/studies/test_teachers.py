"""Teachers in a study: who may teach, that each stands beside, and what its nets learn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import regaug
from regaug import methods
from regaug.data import read_table, standardize
from regaug.exceptions import ArgumentError
from regaug.models import MLP
from regaug.problems import Problem
from regaug.studies.budget import Asked, Extent
from regaug.studies.eligibility import leave_out
from regaug.studies.ladder import choose_budget
from regaug.studies.plan import make_plan
from regaug.studies.search import draw_settings
from regaug.training import Settings, fit, fit_many
from regaug.training.pace import Pace
from regaug.training.stacked.training import Training

NAME = "teacher-rows"


def make_frame(n=120):
    x = np.random.default_rng(0).normal(size=(n, 3))
    return pd.DataFrame(x, columns=list("abc")).assign(y=np.sin(x).sum(axis=1) + 2.0 * x[:, 0])


@pytest.fixture
def beside(monkeypatch):
    def choose(*names):
        monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: names)

    return choose


def teachers_in(plan):
    runs = (run for run in plan.runs if run.method == NAME)
    return {run.settings.method_settings["teacher"] for run in runs}


def test_a_method_takes_the_teachers_that_there_are():
    method = methods.get(NAME)
    assert method.taught(("gp", "ridge", "trees", "boosting")) is method
    own = method.taught(("ridge", "gp"))
    assert own.defaults["teacher"] == "gp"
    assert own.space["teacher"].values == own.teachers == ("gp",)
    assert all(start.get("teacher", "gp") == "gp" for start in own.starts)
    assert method.taught(("ridge",)) is None


def test_what_is_drawn_has_a_teacher_that_stands_beside():
    drawn = draw_settings(NAME, 12, seed=0, beside=("mean", "boosting", "trees"))
    assert {own["teacher"] for own in drawn} == {"boosting", "trees"}
    assert {own["teacher"] for own in draw_settings(NAME, 12, seed=0)} == set(
        methods.teachers_of(NAME)
    )


def test_a_plan_leaves_out_teachers_that_do_not_stand_beside(beside):
    problem = Problem.from_table(read_table(make_frame(), target="y"), splits=2)
    assert teachers_in(make_plan(problem, methods=[NAME], trials=9)) == {"boosting", "trees", "gp"}
    beside("mean", "trees")
    assert teachers_in(make_plan(problem, methods=[NAME], trials=9)) == {"trees"}


def test_without_any_teacher_it_is_left_out_and_that_is_said(beside):
    beside("mean", "ridge")
    problem = Problem.from_table(read_table(make_frame(), target="y"), splits=2)
    kept, said = leave_out(problem, ("erm", "mixup", NAME))
    assert kept == ("erm", "mixup")
    assert said == ["Left out, as no teacher can be fitted to these inputs: teacher-rows."]
    with pytest.raises(ArgumentError, match="must have one that can act on the problem. Left out"):
        leave_out(problem, ("erm", NAME))


def test_a_regressor_may_be_taught_by_itself(beside):
    beside("mean", "boosting")
    problem = Problem.from_table(read_table(make_frame(), target="y"), splits=2, model="boosting")
    plan = make_plan(problem, methods=[NAME], trials=4)
    assert "boosting" not in plan.config.baselines
    assert teachers_in(plan) == {"boosting"}


def test_teachers_stay_where_there_is_no_time_for_other_baselines():
    slow = {"mean": 0.0, "trees": 500.0, "last": 500.0}
    extent = Extent(splits=10, rows=2_000, train_rows=1_200, baselines=slow)

    def baselines(*names):
        paces = {name: Pace(0.1, 0.2, 0.01) for name in names}
        return choose_budget(Asked(max_minutes=10), names, extent, paces).baselines

    assert baselines("erm", "mixup") == ("mean",)
    assert baselines("erm", NAME) == ("mean", "trees")


def test_a_study_has_the_teacher_beside_and_says_how_the_nets_compare(beside, monkeypatch, shorten):
    beside("mean", "trees")
    shorten(monkeypatch, 2)
    study = regaug.compare(make_frame(), target="y", methods=["erm", NAME], trials=1, splits=3)
    assert {row.name for row in study.comparison.rows} >= {"erm", NAME, "trees"}
    assert study.comparison.row(NAME).n_failed == 0
    assert "The teacher of teacher-rows, trees, stands beside: the nets " in study.verdict.text


# What nets learn from it


def test_a_teacher_learns_the_targets_and_its_nets_what_a_line_leaves_of_its_labels():
    split = standardize(read_table(make_frame(), target="y").split(seed=0))
    plain, bent = (
        Training.make(0, split, NAME, Settings(linear=linear, seed=3), (8,), None)
        for linear in (False, True)
    )
    assert bent.groundwork.line is not None
    one, other = plain.augmentation, bent.augmentation
    assert torch.equal(one.offsets, other.offsets)
    new = (one.inputs[:, None] + one.offsets).flatten(0, 1)
    expected = bent.groundwork.learned(new, one.labels.flatten(0, 1))
    torch.testing.assert_close(other.labels.flatten(0, 1).double(), expected, rtol=0, atol=1e-5)


def test_runs_side_by_side_learn_what_runs_by_themselves_do():
    split = standardize(read_table(make_frame(), target="y").split(seed=0))
    own = {"teacher": "gp", "anneal": None}
    settings = [Settings(epochs=2, seed=seed, method_settings=own) for seed in range(2)]
    together = fit_many(split, NAME, settings, hidden=(8,), dtype=torch.float64)
    train, validation, test = (
        replace(part, x=part.x.double(), y=part.y.double()) for part in split.parts.values()
    )
    wide = replace(split, train=train, validation=validation, test=test)
    for one, settings_of_one in zip(together, settings, strict=True):
        net = MLP(3, hidden=(8,), seed=settings_of_one.seed).double()
        alone = fit(net, wide, NAME, settings_of_one)
        for name, weight in alone.weights.items():
            torch.testing.assert_close(one.weights[name], weight, rtol=0, atol=1e-6)
