"""Studies of regressors: methods make rows, and single fits are compared with no new rows."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

import regaug
from regaug import Mixup, methods
from regaug.data import read_table
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.methods import Method
from regaug.problems import Problem
from regaug.studies.compare import compare
from regaug.studies.eligibility import leave_out
from regaug.studies.folders import name_study
from regaug.studies.plan import make_plan
from regaug.studies.study import Study


@pytest.fixture(autouse=True)
def _baselines(monkeypatch):
    monkeypatch.setattr(
        "regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge")
    )


def make_data(n=80):
    return make_manifold("paraboloid", n=n, noise=0.2)


def make_splits(n=80, splits=3):
    data = make_data(n)
    return [data.split(seed) for seed in range(splits)]


def make_frame(n=90, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.uniform(30, 90, n), "city": rng.choice(["Oslo", "Rome"], n)})
    frame["price"] = 3 * frame["size"] + 20 * (frame["city"] == "Rome") + rng.normal(0, 5, n)
    return frame


def make_forest():
    return ExtraTreesRegressor(5)


# The plan


def test_methods_that_make_rows_are_tried_and_others_left_out_with_a_sentence():
    problem = Problem(make_splits(), Ridge())
    plan = make_plan(problem, trials=2)
    assert plan.config.methods[0] == "no-rows" == plan.config.reference
    assert "manifold-mixup" not in plan.config.methods
    assert {"mixup", "c-mixup", "ada", "foma", "foma-rho", "cems", "noise"} < set(
        plan.config.methods
    )
    assert any("manifold-mixup" in note for note in plan.notes)
    assert plan.config.recipes == 0
    settings = {run.method: run.settings.method_settings for run in plan.runs if run.settings}
    assert settings["no-rows"] == {}
    for name in plan.config.methods[1:]:
        assert settings[name]["share"] > 0
        assert name == "repeats" or settings[name]["place"] == "input"
        assert not {"p", "anneal", "append"} & settings[name].keys()
    stages = Counter(run.stage for run in plan.runs)
    assert stages == {None: 6, "method": 9 * 2 * 3}


def test_only_what_makes_rows_can_be_asked_for():
    problem = Problem(make_splits(), Ridge())
    for asked in (["erm", "mixup"], ["mixup", "repeats"]):
        assert leave_out(problem, asked)[0] == ("no-rows", "mixup", "repeats")
    with pytest.raises(ArgumentError, match="must make new rows for a regressor, got manifold-mix"):
        make_plan(problem, methods=["manifold-mixup"])
    with pytest.raises(ArgumentError, match="must not have 'rows' without such rows"):
        make_plan(problem, methods=["rows"])


def test_the_target_of_a_regressor_is_not_taken_the_logarithm_of():
    data = ArrayData(
        np.random.default_rng(0).normal(size=(80, 2)),
        np.exp(2 * np.random.default_rng(1).normal(size=80)),
        info=Info("skewed", task="table", metric="rmse", split="At random."),
    )
    assert not any(run.log for run in make_plan(Problem.from_table(data, model=Ridge())).runs)
    assert any(run.log for run in make_plan(Problem.from_table(data)).runs)  # as nets do


def test_a_regressor_that_cannot_be_fitted_is_refused_before_anything_runs():
    with pytest.raises(ArgumentTypeError, match="got the classifier LogisticRegression"):
        compare(make_splits(), model=LogisticRegression())


def test_the_models_parameters_and_rows_make_the_study_what_it_is():
    splits = make_splits()

    def config(model, **options):
        return make_plan(Problem(splits, model, **options), trials=1).config

    assert config(Ridge()) == config(Ridge(alpha=1.0))
    assert config(Ridge()) != config(Ridge(alpha=2.0))
    assert config(Ridge()) != config(Ridge(), keep_integers=True)
    assert config(Ridge()) != config(Ridge(), rows=[splits[0].train.take([0, 1])])
    assert config("trees").baselines == config(Ridge()).baselines
    assert config("ridge").baselines == ("mean",)  # which is the reference already


def test_the_folder_is_named_after_the_model():
    splits = make_splits()
    names = [
        name_study(make_plan(Problem(splits, model, **options), methods=some).config, quick=False)
        for model, options, some in (
            ("trees", {}, None),
            (Ridge(), {"keep_integers": True}, None),
            (Ridge(), {"rows": [splits[0].train]}, ["mixup"]),
        )
    ]
    assert names == ["full-trees", "full-Ridge-integers", "full-Ridge-rows-mixup+rows"]


# The study


def test_a_study_compares_single_fits_with_no_new_rows(tmp_path):
    study = compare(
        make_data(), model=make_forest, methods=["mixup", "c-mixup"], trials=2, splits=3,
        out=tmp_path,
    )  # fmt: skip
    rows = {row.name: row for row in study.comparison.rows}
    assert set(rows) == {"no-rows", "mixup", "c-mixup", "repeats", "mean", "ridge"}  # no ensembles
    chosen = [record.score("test", "rmse") for record in study.chosen["mixup"]]
    assert rows["mixup"].errors == pytest.approx(chosen)
    assert "against no-rows" in str(study)
    assert "net" not in study.verdict.text.replace("network", "")
    assert study.is_complete
    again = Study.open(study.folder)
    assert again.to_dict()["rows"] == study.to_dict()["rows"]
    page = (study.folder / "report.html").read_text()
    assert "no new rows" in page
    assert "plain training" not in page
    assert not (study.folder / "model").exists()
    with pytest.raises(ArgumentError, match="one of a regressor"):
        study.model(make_data())


@pytest.mark.serial
@pytest.mark.slow
def test_the_same_seed_gives_the_same_table_whatever_the_jobs():
    options = {"model": make_forest, "methods": ["mixup"], "trials": 2, "splits": 2}
    here = compare(make_data(), **options)
    there = compare(make_data(), jobs=2, **options)
    assert here.to_dict()["rows"] == there.to_dict()["rows"]


def test_settings_can_be_learned():
    study = compare(make_splits(), model=Ridge(), methods=["mixup"], trials=7, search="tpe")
    tried = {
        record.run.settings.method_settings["share"]
        for record in study.records
        if record.run.method == "mixup"
    }
    assert len(tried) == 7
    assert all(0.05 <= share <= 2.0 for share in tried)


def test_rows_from_elsewhere_are_a_row_of_the_table(tmp_path):
    make_frame(40, seed=1).to_csv(tmp_path / "more.csv", index=False)
    study = compare(
        make_frame(), target="price", model=Ridge(), rows=tmp_path / "more.csv",
        methods=["mixup"], trials=1, splits=2,
    )  # fmt: skip
    assert study.config.methods == ("no-rows", "mixup", "repeats", "rows")
    assert study.comparison.row("rows").mean is not None
    with pytest.raises(ArgumentError, match="needs a regressor that learns from new rows"):
        compare(make_frame(), target="price", rows=tmp_path / "more.csv")
    with pytest.raises(ArgumentError, match="for splits of your own making"):
        compare(make_splits(), model=Ridge(), rows=tmp_path / "more.csv")
    problem = Problem(make_splits(), Ridge())
    for given in ({"model": Ridge()}, {"rows": tmp_path / "more.csv"}):
        with pytest.raises(ArgumentError, match="must be None for a problem"):
            compare(problem, **given)


def test_rows_that_tell_the_truth_help_where_there_are_few():
    """The answer is known: neighbors are nearer where there are more rows of the same curve."""

    def curve(n, seed):
        x = np.random.default_rng(seed).uniform(0, 1, n)
        return pd.DataFrame({"x": x, "y": np.sin(6 * x)})

    table = read_table(curve(60, 0), target="y")
    model, truth = KNeighborsRegressor(1), curve(500, 1)
    study = compare(table, model=model, rows=truth, methods=["repeats"], trials=2, splits=6)
    assert study.verdict.helps == ("rows",)
    assert study.verdict.recommended == study.verdict.use == "rows"
    assert study.verdict.text.endswith("Add the rows from elsewhere.")
    # A row once more changes nothing for the nearest neighbor.
    assert study.comparison.row("repeats").errors == study.comparison.row("no-rows").errors


def test_the_lines_that_the_report_shows_run(tmp_path):
    path = tmp_path / "houses.csv"
    make_frame().to_csv(path, index=False)
    more = tmp_path / "ROWS.csv"
    make_frame(40, seed=1).to_csv(more, index=False)
    study = compare(
        path, target="price", model=Ridge(), rows=more, methods=["mixup"], trials=2, splits=2
    )
    from regaug.report.recipe import command_recipe, python_recipe

    for name in study.config.methods:
        told = replace(study, verdict=replace(study.verdict, recommended=name))
        script = python_recipe(told).replace('"ROWS.csv"', repr(str(more)))
        found = {"model": Ridge()}
        exec(script, found)
        assert found["result"].method == name
        assert found["result"].scores["test"].rmse > 0
        assert command_recipe(told) == ""
    named = compare(path, target="price", model="ridge", methods=["mixup"], trials=1, splits=2)
    exec(python_recipe(named), {})


# The null: copies of no new rows with other seeds


def register_copies(count):
    copy = Method("no rows at all", Mixup, {"sampler": "random", "place": "input", "share": 0.0})
    for number in range(count):
        methods.register(f"copy-{number}", copy)
    return [f"copy-{number}" for number in range(count)]


def test_a_copy_of_no_new_rows_is_that_with_another_seed(registries):
    names = register_copies(1)
    study = compare(make_splits(), model=make_forest, methods=names, trials=2)
    errors = [study.comparison.row(name).errors for name in ("no-rows", *names)]
    assert errors[0] != errors[1]
    # Without anything random all copies are the same, and nothing is called different.
    study = compare(make_splits(), model=Ridge(), methods=names, trials=2)
    errors = [study.comparison.row(name).errors for name in ("no-rows", *names)]
    assert errors[0] == errors[1]
    assert study.verdict.helps == study.verdict.hurts == ()


@pytest.mark.slow
def test_copies_of_no_new_rows_are_hardly_ever_called_different(registries):
    names, found = register_copies(5), 0
    data = regaug.data.load("diabetes")
    for repeat in range(40):
        problem = Problem.from_table(data, splits=6, seed=repeat, model=ExtraTreesRegressor(10))
        study = compare(problem, methods=names, trials=2, seed=repeat)
        found += any(study.comparison.row(name).is_significant for name in names)
    assert found <= 4
