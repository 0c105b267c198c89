"""Equal rows of a table stay on one side of every split."""

import numpy as np
import pandas as pd
import pytest

from regaug.data.splits import random_split
from regaug.data.tabular.table import read_table
from regaug.ensemble.rows import calibration_rows, fold_rows, leave_out, validation_rows


def make(n=100, repeated=40, seed=0):
    """A table in which some rows come again, with other targets and numbers of their own."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(80, 20, n).round(1),
            "city": rng.choice(["Oslo", "Rome", "Bern"], n),
            "sold": pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame.loc[::9, "city"] = None
    frame["price"] = 3 * frame["size"] + rng.normal(0, 9, n)
    frame["twin"] = range(n)  # what they are told apart by in the tests; no input
    again = frame.iloc[rng.permutation(n)[:repeated]].copy()
    again["price"] += rng.normal(0, 1, repeated)
    frame = pd.concat([frame, again]).sample(frac=1.0, random_state=seed)
    frame.insert(0, "id", range(1, len(frame) + 1))
    return frame.reset_index(drop=True)


def sides(frame, parts):
    return [set(frame["twin"].to_numpy()[rows]) for rows in parts]


def assert_apart(frame, parts):
    found = sides(frame, parts)
    assert sum(map(len, found)) == len(set.union(*found))


def test_no_split_parts_rows_with_equal_inputs():
    frame = make()
    table = read_table(frame, target="price", drop="twin")
    for seed in range(10):
        parts = [part.rows for part in table.split(seed=seed).parts.values()]
        assert sum(map(len, parts)) == 140
        assert [len(rows) for rows in parts] == pytest.approx([84, 28, 28], abs=2)
        assert_apart(frame, parts)


def test_what_is_put_aside_and_the_folds_part_none_either():
    frame = make()
    table = read_table(frame, target="price", drop="twin")
    for seed in range(5):
        aside = calibration_rows(table, seed=seed)
        rest = np.setdiff1d(np.arange(140), aside)
        assert_apart(frame, [aside, rest])
        assert_apart(frame, fold_rows(table, rest, 5, seed))
        for rows in validation_rows(table, rest, 4, seed):
            assert_apart(frame, [rows, np.setdiff1d(rest, rows)])


def test_a_table_without_some_rows_still_knows_its_duplicates():
    frame = make()
    fewer = leave_out(read_table(frame, target="price", drop="twin"), np.arange(20))
    split = fewer.split(seed=0)
    assert_apart(frame.iloc[20:], [part.rows for part in split.parts.values()])


def test_a_table_without_duplicates_is_split_as_ever():
    frame = make(repeated=0)
    table = read_table(frame, target="price", drop="twin")
    for seed in range(5):
        split = table.split(seed=seed)
        for part, rows in zip(split.parts.values(), random_split(100, seed=seed), strict=True):
            np.testing.assert_array_equal(part.rows, rows)


def test_a_few_duplicates_leave_the_split_nearly_as_it_was():
    table = read_table(make(300, 3), target="price", drop="twin")
    before, after = random_split(303, seed=1), table.split(seed=1)
    assert len(np.setxor1d(before[0], after.train.rows)) <= 6


def test_numbers_of_rows_do_not_tell_duplicates_apart():
    table = read_table(make(), target="price", drop="twin")
    assert "'id' left out: row numbers" in table.summary
    assert "40 rows repeat the inputs of another row, with another target." in table.summary


def test_groups_stay_whole_and_are_not_merged():
    frame = make()
    frame["group"] = np.arange(140) % 14
    table = read_table(frame, target="price", drop="twin", group="group")
    split = table.split(seed=0)
    groups = [set(part.groups) for part in split.parts.values()]
    assert sum(map(len, groups)) == 14
    assert "The groups decide the splits; " in table.summary
    assert_apart(frame, [part.rows for part in table.split(split="random").parts.values()])


def test_times_keep_their_order():
    table = read_table(make(), target="price", drop="twin", time="sold")
    split = table.split()
    assert table.times[split.train.rows].max() < table.times[split.validation.rows].min()
    assert "The times decide the splits: equal rows may be on two sides." in table.summary


def test_duplicates_of_texts_and_numbers_are_found_however_they_are_written():
    frame = make(60, 0)[["size", "city", "sold", "price"]].astype({"size": str})
    again = frame.iloc[:5].assign(size=lambda f: f["size"] + "0")
    table = read_table(pd.concat([frame, again]), target="price")
    assert "5 rows repeat the inputs of another row, with its target too." in table.summary
