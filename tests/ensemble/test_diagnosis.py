"""A model looked at with rows that it has not learned: plain values that come back from a file."""

import json
from dataclasses import replace

import numpy as np
import pytest

from regaug.data import load, read_table
from regaug.ensemble import Diagnosis, Ensemble, diagnosis, fit
from regaug.ensemble.diagnosis import read_diagnosis, write_diagnosis
from regaug.exceptions import ArgumentError, StoreError
from regaug.metrics import evaluate


@pytest.fixture(scope="module")
def fitted(houses):
    return fit(read_table(houses, target=["price", "tax"], group="street"), method="ridge")


@pytest.fixture(scope="module")
def found(fitted):
    return fitted.diagnose()


def test_it_is_made_with_the_rows_that_were_put_aside(fitted, found):
    assert found.scores.n == len(fitted.calibration) == len(fitted.evidence)
    assert found.scores.rmse == pytest.approx(fitted.held_out.rmse)
    assert found.where == "rows that were put aside before anything was learned"
    assert (found.rule, found.group, found.made_intervals) == ("group", "street", True)
    assert len(found.true) == len(found.predicted) == len(found.groups) == found.scores.n
    assert set(found.groups) == set(found.scores.groups)
    assert found.shares == {"ridge": 1.0}
    assert found.what == "ridge: 8 models"


def test_the_values_of_the_columns_are_the_users(houses, found, fitted):
    rows = houses.iloc[np.flatnonzero(houses["street"].astype(str).isin(found.groups))]
    size = found.columns["size"].numbers
    assert {own for own in size if own is not None} == set(rows["size"].dropna())
    assert size.count(None) == rows["size"].isna().sum()
    city = fitted.diagnose(rows).columns.get("city")
    if city is not None:
        assert set(city.texts) <= {"Oslo", "Rome", "Łódź", "(missing)", "(other)"}


def test_it_survives_json(found):
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert Diagnosis.from_dict(json.loads(text)) == found


def test_it_comes_back_from_a_folder(found, tmp_path):
    assert read_diagnosis(tmp_path) is None
    write_diagnosis(tmp_path, found)
    assert read_diagnosis(tmp_path) == found


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("format", value) for value in (0, 2, None)],
        *[("true", value) for value in ([["a"]], [[float("nan")]], None, [[True]])],
        *[("coverage", value) for value in ([{}], [{"level": 0.5}], 3)],
        *[("importances", value) for value in ({}, None, {"columns": [{}], "rows": 1})],
        *[("columns", value) for value in ({"a": {}}, {"a": {"numbers": ["b"], "texts": []}})],
        *[("shares", value) for value in ({"a": "b"}, [])],
        *[("targets", value) for value in ("price", [1])],
        *[("scores", value) for value in ({}, None)],
    ],
)
def test_a_file_that_is_none_is_refused_with_the_way_out(found, tmp_path, key, value):
    path = write_diagnosis(tmp_path, found)
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(StoreError, match="diagnosis.json.* Delete it"):
        read_diagnosis(tmp_path)


def test_a_model_from_a_folder_needs_rows(fitted, houses, new_houses, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = Ensemble.load(tmp_path / "model")
    with pytest.raises(ArgumentError, match="`source` must be rows with their targets"):
        loaded.diagnose()
    with pytest.raises(ArgumentError, match="`source` must have the targets, price, tax"):
        loaded.diagnose(new_houses)
    houses.to_csv(tmp_path / "houses.csv", index=False)
    found = loaded.diagnose(tmp_path / "houses.csv")
    assert (found.where, found.made_intervals) == ("rows of houses.csv", False)
    assert found.scores.n == len(houses)
    prediction = loaded.predict(houses)
    y = loaded.predict(houses).scores
    assert found.scores.rmse == pytest.approx(y.rmse)
    assert len(prediction) == len(houses)


def test_rows_without_a_target_are_left_out(fitted, houses):
    some = houses.copy()
    some.loc[some.index[:50], "tax"] = None
    assert fitted.diagnose(some).scores.n == len(houses) - 50


def test_very_many_rows_are_looked_at_in_part(fitted, houses, monkeypatch):
    monkeypatch.setattr(diagnosis, "MOST_ROWS", 60)
    monkeypatch.setattr(diagnosis, "MOST_SHOWN", 20)
    found = fitted.diagnose(houses)
    assert (found.scores.n, len(found.true)) == (60, 20)


def test_arrays_have_numbered_columns_and_a_blend_its_shares():
    data = load("synthetic-paraboloid", n=80, noise=0.1)
    model = fit(data, method="erm", members=2)
    found = model.diagnose(data)
    mean = model.predict(data).mean
    assert found.scores == evaluate(mean, model._read(data).y)
    assert set(found.columns) <= {"x1", "x2"}
    assert found.importances.columns
    assert found.shares == {"erm": 1.0}
    assert replace(model, notes=("A note.",)).diagnose().notes == ("A note.",)
