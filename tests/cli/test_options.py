"""How a user names the data, and what all commands on a table share."""

import sys

import pytest

from regaug.cli.options import open_data, print_checks, print_table
from regaug.exceptions import ArgumentError, DataNotFoundError, UnknownNameError
from regaug.formatting import TextTable
from regaug.studies.checks import Check


def test_a_file_is_read_with_its_columns(files):
    data = open_data(
        str(files / "houses.csv"), target=["price"], group="city", time="sold", drop=["number"]
    )
    assert data.targets == ("price",)
    assert (data.group, data.time) == ("city", "sold")
    assert data.inputs == ("size", "rooms", "garden", "street", "country")


def test_several_targets_are_given_one_by_one(files):
    assert open_data(str(files / "houses.csv"), target=["price", "size"]).targets == (
        "price",
        "size",
    )


def test_a_data_set_is_loaded_by_its_name():
    assert len(open_data("diabetes")) == 442


def test_a_file_comes_before_a_data_set_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diabetes").write_text("mine")
    with pytest.raises(UnknownNameError, match="which column of diabetes"):
        open_data("diabetes")


def test_a_data_set_knows_its_columns():
    with pytest.raises(ArgumentError, match="`--group` is for files of your own"):
        open_data("diabetes", group="sex")


def test_a_misspelled_data_set_is_told_from_a_missing_file(files):
    with pytest.raises(UnknownNameError, match="Did you mean 'airfoil'?"):
        open_data("airfoyl")
    with pytest.raises(DataNotFoundError, match="Did you mean 'houses.csv'?"):
        open_data(str(files / "house.csv"), target=["price"])
    with pytest.raises(DataNotFoundError, match="there is no folder"):
        open_data(str(files / "lost" / "houses"))


@pytest.mark.parametrize(
    ("columns", "is_terminal", "is_wide"), [(80, True, False), (200, True, True), (80, False, True)]
)
def test_more_columns_are_printed_where_there_is_room(
    capsys, monkeypatch, columns, is_terminal, is_wide
):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    narrow = TextTable("", ["method"], [["erm"]], ["a note"])
    wide = TextTable("", ["method", "fit" * 40], [["erm", "1 s"]], ["a note"])
    print_table(narrow, wide=wide)
    shown = capsys.readouterr().out
    assert ("fit" in shown) == is_wide
    assert "a note" in shown


def test_in_a_pipe_a_row_is_a_line_however_long_it_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    row = ["c-mixup *", "131,046", "a long remark " * 20]
    print_table(TextTable("", ["method", "RMSE", "remark"], [row]))
    assert capsys.readouterr().out.splitlines()[1].split("  ") == [
        "c-mixup *",
        "131,046",
        row[2].strip(),
    ]


def test_checks_are_printed_after_an_empty_line_and_none_prints_nothing(capsys):
    print_checks([])
    assert capsys.readouterr().out == ""
    print_checks([Check("R5", "Few.", "docs/checks.md#r5-few-splits")])
    assert capsys.readouterr().out == "\nR5: Few. (docs/checks.md#r5-few-splits)\n"


def test_every_command_on_a_table_knows_encodings_and_the_standard_input(run):
    for command in ("compare", "fit", "predict", "augment", "dimension"):
        words = " ".join(run(command, "--help").stdout.split())
        assert "--encoding" in words
        assert "standard input" in words


def test_an_encoding_is_for_files(files):
    with pytest.raises(ArgumentError, match="`--encoding` is for files of your own"):
        open_data("diabetes", encoding="cp1252")
    with pytest.raises(UnknownNameError, match="`encoding` must be the name of"):
        open_data(str(files / "houses.csv"), target=["price"], encoding="klingon")
