"""``regaug predict``."""

import gzip
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from regaug.cli.main import app
from regaug.cli.options import output, write_table
from regaug.ensemble import Ensemble

NEW = ["price_predicted", "price_spread", "price_low", "price_high"]


def column(path, name):
    """The numbers of a column, every digit of them."""
    return [float(text) for text in pd.read_csv(path, dtype=str)[name]]


@pytest.fixture
def copied(model, tmp_path):
    """A copy of the model, to be damaged."""
    return shutil.copytree(model, tmp_path / "copied")


def test_predictions_are_those_in_memory(run, files, model, tmp_path):
    out = tmp_path / "out.csv"
    assert run("predict", model, files / "new.csv", "-o", out).exit_code == 0
    frame = pd.read_csv(files / "new.csv")
    expected = Ensemble.load(model).predict(frame, interval=0.9)
    for name, values in zip(
        NEW, (expected.mean, expected.spread, expected.low, expected.high), strict=True
    ):
        np.testing.assert_array_equal(column(out, name), values[:, 0])


def test_the_users_columns_are_kept_as_they_are_written(run, files, model, tmp_path):
    out = tmp_path / "out.csv"
    result = run("predict", model, files / "new.csv", "-o", out)
    assert result.stdout == f"30 rows predicted; written to {out}.\n"
    before = (files / "new.csv").read_text(encoding="utf-8").splitlines()
    after = out.read_text(encoding="utf-8").splitlines()
    assert after[0] == ",".join([before[0], *NEW])
    assert after[1].startswith("000,")  # a number of three digits is not shortened
    assert [line.rsplit(",", 4)[0] for line in after] == before


def test_a_packed_file_is_kept_as_it_is_written_too(run, files, model, tmp_path):
    packed, out = tmp_path / "new.csv.gz", tmp_path / "out.csv"
    packed.write_bytes(gzip.compress((files / "new.csv").read_bytes()))
    assert run("predict", model, packed, "-o", out).exit_code == 0
    assert pd.read_csv(out, dtype=str)["number"].tolist() == [f"{i:03d}" for i in range(30)]


def test_other_columns_and_another_order_change_nothing(run, files, model, tmp_path):
    frame = pd.read_csv(files / "new.csv", dtype=str, keep_default_na=False)
    frame.insert(0, "remark", 'a "remark", with a comma')
    turned = tmp_path / "turned.tsv"
    frame[frame.columns[::-1]].to_csv(turned, index=False, sep="\t")
    for source, out in ((files / "new.csv", "plain.csv"), (turned, "turned_out.csv")):
        assert run("predict", model, source, "-o", tmp_path / out).exit_code == 0
    plain = pd.read_csv(tmp_path / "plain.csv", dtype=str, keep_default_na=False)
    other = pd.read_csv(tmp_path / "turned_out.csv", dtype=str, keep_default_na=False)
    assert list(other.columns) == [*frame.columns[::-1], *NEW]
    assert other[NEW].equals(plain[NEW])
    assert other[frame.columns].equals(frame)


def test_semicolons_and_decimal_commas_are_understood(run, files, model, tmp_path):
    frame = pd.read_csv(files / "new.csv")
    frame.to_csv(tmp_path / "new.csv", index=False, sep=";", decimal=",")
    assert run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv").exit_code == 0
    written = pd.read_csv(tmp_path / "out.csv")
    expected = Ensemble.load(model).predict(frame).mean[:, 0]
    np.testing.assert_allclose(written["price_predicted"], expected, rtol=1e-12)
    assert written["size"].dropna().str.contains(",").any()


def test_parquet_in_and_out(run, files, model, tmp_path):
    frame = pd.read_csv(files / "new.csv", parse_dates=["sold"])
    frame.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    assert run("predict", model, tmp_path / "new.parquet", "-o", out).exit_code == 0
    written = pd.read_parquet(out)
    pd.testing.assert_frame_equal(written[frame.columns], frame)
    expected = Ensemble.load(model).predict(frame).mean[:, 0]
    np.testing.assert_array_equal(written["price_predicted"], expected)


