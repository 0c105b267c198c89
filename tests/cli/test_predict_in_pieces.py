"""A table file that is predicted piece by piece comes out as one that is read all at once."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regaug.data.tabular import pieces
from regaug.data.tabular.textfile import UnsettledError
from regaug.ensemble import Ensemble, table_file

ROWS, SOME = 140, 12
NEW = ["price_predicted", "price_spread", "price_low", "price_high"]


@pytest.fixture
def sizes(monkeypatch):
    """Read a few rows at a time, and note how many were predicted at a time."""
    for name, value in {"_CELLS": 1, "_ROWS": SOME, "_BYTES": 500, "_COLUMN": 1}.items():
        monkeypatch.setattr(pieces, name, value)
    noted, real = [], Ensemble.predict_inputs

    def predict(self, x, **options):
        noted.append(len(x))
        return real(self, x, **options)

    monkeypatch.setattr(Ensemble, "predict_inputs", predict)
    return noted


@pytest.fixture
def both(run, model, tmp_path, monkeypatch, sizes):
    """Predict a file twice, in pieces and read at once; what is written and said must be the same.

    Returns whether the file was read in pieces, the path of what was written, and what was said.
    """

    def refuse(path):
        raise UnsettledError

    def predict(source, ending=".csv", *words):
        def once(name):
            out = tmp_path / f"{name}{ending}"
            result = run("predict", model, source, "-o", out, "--json", "--force", *words)
            assert result.exit_code == 0, result.output
            (found,) = [json.loads(result.stdout)]
            return out, {key: value for key, value in found.items() if key != "written"}

        sizes.clear()
        seen, real = [], table_file.read_pieces

        def read(path):
            for piece in real(path):
                seen.append(len(piece.cells.frame))
                yield piece

        with monkeypatch.context() as patch:
            patch.setattr(table_file, "read_pieces", read)
            out, said = once("pieces")
        is_in_pieces = sum(seen) == said["rows"] and sizes == seen
        assert max(seen, default=0) <= 60
        with monkeypatch.context() as patch:
            patch.setattr(table_file, "read_pieces", refuse)
            whole, told = once("whole")
        check_equal(out, whole)
        assert said.keys() == told.keys()
        for key in said.keys() - {"scores", "coverage"}:
            assert said[key] == told[key]
        if said["scores"] is not None:
            assert said["scores"]["rmse"] == pytest.approx(told["scores"]["rmse"], rel=1e-12)
            assert said["scores"]["groups"].keys() == told["scores"]["groups"].keys()
            assert said["coverage"] == told["coverage"]
        return is_in_pieces, out, said

    return predict


def check_equal(one, other):
    """Check that two files are equal, but for the last digits of what is predicted."""
    if one.suffix == ".parquet":
        ours, theirs = pd.read_parquet(one), pd.read_parquet(other)
    else:
        ours, theirs = (pd.read_csv(own, dtype=str, keep_default_na=False) for own in (one, other))
    pd.testing.assert_frame_equal(ours.drop(columns=NEW), theirs.drop(columns=NEW))
    for name in NEW:
        np.testing.assert_allclose(
            ours[name].astype(float), theirs[name].astype(float), rtol=1e-12, atol=1e-12
        )


def cells(houses):
    return pd.read_csv(houses, dtype=str, keep_default_na=False)


def test_a_text_file_is_predicted_in_pieces(both, houses):
    is_in_pieces, out, said = both(houses)
    assert is_in_pieces
    assert said["scores"]["n"] == said["rows"] == ROWS
    written = cells(out)
    pd.testing.assert_frame_equal(written.drop(columns=NEW), cells(houses))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_parquet_file_is_predicted_in_pieces(both, houses, tmp_path, ending):
    frame = pd.read_csv(houses)
    frame["rooms"] = frame["rooms"].astype("int8")
    frame["city"] = frame["city"].astype("category")
    frame.set_index(pd.Index(range(7, 7 + ROWS), name="key")).to_parquet(tmp_path / "a.parquet")
    is_in_pieces, out, _ = both(tmp_path / "a.parquet", ending)
    assert is_in_pieces
    if ending == ".parquet":
        schema = pq.read_schema(out)
        assert schema.field("rooms").type == pa.int8()
        assert pa.types.is_dictionary(schema.field("city").type)
        assert "key" not in schema.names


def change(name, cells):
    def do(frame):
        for row, text in cells.items():
            frame.loc[row, name] = text
        return frame

    return do


@pytest.mark.parametrize(
    ("do", "is_in_pieces"),
    [
        (change("size", {130: "NA", 131: ""}), True),
        (change("size", dict.fromkeys(range(24, 60), "")), True),
        (change("city", {130: "abc", 131: 'a "b"\nc,'}), True),
        (change("sold", {130: "2020-01-31 12:30"}), True),
        (change("sold", {130: "Jan 13 2020"}), True),
        (change("sold", {130: "13/01/2020"}), False),  # the day first, in others too?
        (change("sold", {130: "03/04/2020"}), False),
        (change("size", {130: "abc"}), False),
        (change("size", {130: "1,5"}), False),
        (change("size", {130: "$50"}), False),
        (change("garden", {130: "1.5"}), False),
        (change("garden", dict.fromkeys(range(24, 60), "yes")), False),
        (change("rooms", {130: "003"}), False),  # a number or a code?
        (change("rooms", {130: "3.0"}), True),
        (change("price", {130: "abc"}), True),
        (lambda frame: frame.assign(price="$" + frame["price"]), True),
        (lambda frame: frame.assign(rooms=frame["rooms"].replace("3", "003")), False),
        (lambda frame: frame.assign(size=frame["size"].str.replace(".", ",")), False),
        (lambda frame: frame.drop(columns=["price", "number"]), True),
        (lambda frame: pd.concat([frame, frame.columns.to_frame().T]), False),
    ],
)
def test_what_the_rows_before_do_not_decide_is_read_at_once(
    both, houses, tmp_path, do, is_in_pieces
):
    do(cells(houses)).to_csv(tmp_path / "own.csv", index=False)
    assert both(tmp_path / "own.csv")[0] == is_in_pieces


@pytest.mark.parametrize("end", [b"1,2\n", b"999,50,3,Z\xfcrich,2020-05-05,True,3,EU,90\n"])
def test_odd_rows_at_the_end_and_other_charsets_are_read_at_once(both, houses, tmp_path, end):
    (tmp_path / "own.csv").write_bytes(houses.read_bytes() + end)
    is_in_pieces, _, said = both(tmp_path / "own.csv")
    assert not is_in_pieces
    assert said["rows"] == ROWS + 1


def test_marks_comments_and_titles_above_the_header_are_no_rows(both, houses, tmp_path):
    head = b"\xef\xbb\xbf# made in Oslo\n"
    (tmp_path / "own.csv").write_bytes(head + houses.read_bytes())
    is_in_pieces, _, said = both(tmp_path / "own.csv")
    assert (is_in_pieces, said["rows"]) == (True, ROWS)


def test_times_and_gaps_in_whole_numbers_look_the_same_in_all_rows(both, houses, tmp_path):
    frame = pd.read_csv(houses, parse_dates=["sold"])
    frame.loc[139, "sold"] = pd.Timestamp("2020-01-01 12:30")
    frame.to_parquet(tmp_path / "times.parquet")
    assert not both(tmp_path / "times.parquet", ".csv")[0]
    assert both(tmp_path / "times.parquet", ".parquet")[0]
    rooms = pa.array([*range(ROWS - 1), None], pa.int64())
    table = pa.Table.from_pandas(pd.read_csv(houses).drop(columns="number"))
    pq.write_table(table.append_column("number", rooms), tmp_path / "gaps.parquet")
    assert not both(tmp_path / "gaps.parquet", ".csv")[0]


def test_a_bad_cell_is_named_by_its_row_in_the_whole_table(both, run, model, houses, tmp_path):
    frame = pd.read_csv(houses)
    frame.loc[[20, 135], "size"] = [np.inf, -np.inf]
    frame.to_parquet(tmp_path / "bad.parquet")
    is_in_pieces, _, said = both(tmp_path / "bad.parquet")
    assert is_in_pieces
    assert [(own["row"], own["text"]) for own in said["unusable"]] == [(21, "inf"), (136, "-inf")]
    out = tmp_path / "none.csv"
    result = run("predict", model, tmp_path / "bad.parquet", "-o", out, "--strict")
    assert result.exit_code == 1
    assert not out.exists()


def test_safe_cells_are_safe_in_every_piece(both, houses, tmp_path):
    frame = cells(houses).assign(note="=1+1")
    frame.to_csv(tmp_path / "own.csv", index=False)
    is_in_pieces, out, _ = both(tmp_path / "own.csv", ".csv", "--safe-csv")
    assert is_in_pieces
    assert set(cells(out)["note"]) == {"'=1+1"}


def test_it_says_how_much_is_left(model, houses, tmp_path, sizes):
    told = []
    out = table_file.Output(tmp_path / "out.csv")
    table_file.predict_table(Ensemble.load(model), str(houses), out, observer=told.append)
    assert [own.rows for own in told] == np.cumsum(sizes).tolist()
    shares = [own.share for own in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0, abs=0.02)
    assert told[0].words.endswith(" left")
    assert told[0].seconds_left > 0.0


PEAK = """
import resource, sys
from regaug.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.serial
def test_memory_does_not_grow_with_the_table(model, houses, tmp_path):
    frame, peaks = pd.read_csv(houses), []
    for times in (1_000, 4_000):  # 140,000 and 560,000 rows: 100 MB of text more
        source = tmp_path / "large.parquet"
        pd.concat([frame] * times, ignore_index=True).to_parquet(source)
        words = ["predict", str(model), str(source), "-o", str(tmp_path / f"{times}.parquet")]
        command = [sys.executable, "-c", PEAK, *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        peaks.append(int(done.stdout.split()[-1]) * 2**10)
    assert peaks[1] - peaks[0] < 420_000 * 150  # bytes of a row: its scores need it to the end
