"""Rows that were made elsewhere: read as the table was, encoded by split, without test rows."""

import numpy as np
import pandas as pd
import pytest

from regaug.data import read_table
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.tabular.foreign import read_foreign
from regaug.exceptions import ArgumentError, DataError


def make_frame(n=90, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.uniform(30, 90, n), "city": rng.choice(["Oslo", "Rome"], n)})
    frame["price"] = 3 * frame["size"] + 20 * (frame["city"] == "Rome")
    return frame


def splits_of(data, n=2):
    return [data.split(seed) for seed in range(n)]


def test_rows_are_encoded_as_every_split_is():
    table, more = read_table(make_frame(), target="price"), make_frame(seed=1)
    splits = splits_of(table)
    parts, notes = read_foreign(more, table, splits)
    assert len(parts) == 2
    for part, split in zip(parts, splits, strict=True):
        assert (part.x.numpy() == split.encoder.transform(more)).all()
        np.testing.assert_allclose(part.y[:, 0], more["price"], rtol=1e-6)
    assert "90 of a frame" in notes[0]
    assert "has seen the test rows" in notes[0]


def test_a_row_that_is_held_out_is_not_learned_from():
    frame = make_frame()
    table = read_table(frame, target="price")
    (split,) = splits_of(table, 1)
    (part,), notes = read_foreign(frame, table, [split])
    assert len(part) == len(split.train)
    assert f"Up to {len(split.validation) + len(split.test)} of them" in notes[-1]
    held = {row.tobytes() for row in split.test.x.numpy()}
    assert not held & {row.tobytes() for row in part.x.numpy()}


def test_nothing_but_held_out_rows_is_an_error():
    frame = make_frame()
    table = read_table(frame, target="price")
    (split,) = splits_of(table, 1)
    with pytest.raises(DataError, match="validation and test rows alone"):
        read_foreign(frame.iloc[split.test.rows], table, [split])


def test_a_file_is_read_as_the_table_was(tmp_path):
    frame = make_frame().round(1)
    frame["price"] = [f"${value:,.2f}" for value in 100 * frame["price"]]
    table = read_table(frame, target="price")
    more = pd.DataFrame({"city": ["Rome"], "size": [50.5], "price": ["$12,500.00"], "other": [1]})
    more.to_csv(tmp_path / "more.csv", index=False)
    (part,), notes = read_foreign(tmp_path / "more.csv", table, splits_of(table, 1))
    assert part.y.tolist() == [[12500.0]]
    assert "more.csv" in notes[0]


def test_rows_without_a_target_are_left_out_and_counted():
    table, more = read_table(make_frame(), target="price"), make_frame(5, seed=1)
    more.loc[2, "price"] = None
    (part,), notes = read_foreign(more, table, splits_of(table, 1))
    assert len(part) == 4
    assert "1 row without a target" in notes[1]
    more["price"] = np.nan
    with pytest.raises(DataError, match="rows with a target, got none"):
        read_foreign(more, table, splits_of(table, 1))


def test_a_column_that_is_not_there_is_an_error():
    table, more = read_table(make_frame(), target="price"), make_frame(5, seed=1)
    with pytest.raises(DataError, match="Did you mean 'prices'"):
        read_foreign(more.rename(columns={"price": "prices"}), table, splits_of(table, 1))
    with pytest.raises(DataError, match="lacks 1 of the 2 input columns: 'size'"):
        read_foreign(more.drop(columns="size"), table, splits_of(table, 1))


def test_columns_without_names_have_numbers():
    data = make_manifold("paraboloid", n=60)
    columns = data.x.shape[1]
    names = [f"x{i}" for i in range(1, columns + 1)]
    more = pd.DataFrame(np.ones((4, columns + 1)), columns=[*names, "target"])
    (part,), _ = read_foreign(more, data, [data.split(0)])
    assert part.x.shape == (4, columns)
    with pytest.raises(DataError, match="inputs of the table"):
        read_foreign(more.drop(columns="x1"), data, [data.split(0)])
    with pytest.raises(DataError, match="finite inputs"):
        read_foreign(more.assign(x1=np.nan), data, [data.split(0)])


def test_what_is_no_table_has_no_rows():
    data = make_manifold("paraboloid", n=60)
    data.x = data.x[:, :, None]
    with pytest.raises(ArgumentError, match="no table"):
        read_foreign(pd.DataFrame({"x1": [1.0]}), data, [])
