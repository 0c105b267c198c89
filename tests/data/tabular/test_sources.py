"""Files of every kind as frames, each cell as it is written."""

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.tabular.sources import read_cells, read_frame, read_gaps, typed
from regaug.data.tabular.table import read_table
from regaug.data.tabular.textfile import read_text
from regaug.exceptions import DataError, MissingExtraError


def houses(n=40, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(80, 20, n).round(2),
            "rooms": rng.integers(1, 6, n),
            "garden": rng.random(n) < 0.5,
            "city": rng.choice(["Oslo", "Tromsø", "Bern"], n),
            "sold": pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame["price"] = (3 * frame["size"] + rng.normal(0, 20, n)).round(2)
    return frame


def write(frame, path):
    """Write a frame as what the ending of the path says."""
    kind = path.suffixes[0]
    lines = "".join(json.dumps(row, default=str) + "\n" for row in frame.to_dict("records"))
    if kind == ".xlsx":
        frame.to_excel(path, index=False)
    elif kind in (".feather", ".arrow"):
        frame.to_feather(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif kind in (".jsonl", ".ndjson"):
        path.write_text(lines)
    else:
        frame.to_csv(path, index=False)


@pytest.mark.parametrize(
    "name", ["h.xlsx", "h.feather", "h.arrow", "h.jsonl", "h.ndjson", "h.jsonl.gz", "h.txt"]
)
def test_every_kind_of_file_gives_the_same_split(tmp_path, name):
    frame, path = houses(), tmp_path / name
    write(frame, path)
    one = read_table(path, target="price").split(seed=1)
    other = read_table(frame, target="price").split(seed=1)
    assert one.encoder.columns == other.encoder.columns
    assert one.train.x.equal(other.train.x)
    assert one.test.y.equal(other.test.y)


def test_the_standard_input_is_a_table(monkeypatch):
    data = houses().to_csv(index=False).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    table = read_table("-", target="price")
    assert table.summary.startswith("standard input: 40 rows")
    assert table.given == {"target": ["price"], "source": "-"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_every_encoding_gives_the_same_levels(tmp_path, encoding):
    path = tmp_path / "h.csv"
    houses().to_csv(path, index=False, encoding=encoding)
    levels = read_table(path, target="price").split().encoder.feature_names
    assert "city=Tromsø" in levels


def test_the_encoding_can_be_named(tmp_path):
    path, frame = tmp_path / "h.csv", houses().assign(city="Łódź")
    frame.loc[::2, "city"] = "Kraków"
    frame.to_csv(path, index=False, encoding="cp1250")
    table = read_table(path, target="price", encoding="cp1250")
    assert table.given["encoding"] == "cp1250"
    assert "city=Łódź" in table.split().encoder.feature_names


def test_excel_files_need_an_extra(tmp_path, monkeypatch):
    houses().to_excel(tmp_path / "h.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r'need an extra: pip install "regaug\[excel\]"'):
        read_table(tmp_path / "h.xlsx", target="price")


def test_an_empty_workbook_is_an_error(tmp_path):
    pd.DataFrame().to_excel(tmp_path / "h.xlsx", index=False)
    with pytest.raises(DataError, match="is empty. It must have a row of names"):
        read_table(tmp_path / "h.xlsx", target="price")


def test_cells_are_as_they_are_written_and_frames_have_types(tmp_path):
    (tmp_path / "t.csv").write_text("code,n,x,y\n007,NA,1.50,7\n010,3,,8\n")
    cells = read_cells(tmp_path / "t.csv")
    assert cells.frame.to_numpy().tolist() == [["007", "NA", "1.50", "7"], ["010", "3", "", "8"]]
    assert read_gaps(cells)["n"].isna().tolist() == [True, False]
    frame = read_frame(tmp_path / "t.csv")
    assert frame["code"].tolist() == ["007", "010"]
    assert frame["x"].tolist()[0] == 1.5
    assert frame["y"].tolist() == [7, 8]
    pd.testing.assert_frame_equal(typed(cells), frame)


def test_a_group_that_is_written_as_nothing_is_none(tmp_path):
    frame = houses().assign(group=lambda f: f["city"])
    frame.loc[:3, "group"] = "NA"
    frame.to_csv(tmp_path / "h.csv", index=False)
    table = read_table(tmp_path / "h.csv", target="price", group="group")
    assert "4 rows without a group left out." in table.summary


def test_short_rows_end_with_gaps_and_longer_ones_may_only_add_nothing():
    frame, _, _ = read_text(b"a,b,c\n1,2\n3,4,5\n6,7,8,,\n", "t.csv")
    assert frame.to_numpy().tolist() == [["1", "2", ""], ["3", "4", "5"], ["6", "7", "8"]]
    with pytest.raises(DataError, match="3 names, but line 3 has 4 values"):
        read_text(b"a,b,c\n1,2,3\n3,4,5,6\n", "t.csv")


def test_headers_among_the_rows_are_left_out():
    frame, notes, _ = read_text(b"a,b\n1,2\na,b\n3,4\n", "t.csv")
    assert frame.to_numpy().tolist() == [["1", "2"], ["3", "4"]]
    assert notes == ["1 row that repeats the header left out."]


def test_a_long_line_is_read_whole():
    text = "x" * 2_000_000
    frame, _, _ = read_text(f"a,b\n1,{text}\n2,y\n".encode(), "t.csv")
    assert frame["b"].tolist() == [text, "y"]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=8)


@given(st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=8))
def test_what_pandas_writes_is_read_back(rows):
    frame = pd.DataFrame(rows, columns=["one", "two", "three"])
    text = frame.to_csv(index=False, quoting=1)
    found, _, _ = read_text(text.encode(), "t.csv")
    expected = [row for row in rows if row != ["one", "two", "three"]]
    assert found.to_numpy().tolist() == expected


@pytest.mark.parametrize("name", ["h.feather", "h.parquet"])
def test_texts_that_lie_where_there_is_nothing_are_refused(tmp_path, name):
    """Arrow reads them from wherever that is, which ends the process at times."""
    texts = [b"Oslo", b"Rome", b"Bern" if name == "h.feather" else b"\xff\xfe\xfd\xfc"] * 10
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(texts))]
    column = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    table = pa.table({"city": column, "y": np.arange(30.0)})
    if name == "h.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        with pa.ipc.new_file(tmp_path / name, table.schema) as file:
            file.write_table(table)
        before, after = ends.tobytes(), ends.copy()
        after[-1] = 2**30
        content = (tmp_path / name).read_bytes()
        assert before in content
        (tmp_path / name).write_bytes(content.replace(before, after.tobytes()))
    with pytest.raises(DataError, match=rf"{name} cannot be read as .*Invalid"):
        read_table(tmp_path / name, target="y")
