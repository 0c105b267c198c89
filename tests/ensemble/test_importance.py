"""What a model rests on: a column shuffled in the user's table, on rows that were not learned."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import load, read_table
from regaug.ensemble import fit, importance
from regaug.ensemble.evidence import Evidence
from regaug.ensemble.importance import column_spans, find_importances
from regaug.metrics import METRICS


def make_frame(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "noise": rng.normal(size=n),
        }
    )
    frame["price"] = 3 * frame["size"] + 2.0 * (frame["city"] == "Rome") + 0.1 * rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def model():
    return fit(read_table(make_frame(), target="price"), method="ridge")


def test_what_matters_comes_first_and_what_does_not_is_about_zero(model):
    found = find_importances(model, model.evidence)
    assert [own.column for own in found.columns[:2]] == ["size", "city"]
    assert {own.column for own in found.columns} == {"size", "city", "sold", "noise"}
    size, city, *others = found.columns
    # Of a line with slope 3: the error of a shuffled column is about 3 * sqrt(2).
    assert size.mean == pytest.approx(3 * np.sqrt(2), rel=0.35)
    assert 0.3 < city.mean < 2.0
    assert all(abs(own.mean) < 0.05 for own in others)
    assert 0 < size.spread < size.mean
    assert (found.rows, found.repeats) == (len(model.evidence), 5)


@pytest.mark.parametrize("column", ["size", "city", "sold"])
def test_a_column_is_shuffled_as_the_user_would(model, column, monkeypatch):
    """Shuffling a column of the frame before it is encoded gives the very same errors."""
    frame = make_frame().iloc[:30]
    order = np.random.default_rng(7).permutation(30)
    shuffled = frame.assign(**{column: frame[column].to_numpy()[order]})
    y = torch.tensor(frame[["price"]].to_numpy())
    expected = [METRICS["rmse"](model.predict(own).mean, y).item() for own in (frame, shuffled)]

    class Same:
        def permutation(self, n):
            return order

    monkeypatch.setattr(importance._random, "numpy_generator", lambda *numbers: Same())
    evidence = Evidence(model.preparation(frame), y)
    found = {own.column: own for own in find_importances(model, evidence).columns}
    assert found[column].mean == pytest.approx(expected[1] - expected[0], rel=1e-6, abs=1e-9)
    assert found[column].spread == pytest.approx(0.0, abs=1e-12)


def test_the_same_model_has_the_same_importances(model):
    one, two = (find_importances(model, model.evidence) for _ in range(2))
    assert one == two
    assert one != find_importances(model, model.evidence, seed=1)


def test_columns_without_names_have_numbers():
    model = fit(load("synthetic-paraboloid", n=60), method="ridge")
    assert [name for name, _ in column_spans(model)] == ["x1", "x2"]
    assert {own.column for own in find_importances(model, model.evidence).columns} == {"x1", "x2"}


def test_several_targets_are_told_by_their_spread():
    frame = make_frame().assign(tax=lambda own: 1e6 * own["noise"])
    model = fit(read_table(frame, target=["price", "tax"]), method="ridge")
    found = {own.column: own.mean for own in find_importances(model, model.evidence).columns}
    assert 0.2 < found["noise"] < 2.0
    assert 0.2 < found["size"] < 2.0


def test_many_columns_have_fewer_rows_and_repeats_and_very_many_none(model, monkeypatch):
    monkeypatch.setattr(importance, "MOST_PREDICTIONS", 4 * 20 * 3)
    found = find_importances(model, model.evidence)
    assert (found.rows, found.repeats) == (20, 3)
    monkeypatch.setattr(importance, "MOST_PREDICTIONS", 4 * 20)
    assert find_importances(model, model.evidence).columns == ()


def test_one_row_cannot_be_shuffled(model):
    evidence = replace(model.evidence, x=model.evidence.x[:1], y=model.evidence.y[:1])
    assert find_importances(model, evidence).columns == ()