def test_a_smaller_share_has_narrower_intervals(run, files, model, tmp_path):
    widths = []
    for share in (0.5, 0.9):
        out = tmp_path / f"out-{share}.csv"
        run("predict", model, files / "new.csv", "-o", out, "--interval", share)
        written = pd.read_csv(out)
        widths.append(written["price_high"] - written["price_low"])
        assert written["price_predicted"].between(written["price_low"], written["price_high"]).all()
    assert (widths[0] < widths[1]).all()


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_an_interval_must_be_a_share(fails, files, model, tmp_path, share):
    out = tmp_path / "out.csv"
    line = fails("predict", model, files / "new.csv", "-o", out, "--interval", share)
    assert "`--interval` must be" in line
    assert not out.exists()


def test_json_says_what_was_done(run, files, model, tmp_path):
    out = tmp_path / "out.csv"
    result = run("predict", model, files / "new.csv", "-o", out, "--json")
    assert json.loads(result.stdout) == {
        "rows": 30,
        "written": str(out),
        "replaces": "nothing",
        "interval": 0.9,
        "unusable": [],
        "scores": None,
        "coverage": None,
    }


def test_a_table_with_the_target_is_scored(run, houses, model, tmp_path):
    out = tmp_path / "out.csv"
    result = run("predict", model, houses, "-o", out)
    expected = Ensemble.load(model).predict(pd.read_csv(houses), interval=0.9)
    _, second = result.stdout.splitlines()
    assert second.startswith("On the 140 rows with price: RMSE ")
    assert f"{expected.coverage[0]:.0%}".replace("%", " %") in second
    assert "in their 90 % intervals." in second
    words = ("predict", model, houses, "-o", out, "--force", "--json")
    found = json.loads(run(*words).stdout)
    assert found["scores"] == expected.scores.to_dict()
    assert found["coverage"] == {"price": expected.coverage[0]}


def test_groups_and_several_targets_are_scored_one_by_one(run, houses, tmp_path):
    frame = pd.read_csv(houses).assign(tax=lambda own: own["rooms"] * 1e-3)
    frame.to_csv(tmp_path / "houses.csv", index=False)
    words = ["fit", tmp_path / "houses.csv", "--target", "price", "--target", "tax"]
    words += ["--group", "street", "--method", "ridge", "-j", 1, "--out", tmp_path / "model"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].endswith("rows that were put aside:")
    assert lines[1].split() == ["target", "rows", "RMSE", "MAE", "R2"]
    assert [line.split()[0] for line in lines[2:4]] == ["price", "tax"]
    result = run("predict", tmp_path / "model", tmp_path / "houses.csv", "-o", tmp_path / "out.csv")
    lines = result.stdout.splitlines()
    assert lines[1] == "On the 140 rows with price, tax:"
    assert [line.split()[0] for line in lines[3:5]] == ["price", "tax"]
    assert lines[5].split()[:2] == ["street", "rows"]
    assert lines[-1].strip() == "and 2 groups with smaller errors"  # of twelve


