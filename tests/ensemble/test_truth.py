"""The targets of rows that are predicted: read where they are, scored, and covered or not."""

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import load
from regaug.ensemble import fit
from regaug.ensemble.truth import NO_GROUP, Truth
from regaug.metrics import evaluate

FRAME = pd.DataFrame(
    {
        "price": ["1.5", "2.5", "unknown", None],
        "tax": [1.0, 2.0, 3.0, np.inf],
        "city": ["Oslo", None, "Rome", "Rome"],
    }
)


def test_a_table_without_a_target_knows_nothing():
    assert Truth.find(FRAME, ("price", "rent"), None) is None
    assert Truth.find(np.zeros((3, 2)), ("price",), None) is None


def test_what_cannot_be_read_is_not_known():
    truth = Truth.find(FRAME, ("tax", "price"), "city")
    assert truth.is_known.tolist() == [True, True, False, False]
    assert truth.y[:2].tolist() == [[1.0, 1.5], [2.0, 2.5]]
    assert truth.groups.tolist() == ["Oslo", NO_GROUP, "Rome", "Rome"]
    assert Truth.find(FRAME, ("tax",), "place").groups is None


def test_targets_with_a_sign_are_read_as_in_a_table():
    frame = pd.DataFrame({"price": ["€ 1,251,883.60", "€ 300.00", None]})
    truth = Truth.find(frame, ["price"], None)
    assert truth.y[:2, 0].tolist() == [1251883.6, 300.0]
    assert truth.is_known.tolist() == [True, True, False]


def test_the_known_rows_are_scored_by_group():
    truth = Truth.find(FRAME, ("price", "tax"), "city")
    mean = torch.tensor([[1.0, 1.0], [3.0, 1.0], [torch.nan, 0.0], [0.0, 0.0]]).double()
    groups = np.array(["Oslo", NO_GROUP])
    assert truth.score(mean) == evaluate(mean[:2], truth.y[:2], groups)
    low, high = mean - 0.5, mean + 0.75
    assert truth.coverage(low, high) == (1.0, 0.5)


def test_no_known_row_has_no_scores():
    truth = Truth.find(FRAME.tail(2), ("price",), None)
    assert truth.score(torch.zeros(2, 1)) is None
    assert truth.coverage(torch.zeros(2, 1), torch.ones(2, 1)) is None
    empty = Truth.find(FRAME.head(0), ("price",), "city")
    assert empty.score(torch.zeros(0, 1)) is None


def test_a_prediction_of_a_table_with_the_targets_has_scores(model, houses, new_houses):
    found = model.predict(houses, interval=0.8)
    y = torch.tensor(houses[["price", "tax"]].to_numpy())
    assert found.scores == evaluate(found.mean, y)
    inside = ((found.low <= y) & (y <= found.high)).double().mean(dim=0)
    assert found.coverage == pytest.approx(inside.tolist())
    assert model.predict(houses).coverage is None
    assert model.predict(new_houses).scores is None


def test_data_of_arrays_has_its_targets():
    data = load("synthetic-plane", n=40)
    found = fit(data, method="ridge").predict(data)
    assert found.scores == evaluate(found.mean, torch.from_numpy(data.y))
    assert fit(data, method="ridge").predict(data.x).scores is None


def test_a_model_of_few_rows_has_a_usual_interval_that_it_can_have():
    few, many = (fit(load("synthetic-plane", n=n), method="ridge") for n in (20, 60))
    assert few.usual_interval == few.calibration.highest == pytest.approx(6 / 7)
    assert many.usual_interval == 0.9
    assert few.predict(load("synthetic-plane", n=20), interval=few.usual_interval).coverage
