"""Names and cells of other people: no formula in a written file, no escape on the terminal."""

import errno
import gzip
import os

import numpy as np
import pandas as pd
import pytest

from regaug import _files
from regaug.cli import main as module
from regaug.data import read_table
from regaug.data.tabular import sources
from regaug.data.tabular.formulas import as_text
from regaug.exceptions import DataError, FileError
from regaug.formatting import TextTable, printable

ESC = "\x1b[2J"


def make_frame(n=40):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n).round(3)
    return pd.DataFrame(
        {f"si{ESC}ze": x, "word": ["=1+1", "@x", "-y", "+z"] * (n // 4), "y": 2 * x}
    )


@pytest.fixture
def table(tmp_path):
    frame = make_frame()
    frame["y"] += np.random.default_rng(1).normal(size=len(frame)).round(3)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\tand\nlines", "plain\tand\nlines"),
        ("a\x1b]0;title\x07b", r"a\x1b]0;title\x07b"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb\x08", r"a\rb\x08"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("Łódź, 東京, 😀", "Łódź, 東京, 😀"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(text, expected):
    assert printable(text) == expected


def test_tables_of_text_are_printable():
    text = str(TextTable(f"t{ESC}", [f"h{ESC}"], [[f"c{ESC}"]], [f"n{ESC}"]))
    assert "\x1b" not in text
    assert text.count(r"\x1b[2J") == 4


def test_no_escape_of_a_table_reaches_the_terminal(run, table, tmp_path):
    for words in (
        ["dimension", table, "--target", "y"],
        ["augment", table, "--target", "y", "--rows", 5, "-o", tmp_path / "new.csv"],
        ["fit", table, "--target", "nothing", "--out", tmp_path / "model"],
        ["fit", table, "--target", f"si{ESC}ze", "--method", "ridge", "--out", tmp_path / "m"],
        ["predict", tmp_path / "m", table, "-o", tmp_path / "p.csv"],
    ):
        assert "\x1b" not in run(*words).output, words


def test_safe_csv_puts_a_quote_before_formulas_and_nothing_else(run, table, tmp_path):
    for name, words in (("plain.csv", []), ("safe.csv", ["--safe-csv"])):
        made = run("augment", table, "--target", "y", "--rows", 5, "--append", "-o",
                   tmp_path / name, *words)  # fmt: skip
        assert made.exit_code == 0, made.output
    plain, safe = (pd.read_csv(tmp_path / name) for name in ("plain.csv", "safe.csv"))
    assert set(plain["word"]) == {"=1+1", "@x", "-y", "+z"}
    assert set(safe["word"]) == {"'=1+1", "'@x", "'-y", "'+z"}
    pd.testing.assert_frame_equal(plain.drop(columns="word"), safe.drop(columns="word"))


@pytest.mark.parametrize("number", ["-1", "+2.5", "-1e-3", -3.0, 4, None, "a=b", "", " x"])
def test_numbers_and_plain_texts_are_no_formulas(number):
    assert as_text(number) is number


@pytest.mark.parametrize("text", ["=A1", "+cmd", "-x", "@SUM(A1)", "\t=1", " =1"])
def test_what_begins_like_a_formula_is_made_a_text(text):
    assert as_text(text) == f"'{text}"


def test_a_full_disk_says_which_one_and_how_much_it_has_left(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    words = rf"No space left on device\. Free some .* The disk of {tmp_path} has [\d,.]+ MB left"
    with pytest.raises(FileError, match=words):
        _files.write_whole(tmp_path / "a", fail)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "not enough memory"),
        (ImportError("libx.so: failed to map segment from shared object"), "not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory"),
        (OSError(errno.ENOSPC, "No space left", "/tmp/x"), "No space is left on the disk where"),
    ],
)
def test_want_of_memory_or_space_is_a_sentence(fails, table, monkeypatch, error, words):
    def raise_it(*_, **__):
        raise error

    monkeypatch.setattr("regaug.cli.options.open_data", raise_it)
    assert words in fails("dimension", table, "--target", "y")
    assert module.say_lack(ValueError("x")) is None


def test_a_few_packed_bytes_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MOST_UNPACKED", 10_000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 100_000))
    with pytest.raises(DataError, match=r"a\.csv\.gz must hold at most 10,000 bytes when it is un"):
        read_table(tmp_path / "a.csv.gz", target="y")


def test_a_device_is_no_table(tmp_path):
    (tmp_path / "a.csv").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"got the device .*a\.csv"):
        read_table(tmp_path / "a.csv", target="y")


def test_thousands_of_constant_columns_are_refused_in_a_line():
    frame = pd.DataFrame({f"column {i}": np.ones(30) for i in range(2000)})
    frame["y"] = np.arange(30.0)
    with pytest.raises(DataError, match=r"'column 0' left out: constant \(1\);.*and 1,995 more\.$"):
        read_table(frame, target="y")
    with pytest.raises(DataError, match=r"all of 'column 0',.* and 1,991 more are named") as caught:
        read_table(frame, target="y", drop=[f"column {i}" for i in range(2000)])
    assert len(str(caught.value)) < 400