def test_a_few_rows_have_intervals_of_a_level_that_they_allow(run, houses, tmp_path):
    pd.read_csv(houses).head(20).to_csv(tmp_path / "few.csv", index=False)
    words = ["fit", tmp_path / "few.csv", "--target", "price", "--method", "ridge", "-j", 1]
    assert run(*words, "--out", tmp_path / "model").exit_code == 0
    result = run("predict", tmp_path / "model", houses, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert "The intervals hold for 86 % of new rows" in result.stdout
    result = run(
        *("predict", tmp_path / "model", houses, "-o", tmp_path / "new.csv", "--interval", 0.9)
    )
    assert "`--interval` must be at most 0.857" in result.stderr


def test_a_model_of_a_named_data_set_takes_columns_in_their_order(run, fails, tmp_path):
    folder, out = tmp_path / "model", tmp_path / "out.csv"
    quick = ("--method", "erm", "--members", 2)
    assert run("fit", "synthetic-swiss-roll", *quick, "--out", folder).exit_code == 0
    x = np.random.default_rng(0).normal(size=(5, 3)).round(3)
    pd.DataFrame(x, columns=list("abc")).to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", folder, tmp_path / "new.csv", "-o", out).exit_code == 0
    expected = Ensemble.load(folder).predict(x).mean[:, 0]
    np.testing.assert_array_equal(column(out, "target_predicted"), expected)
    pd.DataFrame(x[:, :2], columns=list("ab")).to_csv(tmp_path / "new.csv", index=False)
    line = fails("predict", folder, tmp_path / "new.csv", "-o", out, "--force")
    assert "`DATA` must have 3 columns, got 2." in line


def test_a_missing_column_is_named(fails, files, model, tmp_path):
    frame = pd.read_csv(files / "new.csv").rename(columns={"size": "sizes"})
    frame.to_csv(tmp_path / "new.csv", index=False)
    line = fails("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "lacks 1 of the 6 input columns: 'size' (did you mean 'sizes'?)" in line


def test_a_table_without_rows_gives_a_table_without_rows(run, files, model, tmp_path):
    header = (files / "new.csv").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "new.csv").write_text(header + "\n")
    result = run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert (tmp_path / "out.csv").read_text().splitlines() == [",".join([header, *NEW])]


def test_no_model_and_no_table(fails, files, model, tmp_path):
    out = tmp_path / "out.csv"
    assert "lost" in fails("predict", tmp_path / "lost", files / "new.csv", "-o", out)
    assert "There is no file" in fails("predict", model, files / "nev.csv", "-o", out)
    assert "Did you mean 'new.csv'" in fails("predict", model, files / "nev.csv", "-o", out)
    assert not out.exists()


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_file_that_is_gone_is_named(fails, files, copied, tmp_path, name):
    (copied / name).unlink()
    line = fails("predict", copied, files / "new.csv", "-o", tmp_path / "out.csv")
    assert f"the file {name} is missing" in line


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_changed_byte_is_found(fails, files, copied, tmp_path, name):
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    assert name in fails("predict", copied, files / "new.csv", "-o", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"format": NaN}',
        '{"__reduce__": ["os.system", "touch hacked"]}',
        '{"state": {"$tuple": 1}, "tensors": {"bytes": 1e999, "crc32": -1}}',
    ],
)
def test_a_hostile_description_is_refused(fails, files, copied, tmp_path, text):
    (copied / "model.json").write_text(text)
    assert "model.json" in fails("predict", copied, files / "new.csv", "-o", tmp_path / "out.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copied"]


def test_an_unknown_ending_is_refused(fails, files, model, tmp_path):
    line = fails("predict", model, files / "new.csv", "-o", tmp_path / "out.xlsx")
    assert "`--out` must end in .csv, .tsv or .parquet" in line


def test_a_missing_folder_is_made_and_a_file_is_no_folder(run, fails, files, model, tmp_path):
    out = tmp_path / "a" / "b" / "out.csv"
    assert run("predict", model, files / "new.csv", "-o", out).exit_code == 0
    assert out.is_file()
    line = fails("predict", model, files / "new.csv", "-o", out / "more.csv")
    assert f"Could not write {out / 'more.csv'}" in line


def test_a_failed_write_leaves_what_was_there(fails, files, model, tmp_path, monkeypatch):
    def break_off(frame, file, **options):
        file.write("half a")
        raise OSError(28, "No space left on device")

    out = tmp_path / "out.csv"
    out.write_text("before")
    monkeypatch.setattr(pd.DataFrame, "to_csv", break_off)
    line = fails("predict", model, files / "new.csv", "-o", out, "--force")
    assert f"Could not write {out}: No space left on device." in line
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_text() == "before"


def test_what_parquet_cannot_hold_is_said(tmp_path):
    mixed = pd.DataFrame({"a": [1, "b", None]})
    with pytest.raises(ValueError, match="cannot be written as Parquet: .* Write a .csv file"):
        write_table(mixed, output(tmp_path / "out.parquet"))
    assert list(tmp_path.iterdir()) == []


