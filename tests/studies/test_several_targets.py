"""A study of several targets: each counts alike, whatever its unit, and each is told in its own."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from regaug.data import read_table
from regaug.problems import Problem
from regaug.report.page import render
from regaug.studies.compare import compare
from regaug.studies.study import Study

UNITS = {"price": 1e6, "share": 1e-3}


def make_table(units):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["size", "age"])
    frame["price"] = (frame["size"] + 0.1 * rng.normal(size=60)) * units["price"]
    frame["share"] = (frame["age"] + 1.5 * rng.normal(size=60)) * units["share"]
    return read_table(frame, target=["price", "share"])


@pytest.fixture(scope="module")
def make_small(shorten):
    """A function that makes studies small: ``make_small(monkeypatch, epochs)``."""

    def make(patch, epochs):
        shorten(patch, epochs)
        patch.setattr("regaug.studies.plan.FEWEST_RECIPES", 2)
        patch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge"))

    return make


@pytest.fixture(scope="module")
def study_of(make_small):
    """A function that makes a small study of a table in some units."""

    def make(units, **options):
        with pytest.MonkeyPatch.context() as patch:
            make_small(patch, 4)
            return compare(
                make_table(units), methods=["erm", "mixup"], trials=1, splits=2, **options
            )

    return make


@pytest.fixture(scope="module")
def study(study_of):
    return study_of(UNITS)


def test_the_units_of_the_targets_do_not_matter(study, study_of):
    other = study_of({"price": 1.0, "share": 1.0})
    for row in study.comparison.rows:
        assert row.errors == pytest.approx(other.comparison.row(row.name).errors, rel=1e-3)
    # The mean of the training targets is off by about a standard deviation of each.
    assert study.comparison.row("mean").mean == pytest.approx(1.0, rel=0.2)


def test_a_small_target_is_seen(study):
    errors = [own.rmse for own in study.scores["ridge"]]
    by_target = [
        [own.targets[place].rmse / scale for own in study.scores["ridge"]]
        for place, scale in enumerate(UNITS.values())
    ]
    # Ridge knows the price and hardly anything of the share.
    assert np.mean(by_target[0]) < 0.3 < 1.0 < np.mean(by_target[1])
    assert 0.3 < np.mean(errors) < 1.0


def test_single_runs_are_chosen_by_what_is_compared(study):
    for record in study.chosen["erm"]:
        scores = record.scores["validation"]
        assert record.validation_error("rmse") == scores.rmse < 10.0  # no million
        assert scores.targets[0].rmse > 1e3


def test_the_leaderboard_names_it_and_explains_it(study):
    assert study.comparison.title == "RMSE / spread"
    assert "RMSE / spread" in str(study).splitlines()[1]
    assert "divided by its standard deviation among the scored rows" in str(study)
    assert "RMSE / spread" in study.verdict.text or "RMSE" not in study.verdict.text


def test_every_target_is_told_in_its_own_units(study):
    own = study.details["ridge"].targets
    assert list(own) == ["price", "share"]
    assert own["price"]["rmse"] == np.mean([one.targets[0].rmse for one in study.scores["ridge"]])
    assert own["share"].keys() == {"rmse", "mae", "r2"}
    frame = study.to_frame().set_index("name")
    assert frame.loc["ridge", "mae_share"] == own["share"]["mae"]
    values = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert values["details"]["auto"]["targets"]["price"]["rmse"] > 1e3
    assert values["configuration"]["target_names"] == ["price", "share"]


def test_the_report_has_a_table_for_every_target(study):
    page = render(study)
    captions = re.findall(r'<table class="target">\s*<caption[^>]*>(.*?)</caption>', page)
    assert captions == ["price", "share"]
    tables = page.split('<table class="target">')[1:]
    names = [row.name for row in study.comparison.rows]
    assert [re.findall(r'scope="row">(.*?)<', table.split("</table>")[0]) for table in tables] == [
        names,
        names,
    ]
    assert "RMSE / spread" in page


def test_it_comes_back_from_its_folder(study_of, tmp_path):
    kept = study_of(UNITS, out=tmp_path)
    back = Study.open(tmp_path)
    assert back.comparison == kept.comparison
    assert back.comparison.title == "RMSE / spread"
    assert back.details == kept.details
    assert back.config.target_names == ("price", "share")


@pytest.mark.parametrize("metric", ["mae", "mape", "r2", "pearson"])
def test_every_metric_is_a_mean_over_the_targets(metric, study_of):
    study = study_of(UNITS, metric=metric)
    for row in study.comparison.rows:
        for value, scores in zip(row.errors, study.scores[row.name], strict=True):
            each = [own.value(metric) for own in scores.targets]
            if metric == "mae":
                continue  # divided by spreads
            assert value == pytest.approx(np.mean(each))
    assert study.comparison.title == {"mae": "MAE / spread", "pearson": "Pearson's R"}.get(
        metric, metric.upper()
    )


def test_one_target_is_as_it_was(make_small, monkeypatch):
    make_small(monkeypatch, 2)
    table = make_table(UNITS)
    frame = table.frame.drop(columns="share")
    study = compare(read_table(frame, target="price"), methods=["erm"], trials=1, splits=2)
    assert study.comparison.title == "RMSE"
    assert study.comparison.explanation == ""
    assert study.comparison.row("mean").mean > 1e3
    assert all(own.targets == {} for own in study.details.values())
    assert not any(name.startswith("rmse_") for name in study.to_frame())
    assert "Each target" not in render(study)


def test_splits_without_names_have_numbers(make_small, monkeypatch):
    make_small(monkeypatch, 2)
    problem = Problem.from_table(make_table(UNITS), splits=2)
    assert problem.target_names == ("price", "share")
    study = compare(replace(problem, target_names=()), methods=["erm"], trials=1)
    assert study.config.target_names == ("target_1", "target_2")
