"""What may be written over: an input never, own output again, anything else by force alone."""

import os
from pathlib import Path

import pytest

from regaug._outputs import MARK, Output, has_mark, is_part_of
from regaug.exceptions import ArgumentError, FileError, OverwriteError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("size,price\n1,2\n")
    return path


def test_a_new_file_may_be_written(table):
    out = Output(table.with_name("more.csv"), [table])
    assert (out.replaces, out.remark) == ("nothing", "")


def names_of(table):
    """Other names of a file: a link, a hard link, a way around, by one's own folder."""
    folder = table.parent
    (folder / "link.csv").symlink_to(table)
    os.link(table, folder / "hard.csv")
    (folder / "inner").mkdir()
    (folder / "other").symlink_to(folder)
    return [
        table,
        folder / "link.csv",
        folder / "hard.csv",
        folder / "inner" / ".." / "houses.csv",
        folder / "other" / "houses.csv",
        Path(os.path.relpath(table)),
    ]


@pytest.mark.parametrize("force", [False, True])
def test_an_input_is_never_written_over_whatever_it_is_called(table, force):
    before = table.read_text()
    for name in names_of(table):
        for path, source in ((name, table), (table, name)):
            with pytest.raises(OverwriteError, match="`path` must not be what is read, got"):
                Output(path, [source], force=force, is_own=lambda file: True)
    assert table.read_text() == before


def test_a_tilde_is_ones_own_folder(table, monkeypatch):
    monkeypatch.setenv("HOME", str(table.parent))
    with pytest.raises(OverwriteError, match="must not be what is read"):
        Output(Path("~/houses.csv"), [table], force=True)
    with pytest.raises(OverwriteError, match="must not be what is read"):
        Output(table, ["~/houses.csv"], force=True)
    assert Output(Path("~/more.csv")).path == table.parent / "more.csv"


@pytest.mark.skipif(
    not Path(__file__.upper()).exists(), reason="needs a disk that does not tell case"
)
def test_another_case_is_the_same_file(table):
    with pytest.raises(OverwriteError, match="must not be what is read"):
        Output(table.with_name("HOUSES.CSV"), [table], force=True)


def test_a_file_in_a_folder_that_is_read_is_an_input_too(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.json").write_text("{}")
    with pytest.raises(OverwriteError, match="lies in"):
        Output(model / "model.json", [model], force=True)
    assert Output(model / "new.csv", [model]).replaces == "nothing"


def test_what_was_read_and_is_gone_is_no_input(table):
    assert not is_part_of(table, table.with_name("lost.csv"))


def test_another_file_needs_force(table):
    with pytest.raises(OverwriteError) as caught:
        Output(table, name="--out")
    assert str(caught.value) == (
        f"`--out` must be new, got {table}, which is there and may not be regaug's own. Name "
        "another, or replace it: --force."
    )
    with pytest.raises(FileExistsError, match=r"Name another, or force=True\."):
        Output(table)
    out = Output(table, force=True)
    assert (out.replaces, out.remark) == ("other", "It replaces what was there.")


def test_a_link_that_leads_nowhere_is_somebodys_too(tmp_path):
    (tmp_path / "out.csv").symlink_to("lost.csv")
    with pytest.raises(OverwriteError, match="must be new"):
        Output(tmp_path / "out.csv")


@pytest.mark.parametrize(
    "content",
    [
        '<html><meta name="generator" content="regaug 0.1">',
        f"<svg><!-- {MARK} --></svg>",
        "x" * 200_000 + MARK,
    ],
)
def test_own_output_may_be_replaced_and_that_is_said(tmp_path, content):
    path = tmp_path / "report.html"
    path.write_text(content)
    out = Output(path, is_own=has_mark)
    assert out.replaces == "own"
    assert out.remark == "It replaces the one that regaug wrote before."


def test_a_page_of_somebody_else_is_not_taken_for_own(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("<html>about regaug</html>")
    assert not has_mark(path)
    assert not has_mark(tmp_path)
    with pytest.raises(OverwriteError):
        Output(path, is_own=has_mark)


def test_an_ending_is_asked_for(tmp_path):
    with pytest.raises(ArgumentError, match=r"`--out` must end in \.csv, \.tsv or \.parquet, got"):
        Output(tmp_path / "out.xlsx", name="--out", endings=(".csv", ".tsv", ".parquet"))
    with pytest.raises(ArgumentError, match=r"`path` must end in \.html, got"):
        Output(tmp_path / "houses.csv", endings=(".html",))
    assert Output(tmp_path / "REPORT.HTML", endings=(".html",)).path.name == "REPORT.HTML"


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path, table):
    with pytest.raises(OverwriteError, match="must be a file, got the folder"):
        Output(tmp_path, force=True)
    with pytest.raises(OverwriteError, match="must be a folder, got the file"):
        Output(table, force=True, holds=("a",))


def test_a_folder_with_anything_else_in_it_is_never_replaced(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    rules = {"holds": ("a", "b"), "is_own": lambda place: (place / "a").read_text() == "mine"}
    assert Output(folder, **rules).replaces == "nothing"  # an empty one is as good as a new one
    (folder / "a").write_text("yours")
    with pytest.raises(OverwriteError, match="must be new"):
        Output(folder, **rules)
    assert Output(folder, **rules, force=True).replaces == "other"
    (folder / "a").write_text("mine")
    assert Output(folder, **rules).replaces == "own"
    (folder / "notes.txt").touch()
    with pytest.raises(OverwriteError, match=r"holds something else \(notes\.txt\)"):
        Output(folder, **rules, force=True)


def test_it_is_looked_at_again_before_it_is_written(tmp_path):
    out = Output(tmp_path / "out.csv")
    out.path.write_text("somebody was faster")
    with pytest.raises(OverwriteError, match="must be new"):
        out.check()


def test_a_place_that_cannot_be_written_to_is_told_at_once(table):
    with pytest.raises(FileError, match="Could not write .*A file is in the way"):
        Output(table / "more.csv")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_told_at_once(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="Choose a folder that you may write to"):
        Output(tmp_path / "more.csv")
