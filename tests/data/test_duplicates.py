"""Rows with equal inputs, found and kept together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.arrays import ArrayData
from regaug.data.base import Info
from regaug.data.duplicates import as_bits, find_equal


def find(x, y=None):
    x = np.asarray(x, dtype=float)
    y = np.arange(len(x)) if y is None else np.asarray(y, dtype=float)
    return find_equal(map(as_bits, x.T), [as_bits(y)], len(x))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60))
def test_units_are_those_of_a_slow_search(rows):
    x = np.array([*rows, *((10 + i, 0) for i in range(20))], dtype=float)  # many different ones
    found = find(x)
    different = np.unique(x, axis=0, return_inverse=True)[1]
    assert found.repeated == len(x) - len(np.unique(different))
    counts = np.bincount(different)[different]
    kept = counts <= 0.1 * len(x)
    same = found.units[:, None] == found.units[None]
    expected = (different[:, None] == different[None]) & kept[:, None]
    np.testing.assert_array_equal(same, expected | np.eye(len(x), dtype=bool))


def test_rows_without_duplicates_have_their_own_numbers():
    found = find(np.arange(50.0)[:, None])
    assert found.units.tolist() == list(range(50))
    assert (found.repeated, found.describe()) == (0, "")


def test_gaps_are_equal_and_so_are_both_zeros():
    x = np.arange(1.0, 41.0)[:, None]
    x[[3, 5]], x[7], x[9] = np.nan, 0.0, -0.0
    assert find(x).repeated == 2


def test_targets_tell_copies_from_other_measurements():
    x = np.array([*range(40), 3, 4, 5, 5.0])[:, None]
    y = np.array([*range(40), 3, 4, 9, 8.0])
    found = find(x, y)
    assert (found.repeated, found.exact, found.parted) == (4, 2, 0)
    assert found.describe() == (
        "4 rows repeat the inputs of another row, 2 of them with its target too. Rows with equal "
        "inputs stay on one side of a split."
    )


def test_inputs_with_few_values_are_no_duplicates():
    found = find(np.tile(np.arange(19.0), 5)[:, None])
    assert found.units.tolist() == list(range(95))
    assert "no duplicates: rows are split one by one" in found.describe()
    assert find(np.tile(np.arange(20.0), 5)[:, None]).parted == 0


def test_frequent_inputs_with_several_targets_are_no_duplicates_but_copies_are():
    x = np.array([*range(80), *[7.0] * 20])[:, None]
    assert find(x).parted == 20
    assert find(x, np.where(x[:, 0] == 7, 1.0, np.arange(100.0))).parted == 0


def test_groups_and_times_decide_where_they_are_given():
    x = np.array([*range(40), 3.0, 4.0])[:, None]
    groups = np.array([*np.arange(40) % 5, 3, 0])
    text = find(x).describe(groups=groups)
    assert text.endswith("The groups decide the splits; 2 rows have the like in another group.")
    assert find(x).describe(groups=np.zeros(42, int)).endswith("The groups decide the splits.")
    assert "equal rows may be on two sides" in find(x).describe(has_times=True)


def test_arrays_keep_equal_rows_together():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    x[40:] = x[:20]
    info = Info("a", "table", "rmse", "at random")
    data = ArrayData(x, rng.normal(size=60), info=info)
    for seed in range(5):
        for part in data.split(seed=seed).parts.values():
            small = set(part.rows[part.rows < 20])
            assert {row - 40 for row in part.rows if row >= 40} == small


@pytest.mark.parametrize("n", [20, 101])
def test_arrays_without_equal_rows_are_split_as_ever(n):
    from regaug.data.splits import random_split

    x = np.random.default_rng(0).normal(size=(n, 2))
    data = ArrayData(x, x[:, 0], info=Info("a", "table", "rmse", "at random"))
    split = data.split(seed=3)
    for part, rows in zip(split.parts.values(), random_split(n, seed=3), strict=True):
        np.testing.assert_array_equal(part.rows, rows)
