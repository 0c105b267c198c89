"""A column of the user's says how much each row matters: in tables, new rows, steps and studies."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from regaug import Problem, compare
from regaug.augment.rare_rows import RareRows
from regaug.data import read_table
from regaug.data.tabular.generation import generate
from regaug.exceptions import ArgumentError, DataError
from regaug.integrations.sklearn import AugmentingSampler
from regaug.studies.plan import make_plan
from regaug.training import Settings
from regaug.training.estimators import NewRows, add_rows


def make_frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(size=n), "rooms": rng.integers(1, 9, n)})
    frame["city"] = rng.choice(["Oslo", "Rome"], n)
    frame["price"] = frame["size"] * 10 + rng.normal(size=n)
    frame["urgent"] = np.where(frame["size"].between(0.3, 0.9), 1.0, 0.25)
    return frame


@pytest.fixture(scope="module")
def table():
    return read_table(make_frame(), target="price", relevance="urgent")


def test_the_column_is_no_input_and_every_part_has_its_rows(table):
    frame = make_frame()
    assert "urgent" not in table.inputs
    assert "Relevance: 'urgent'." in table.summary
    assert table.given["relevance"] == "urgent"
    split = table.split(seed=0)
    for part in (*split.parts.values(), split.subsample(30).train, split.train.take([3, 1])):
        assert np.array_equal(part.relevances, frame["urgent"].to_numpy()[part.rows])
    assert read_table(frame, target="price").split(seed=0).train.relevances is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.5, -2.0], r"a number from 0 to 1, got 1\.5 \(2 such values\)"),
        ([np.nan, 0.5], "got none in 1 row. Put 0 where nothing matters"),
        (["much", "little"] * 60, "got '(much|little)'"),
    ],
)
def test_values_that_are_no_relevance_are_refused(values, words):
    frame = make_frame()
    frame["urgent"] = [*values, *[0.5] * (120 - len(values))]
    with pytest.raises(DataError, match=words):
        read_table(frame, target="price", relevance="urgent")


def test_a_gap_in_a_row_without_a_target_does_not_matter():
    frame = make_frame()
    frame.loc[5, ["price", "urgent"]] = np.nan
    assert len(read_table(frame, target="price", relevance="urgent")) == 119


def test_names_that_are_no_column_or_another_role_are_refused():
    with pytest.raises(ArgumentError, match="`relevance`: Unknown column 'urgnt'"):
        read_table(make_frame(), target="price", relevance="urgnt")
    with pytest.raises(ArgumentError, match="`target` and `relevance` must differ"):
        read_table(make_frame(), target="price", relevance="price")


def test_new_rows_lie_where_the_column_says(table):
    frame, own = make_frame(), {"focus": "urgent", "sigma": 0.01}
    new = generate(table, method="smogn", rows=150, method_settings=own)
    assert list(new.columns) == ["size", "rooms", "city", "price"]
    rare = frame[frame["urgent"] >= 0.8]
    assert new["size"].between(rare["size"].min() - 0.1, rare["size"].max() + 0.1).all()
    elsewhere = generate(table, method="smogn", rows=150)  # by the box plot
    assert not elsewhere["size"].between(0.2, 1.0).all()


def test_rows_of_both_ends_have_none_between_them():
    y = torch.linspace(-1.0, 1.0, 40, dtype=torch.float64)[:, None]
    told = np.zeros(40)
    told[[0, 1, 2, 37, 38, 39]] = 1.0
    known = RareRows.of(y.clone(), y, focus="column", relevances=told)
    assert known.rare.tolist() == [0, 1, 2, 37, 38, 39]
    _, new_y = known.make(known.draw(200, seed=0), sigma=0.01)
    assert (new_y.abs() > 0.8).all()


def test_a_focus_without_what_it_needs_is_refused(table):
    plain = read_table(make_frame(), target="price", drop="urgent")
    with pytest.raises(
        ArgumentError, match=r"`focus` must be .* of which it has none, got 'urgent'"
    ):
        generate(plain, method="smogn", rows=5, method_settings={"focus": "urgent"})
    with pytest.raises(ArgumentError, match="it has 'urgent', got 'size'"):
        generate(table, method="smogn", rows=5, method_settings={"focus": "size"})
    y = torch.randn(30, 1, dtype=torch.float64)
    with pytest.raises(ArgumentError, match="for rows without a relevance"):
        RareRows.of(y, y, focus="column")
    with pytest.raises(DataError, match="in at least 2 rows .* got 1 such row"):
        RareRows.of(y, y, focus="column", relevances=np.eye(30)[0])


# In a pipeline


def test_a_step_goes_by_a_column_and_new_rows_keep_what_they_start_from():
    frame = make_frame()
    X, y = frame.drop(columns="price"), frame["price"]  # noqa: N806
    own = {"focus": "urgent", "sigma": 0.01}
    sampler = AugmentingSampler("smogn", rows=80, method_settings=own, random_state=0)
    more, targets = sampler.fit_resample(X, y)
    new = more.iloc[len(X) :]
    assert list(more.columns) == list(X.columns)
    assert (new["urgent"] == 1.0).all()
    assert new["size"].between(0.2, 1.0).all()
    # It is no input: another number in it moves no row.
    other = X.assign(urgent=np.where(X["urgent"] == 1.0, 0.9, 0.0))
    again, same = sampler.fit_resample(other, y)
    pd.testing.assert_frame_equal(again.drop(columns="urgent"), more.drop(columns="urgent"))
    pd.testing.assert_series_equal(same, targets)


def test_a_step_refuses_what_is_no_column_of_relevance():
    frame = make_frame()
    X, y = frame.drop(columns="price"), frame["price"]  # noqa: N806
    for focus, data, error, words in (
        ("urgnt", X, ArgumentError, "`focus` must be one of 'high', 'low', 'both', or a column"),
        ("urgent", X[["size"]].to_numpy(), ArgumentError, "for an array"),
        ("rooms", X, DataError, "Column 'rooms' must hold the relevance"),
    ):
        sampler = AugmentingSampler("smogn", rows=5, method_settings={"focus": focus})
        with pytest.raises(error, match=words):
            sampler.fit_resample(data, y)


# In a study


def test_in_a_study_smogn_goes_by_the_column(table):
    problem = Problem.from_table(table, splits=2, model="ridge")
    plan = make_plan(problem, methods=["smogn"], trials=2)
    found = {run.settings.method_settings["focus"] for run in plan.runs if run.method == "smogn"}
    assert found == {"column"}
    frame = make_frame().assign(urgent=lambda own: 1.0 - own["urgent"] / 2)
    other = read_table(frame, target="price", relevance="urgent")
    assert Problem.from_table(other, splits=2, model="ridge").checksum() != problem.checksum()


def test_a_run_of_a_study_has_rows_where_the_column_says(table):
    split = table.split(seed=0)
    own = {"share": 1.0, "focus": "column", "sigma": 0.01, "neighbors": 3}
    train = add_rows(split, Settings(method_settings=own), NewRows("smogn"))
    new = train.x[len(split.train) :, 0]
    assert len(new) == len(split.train)
    assert ((new > 0.1) & (new < 1.1)).all()


@pytest.mark.slow
def test_a_study_runs_with_it_from_python_and_learns_other_settings():
    options = {"methods": ["smogn"], "model": "ridge", "splits": 2, "focus": "urgent"}
    study = compare(make_frame(), target="price", trials=6, search="tpe", **options)
    own = [record.run for record in study.records if record.run.method == "smogn"]
    assert {run.settings.method_settings["focus"] for run in own} == {"column"}
    assert study.config.columns == 4  # size, rooms and two cities
    table = read_table(make_frame(), target="price", relevance="urgent")
    assert compare(table, trials=1, **options).config.checksum == study.config.checksum


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"metric": "tail-rmse", "methods": ["smogn"]},
            "for the metric 'tail-rmse', which goes by",
        ),
        ({"methods": ["mixup"]}, "Name 'smogn' in `methods`"),
        ({}, "Name 'smogn' in `methods`"),
    ],
)
def test_a_column_that_nothing_would_go_by_is_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        compare(make_frame(), target="price", model="ridge", focus="urgent", **options)


def test_the_splits_of_a_problem_know_no_column(table):
    problem = Problem.from_table(table, splits=2, model="ridge")
    with pytest.raises(ArgumentError, match="`relevance` must be None for data that knows"):
        compare(problem, methods=["smogn"], focus="urgent")


@pytest.fixture
def run(tmp_path):
    from typer.testing import CliRunner

    from regaug.cli.main import app

    make_frame().to_csv(tmp_path / "houses.csv", index=False)

    def call(command, *words):
        given = [command, tmp_path / "houses.csv", "--target", "price", "--focus", "urgent", *words]
        return CliRunner().invoke(app, [str(word) for word in given])

    return call


def test_new_rows_are_written_by_a_column(run, tmp_path):
    out = tmp_path / "rare.csv"
    result = run("augment", "--method", "smogn", "--rows", 40, "-o", out)
    assert result.exit_code == 0, result.output
    assert "Left out, as they are no inputs: 'urgent'." in result.stdout
    assert pd.read_csv(out)["size"].between(0.0, 1.2).all()


STUDY = ("--model", "ridge", "--splits", 2, "--trials", 1)


@pytest.mark.slow
def test_a_command_compares_by_a_column(run, tmp_path):
    result = run("compare", *STUDY, "--methods", "smogn", "--json", "--out", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["verdict"]


def test_a_command_refuses_a_column_that_nothing_would_go_by(run, tmp_path):
    for words, message in (
        (("--methods", "smogn", "--metric", "tail-rmse"), "goes by the targets themselves"),
        (("--methods", "mixup"), "Name 'smogn' in `--methods`"),
    ):
        failed = run("compare", *STUDY, *words, "--out", tmp_path / "runs")
        assert failed.exit_code in (1, 2)
        assert message in failed.stderr
