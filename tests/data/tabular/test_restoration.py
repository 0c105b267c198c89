"""Decoded values in the manner of a column."""

import numpy as np
import pandas as pd
import pytest

from regaug.data.tabular.columns import Boolean, Category
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.restoration import restore


def restored(series, change=lambda values: values):
    """Encode a column, change the decoded values, and restore them."""
    series = pd.Series(series, name="a")
    n = len(series)
    frame = pd.DataFrame({"a": series, "more": np.random.default_rng(0).normal(size=n)})
    encoder = Encoder.fit(frame)
    column = next(known for known in encoder.columns if known.name == "a")
    values = encoder.decode(encoder.transform(frame))["a"]
    return restore(column, change(values), series, np.random.default_rng(0))


SQUARES = np.arange(30) ** 2
DAYS = pd.Timestamp("2020-03-01") + pd.to_timedelta(SQUARES, "D")
HOURS = pd.Timestamp("2020-03-01 00:20") + pd.to_timedelta(SQUARES, "h")
COLUMNS = {
    "int": pd.Series(SQUARES),
    "uint8": pd.Series(SQUARES % 250, dtype="uint8"),
    "nullable": pd.Series([None, *SQUARES[1:]], dtype="Int64"),
    "arrow": pd.Series([None, *SQUARES[1:]], dtype="int64[pyarrow]"),
    "float": pd.Series([np.nan, *(SQUARES[1:] / 8)]),
    "float32": pd.Series(SQUARES / 10, dtype="float32"),
    "decimals": pd.Series(SQUARES / 100),
    "span": pd.Series(pd.to_timedelta(SQUARES, "h")),
    "text numbers": pd.Series([str(number) for number in SQUARES]),
    "text decimals": pd.Series(
        [None, *(str(round(number / 10 + 0.05, 2)) for number in SQUARES[1:])]
    ),
    "objects": pd.Series([None, *(str(number) for number in SQUARES[1:])], dtype=object),
    "days": pd.Series(DAYS),
    "noons": pd.Series(DAYS + pd.Timedelta(12, "h")),
    "hours": pd.Series(HOURS),
    "zone": pd.Series(HOURS.tz_localize("UTC").tz_convert("Europe/Oslo")),
    "gaps": pd.Series([pd.NaT, *DAYS[1:]]),
    "text days": pd.Series([None, *DAYS.strftime("%Y-%m-%d")[1:]]),
    "text hours": pd.Series(HOURS.strftime("%Y-%m-%d %H:%M:%S")),
    "bool": pd.Series([True, False, True] * 10),
    "nullable bool": pd.Series([True, None, False] * 10, dtype="boolean"),
    "words": pd.Series(["TRUE", "false", "TRUE"] * 10),
    "texts": pd.Series(["Oslo", "Rome", None] * 10),
    "categories": pd.Series(pd.Categorical(["Oslo", None, "Rome"] * 10)),
    "numbered": pd.Series(pd.Categorical([1, 2, 3] * 10)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back_as_it_was(name):
    series = COLUMNS[name]
    pd.testing.assert_series_equal(
        restored(series).reset_index(drop=True), series, check_names=False, rtol=1e-6
    )


@pytest.mark.parametrize("name", ["int", "uint8", "nullable", "text numbers"])
def test_whole_numbers_are_rounded_to_even_and_stay_in_range(name):
    new = restored(COLUMNS[name], lambda values: pd.Series([-9.0, 0.5, 1.5, 2.4, 1e9]))
    low, high = 1 if name == "nullable" else 0, int(pd.to_numeric(COLUMNS[name]).max())
    assert [int(value) for value in new] == [low, max(low, 0), 2, 2, high]


def test_numbers_that_are_not_whole_are_not_rounded():
    assert restored(COLUMNS["decimals"], lambda values: values + 0.001)[1] == pytest.approx(0.011)


def test_whole_numbers_beyond_what_a_float_can_tell_become_floats():
    assert restored(pd.Series(2**60 + SQUARES * 2**40)).dtype == np.float64


@pytest.mark.parametrize(
    ("name", "step"), [("days", "D"), ("noons", "D"), ("hours", "h"), ("zone", "h")]
)
def test_dates_keep_to_the_steps_and_the_range_of_the_column(name, step):
    series = COLUMNS[name]
    shift = pd.Timedelta(0.4, "D")
    new = restored(series, lambda values: values + np.linspace(-9, 9, 30) * shift)
    assert new.dtype == series.dtype
    assert ((new - series[0]) % pd.Timedelta(1, step) == pd.Timedelta(0)).all()
    assert new.between(series.min(), series.max()).all()
    assert not new.equals(series)


def test_dates_without_a_step_keep_their_fractions():
    moments = pd.Timestamp("2020-03-01") + pd.to_timedelta(SQUARES * 10**6 + SQUARES % 7, "us")
    new = restored(pd.Series(moments.strftime("%Y-%m-%d %H:%M:%S.%f")))
    apart = (pd.to_datetime(new) - moments).abs().max()
    assert apart < pd.Timedelta(1, "ms")  # float32
    assert new.str.fullmatch(r"2020-03-01 \d\d:\d\d:\d\d\.\d{6}").all()


def test_a_rare_level_is_one_of_the_rare_ones():
    series = pd.Series(["bank"] * 20 + [f"owner {i}" for i in range(10)])
    new = restored(series)
    assert (new[series != "bank"].isin(series[series != "bank"])).all()
    assert (new == "bank").sum() == 20


def test_a_level_called_none_is_no_gap():
    series = pd.Series(["None", None, "nan"] * 10, dtype=object)
    new = restored(series)
    assert (new.isna().to_numpy() == series.isna()).all()
    assert (new.dropna().to_numpy() == series.dropna()).all()


def test_a_level_is_written_as_in_the_table():
    series = pd.Series([" Oslo", "Oslo", "Rome"] * 10)
    new = restored(series)
    assert set(new) == set(series)
    assert (new.str.strip().to_numpy() == series.str.strip()).all()


@pytest.mark.parametrize(
    ("column", "series"),
    [
        (Category("a", ("Oslo", "Rome"), other=False, missing=False), ["Oslo", "Rome"] * 3),
        (Boolean("a", fill=0.0, indicator=True), [True, False] * 3),
    ],
)
def test_a_column_without_gaps_gets_none(column, series):
    gaps = pd.Series([None] * 50, dtype=object)
    new = restore(column, gaps, pd.Series(series), np.random.default_rng(0))
    assert set(new) == set(series)
