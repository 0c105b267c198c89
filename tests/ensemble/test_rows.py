"""Which rows are put aside, and which each member stops on."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data import load, read_table
from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.splits import random_split
from regaug.ensemble import calibration_rows, leave_out
from regaug.ensemble.rows import FOLDS, validation_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError

INFO = Info(name="made", task="table", metric="rmse", split="At random.")


def make_data(n, groups=None):
    x = np.arange(float(n))
    rule = lambda seed: random_split(n, seed=seed)  # noqa: E731
    return ArrayData(x[:, None], x, info=INFO, rule=rule, groups=groups)


def make_timed(n, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(n) // 3, "D")
    return read_table(
        pd.DataFrame({"a": rng.normal(size=n), "when": days, "y": rng.normal(size=n)}),
        target="y",
        time="when",
    )


@pytest.mark.parametrize(
    ("n", "expected"),
    [(20, 6), (30, 9), (100, 20), (150, 20), (300, 30), (10_000, 1_000), (50_000, 2_000)],
)
def test_small_tables_give_enough_for_an_interval_and_large_ones_not_more_than_needed(n, expected):
    assert len(calibration_rows(make_data(n))) == expected


def test_the_seed_decides_which_rows_are_put_aside():
    data = make_data(100)
    rows = [calibration_rows(data, seed=seed).tolist() for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_rows_put_aside_are_not_the_test_rows_of_a_split_with_the_same_seed():
    data = make_data(100)
    assert set(calibration_rows(data, seed=0)) != set(data.split(seed=0).test.rows)


@pytest.mark.parametrize("share", [0.0, 0.6, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ArgumentError, match="`share` must be in"):
        calibration_rows(make_data(100), share=share)


@given(sizes=st.lists(st.integers(1, 30), min_size=3, max_size=15), seed=st.integers(0, 99))
def test_groups_are_never_parted(sizes, seed):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    data = make_data(len(groups), groups)
    held_out = calibration_rows(data, seed=seed)
    rest = np.setdiff1d(np.arange(len(data)), held_out)
    assert not set(groups[held_out]) & set(groups[rest])
    for rows in validation_rows(data, rest, 11, seed):
        others = np.setdiff1d(rest, rows)
        assert 0 < len(rows) <= len(others)
        assert set(rows) <= set(rest)
        assert not set(groups[rows]) & set(groups[others])


def test_groups_of_a_table_are_never_parted(houses):
    table = read_table(houses, target="price", group="street", drop="tax")
    street = table.frame["street"].to_numpy()
    held_out = calibration_rows(table)
    rest = np.setdiff1d(np.arange(len(table)), held_out)
    assert not set(street[held_out]) & set(street[rest])
    rows = validation_rows(table, rest, 1, 0)[0]
    assert not set(street[rows]) & set(street[np.setdiff1d(rest, rows)])


def test_the_last_rows_are_put_aside_where_there_are_times():
    table = make_timed(90)
    when = table.frame["when"].to_numpy()
    held_out = calibration_rows(table)
    assert len(held_out) == 18
    assert when[held_out].min() > np.delete(when, held_out).max()


def test_a_member_stops_on_a_stretch_of_time():
    table = make_timed(90)
    when = table.frame["when"].to_numpy()
    rest = np.setdiff1d(np.arange(90), calibration_rows(table))
    for rows in validation_rows(table, rest, FOLDS, 0):
        others = when[np.setdiff1d(rest, rows)]
        assert not ((others >= when[rows].min()) & (others <= when[rows].max())).any()


def test_times_written_as_text_are_in_order():
    frame = pd.DataFrame({"a": np.arange(60.0) % 7, "y": np.arange(60.0) ** 2 % 11})
    frame["when"] = [f"2020-01-{day}" for day in np.arange(60) % 30 + 1]  # "10" sorts before "2"
    table = read_table(frame, target="y", time="when")
    assert set(np.arange(60)[calibration_rows(table)] % 30 + 1) == set(range(25, 31))


def test_every_row_is_stopped_on_once_in_each_round_of_members():
    data = make_data(100)
    rest = np.arange(5, 100)
    found = validation_rows(data, rest, 2 * FOLDS, 0)
    for members in (found[:FOLDS], found[FOLDS:]):
        assert sorted(np.concatenate(members)) == rest.tolist()
    assert sorted(map(tuple, found[:FOLDS])) != sorted(map(tuple, found[FOLDS:]))


def test_data_without_the_rows_put_aside_is_otherwise_the_same(houses):
    table = read_table(houses, target="price", group="street", drop="tax")
    held_out = calibration_rows(table)
    rest = leave_out(table, held_out)
    assert rest.inputs == table.inputs
    assert (rest.targets, rest.group, rest.info) == (table.targets, table.group, table.info)
    expected = table.frame.drop(index=table.frame.index[held_out])
    pd.testing.assert_frame_equal(rest.frame, expected)


@pytest.mark.parametrize("groups", [None, np.arange(60) // 4])
def test_arrays_without_the_rows_put_aside_can_be_split(groups):
    data = make_data(60, groups)
    held_out = calibration_rows(data)
    rest = leave_out(data, held_out)
    np.testing.assert_array_equal(rest.y, np.delete(data.y, held_out, axis=0))
    split = rest.split(seed=0)
    assert len(split.train) + len(split.validation) + len(split.test) == len(rest)
    if groups is not None:
        assert not set(split.train.groups) & set(split.test.groups)


def test_data_that_is_no_table_is_refused():
    with pytest.raises(ArgumentTypeError, match="`data` must be a table"):
        calibration_rows([1, 2, 3])
    cube = ArrayData(np.zeros((9, 2, 2)), np.zeros(9), info=INFO, rule=lambda seed: None)
    with pytest.raises(ArgumentError, match=r"inputs of shape \(n, columns\)"):
        calibration_rows(cube)


def test_two_groups_are_too_few():
    with pytest.raises(ArgumentError, match="at least 3 different"):
        calibration_rows(make_data(30, np.arange(30) % 2))


def test_named_data_can_be_used():
    data = load("synthetic-plane", n=50)
    assert len(leave_out(data, calibration_rows(data))) == 40