def test_the_standard_input_and_other_encodings_are_read(files, model, tmp_path):
    plain, out = tmp_path / "plain.csv", tmp_path / "out.csv"
    data = (files / "new.csv").read_bytes()
    invoke = CliRunner().invoke
    assert (
        invoke(app, ["predict", str(model), str(files / "new.csv"), "-o", str(plain)]).exit_code
        == 0
    )
    assert invoke(app, ["predict", str(model), "-", "-o", str(out)], input=data).exit_code == 0
    assert out.read_bytes() == plain.read_bytes()
    text = data.decode()
    for encoding in ("utf-16", "cp1250"):
        (tmp_path / "new.csv").write_bytes(text.encode(encoding))
        words = ["predict", str(model), str(tmp_path / "new.csv"), "-o", str(out), "--force"]
        words += ["--encoding", "cp1250"] if encoding == "cp1250" else []
        assert invoke(app, words).exit_code == 0
        assert out.read_bytes() == plain.read_bytes()


def test_cells_are_kept_as_they_are_written_whatever_was_read_from_them(
    run, files, model, tmp_path
):
    frame = pd.read_csv(files / "new.csv", dtype=str, keep_default_na=False)
    frame["size"] = ["NA", *frame["size"].str.replace(".", ",")[1:] + " m²"]
    frame.to_csv(tmp_path / "new.csv", index=False, sep=";")
    assert run("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv").exit_code == 0
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(written[frame.columns], frame)
    plain = pd.read_csv(files / "new.csv")
    plain.loc[0, "size"] = np.nan
    expected = Ensemble.load(model).predict(plain).mean[:, 0]
    np.testing.assert_allclose(column(tmp_path / "out.csv", "price_predicted"), expected, rtol=1e-6)


def spoil(files, path, cells):
    """Write the new rows with some cells of the column of sizes replaced."""
    frame = pd.read_csv(files / "new.csv", dtype=str, keep_default_na=False)
    for row, text in cells.items():
        frame.loc[row - 1, "size"] = text
    frame.to_csv(path, index=False)
    return path


def test_cells_that_cannot_be_used_are_counted_and_named(run, files, model, tmp_path):
    bad = {2: "abc", 4: "inf", 7: "-Infinity"}
    path, out = spoil(files, tmp_path / "bad.csv", bad | {9: "", 10: "NA"}), tmp_path / "out.csv"
    result = run("predict", model, path, "-o", out)
    assert result.exit_code == 0
    listed = "'abc' in 'size' (row 2), 'inf' in 'size' (row 4), '-Infinity' in 'size' (row 7)"
    assert f"3 cells are no finite numbers or dates: {listed}. Counted as missing" in result.stdout
    found = json.loads(run("predict", model, path, "-o", out, "--json", "--force").stdout)
    assert found["unusable"] == [
        {"row": row, "column": "size", "text": text} for row, text in bad.items()
    ]
    predicted = column(out, "price_predicted")
    assert predicted[1] != predicted[8]  # of other rows, all of them predicted
    assert np.isfinite(predicted).all()


def test_strict_refuses_cells_that_cannot_be_used(run, fails, files, model, tmp_path):
    out = tmp_path / "out.csv"
    path = spoil(files, tmp_path / "bad.csv", {2: "abc"})
    words = fails("predict", model, path, "-o", out, "--strict")
    assert "1 cell is no finite number or date: 'abc' in 'size' (row 2)" in words
    assert not out.exists()
    assert run("predict", model, files / "new.csv", "-o", out, "--strict").exit_code == 0
    gap = spoil(files, tmp_path / "gap.csv", {2: ""})
    assert run("predict", model, gap, "-o", tmp_path / "gaps.csv", "--strict").exit_code == 0


@pytest.mark.parametrize(("text", "like"), [("1e39", "1e30"), ("-1e300", "-1e30")])
@pytest.mark.parametrize("beside", [{}, {3: "abc"}])
def test_a_finite_number_is_used_however_large_it_is(
    run, files, model, tmp_path, text, like, beside
):
    found = []
    for name, cell in (("huge", text), ("large", like)):
        path = spoil(files, tmp_path / f"{name}.csv", {1: cell, **beside})
        out = tmp_path / f"{name}-out.csv"
        result = run("predict", model, path, "-o", out)
        assert ("no finite number" in result.stdout) == bool(beside)
        found.append(column(out, "price_predicted"))
    assert found[0] == found[1]
    empty = spoil(files, tmp_path / "empty.csv", {1: "", **beside})
    run("predict", model, empty, "-o", tmp_path / "empty-out.csv")
    assert found[0][0] != column(tmp_path / "empty-out.csv", "price_predicted")[0]
