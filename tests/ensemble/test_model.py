"""Predicting: from files, frames and arrays, with the user's columns kept."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from regaug.data import load, read_table
from regaug.ensemble import Prediction, fit_ensemble
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError, NonFiniteError
from regaug.formatting import number


@pytest.fixture(scope="module")
def array_model(quick):
    return fit_ensemble(load("synthetic-paraboloid", n=60), settings=quick, members=2, hidden=(8,))


def test_a_file_gives_the_predictions_of_the_frame(model, new_houses, tmp_path):
    new_houses.to_csv(tmp_path / "new.csv", index=False)
    from_file = model.predict(tmp_path / "new.csv", interval=0.9)
    from_frame = model.predict(new_houses, interval=0.9)
    for part in ("mean", "spread", "low", "high"):
        torch.testing.assert_close(getattr(from_file, part), getattr(from_frame, part))


def test_order_of_columns_and_further_columns_do_not_matter(model, new_houses):
    other = new_houses[new_houses.columns[::-1]].assign(color="red")
    assert torch.equal(model.predict(other).mean, model.predict(new_houses).mean)


def test_a_table_can_be_predicted(model, houses):
    table = read_table(houses, target=["price", "tax"])
    assert torch.equal(model.predict(table).mean, model.predict(houses).mean)


def test_a_column_that_is_not_there_is_named(model, new_houses):
    with pytest.raises(DataError, match="'city'"):
        model.predict(new_houses.drop(columns="city"))


def test_a_table_without_rows_gives_none(model, new_houses):
    prediction = model.predict(new_houses.iloc[:0], interval=0.9)
    assert prediction.mean.shape == prediction.low.shape == (0, 2)


def test_rows_in_many_blocks_are_predicted_as_in_one(model, houses):
    (own,) = model.components
    small = replace(own, models=replace(own.models, block=300))
    in_blocks = replace(model, components=(small,))
    torch.testing.assert_close(in_blocks.predict(houses).mean, model.predict(houses).mean)


def test_no_interval_unless_asked_for(model, new_houses):
    prediction = model.predict(new_houses)
    assert prediction.low is None
    assert prediction.high is None


def test_higher_levels_give_wider_intervals_around_the_same_mean(model, new_houses):
    narrow, wide = (model.predict(new_houses, interval=level) for level in (0.5, 0.9))
    assert torch.equal(narrow.mean, wide.mean)
    assert (wide.low < narrow.low).all()
    assert (wide.high > narrow.high).all()


def test_a_model_of_arrays_takes_tensors_arrays_lists_and_data(array_model):
    data = load("synthetic-paraboloid", n=60)
    expected = array_model.predict(data).mean
    for source in (data.x, torch.from_numpy(data.x), data.x.tolist()):
        assert torch.equal(array_model.predict(source).mean, expected)


def test_a_missing_number_counts_as_the_mean(array_model):
    mean = array_model.preparation.scaler.mean
    filled = array_model.predict(np.array([[mean[0], 0.5]])).mean
    torch.testing.assert_close(array_model.predict([[np.nan, 0.5]]).mean, filled)


def test_arrays_that_do_not_fit_are_refused(array_model):
    with pytest.raises(ArgumentError, match=r"must be \(n, 2\), got \(4, 3\)"):
        array_model.predict(np.zeros((4, 3)))
    with pytest.raises(ArgumentError, match=r"must be \(n, 2\), got \(2,\)"):
        array_model.predict(np.zeros(2))
    with pytest.raises(NonFiniteError, match="infinite"):
        array_model.predict([[np.inf, 0.0]])
    with pytest.raises(ArgumentTypeError, match="array of numbers"):
        array_model.predict([["a", "b"]])
    for source in (pd.DataFrame({"a": [1.0], "b": [2.0]}), "new.csv"):
        with pytest.raises(ArgumentTypeError, match="no column names"):
            array_model.predict(source)


def test_an_array_is_no_table(model):
    with pytest.raises(ArgumentTypeError, match="must be a path, a pandas or polars frame"):
        model.predict(np.zeros((2, 5)))


def test_the_frame_keeps_the_users_columns_and_index(model, new_houses):
    new = new_houses.set_index(np.arange(len(new_houses)) * 3 + 7)
    frame = model.predict(new, interval=0.9).to_frame(new)
    pd.testing.assert_frame_equal(frame[new.columns], new)
    kinds = ["predicted", "spread", "low", "high"]
    expected = [f"{target}_{kind}" for target in ("price", "tax") for kind in kinds]
    assert list(frame.columns[len(new.columns) :]) == expected
    assert (frame["price_low"] < frame["price_predicted"]).all()
    np.testing.assert_array_equal(frame["tax_predicted"], model.predict(new).mean[:, 1])


def test_columns_of_a_file_are_kept(model, new_houses, tmp_path):
    path = tmp_path / "new.csv"
    new_houses.assign(note="x").to_csv(path, index=False)
    frame = model.predict(path).to_frame(path)
    assert list(frame.columns[:6]) == [*new_houses.columns, "note"]
    assert frame["note"].eq("x").all()


def test_a_column_of_the_user_is_never_replaced(model, new_houses):
    once = model.predict(new_houses).to_frame(new_houses)
    twice = model.predict(once).to_frame(once)
    thrice = model.predict(twice).to_frame(twice)
    pd.testing.assert_frame_equal(thrice[twice.columns], twice)
    assert {"price_predicted", "price_predicted_2", "tax_spread_3"} <= set(thrice.columns)


def test_another_number_of_rows_is_refused(model, new_houses):
    with pytest.raises(ArgumentError, match="40 rows that were predicted, got 39"):
        model.predict(new_houses).to_frame(new_houses.iloc[1:])


def test_predictions_alone_are_a_frame_too():
    values = torch.tensor([[1.0], [2.0]])
    frame = Prediction(("y",), values, values, values - 1, values + 1).to_frame()
    assert frame.to_dict("list") == {
        "y_predicted": [1.0, 2.0],
        "y_spread": [1.0, 2.0],
        "y_low": [0.0, 1.0],
        "y_high": [2.0, 3.0],
    }


def test_a_notebook_shows_what_a_model_is_made_of_and_how_good_it_is(model):
    page = model._repr_html_()
    assert "erm: 3 nets; predicts price, tax." in page
    assert "erm</td>" in page
    assert "100 %</td>" in page
    assert f"On {model.held_out.n} rows put aside: RMSE {number(model.held_out.rmse)}, R2 " in page
    assert "<script" not in page
    assert "put aside" not in replace(model, held_out=None, calibration=None)._repr_html_()
