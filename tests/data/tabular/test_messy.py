"""A corpus of messy files, each with what is to be said about it and its first row as it is read.

``messy/EXPECTED.txt`` has a part for every file: its name and the options of the command, the
summary, or the error, and after ``>`` the targets and the encoded inputs of the first row. This
file, run as a script, writes it anew after a change; look at every difference.
"""

import os
import shlex
from pathlib import Path

import pytest

from regaug.data import read_table
from regaug.data.tabular.encoding import Encoder
from regaug.exceptions import RegaugError

FOLDER = Path(__file__).parent / "messy"
EXPECTED = FOLDER / "EXPECTED.txt"
MOST_NUMBERS = 12


def expectations():
    """Yield the name of every file, its options, and the text that is expected."""
    for part in EXPECTED.read_text(encoding="utf-8").split("== ")[1:]:
        head, _, text = part.partition("\n")
        name, *words = shlex.split(head)
        yield name, words, text.rstrip("\n")


def say(name, words):
    """Return what reading a file says; paths are as in its folder."""
    options = {
        word.removeprefix("--"): value for word, value in zip(words[::2], words[1::2], strict=True)
    }
    before = Path.cwd()
    os.chdir(FOLDER)
    try:
        table = read_table(name, **options)
    except RegaugError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        os.chdir(before)
    encoder = Encoder.fit(table.frame[list(table.inputs)], readings=table.readings)
    row = encoder.transform(table.frame.iloc[:1])[0]
    inputs = " ".join(f"{value:.6g}" for value in row[:MOST_NUMBERS])
    targets = " ".join(f"{value:.10g}" for value in table.y[0])
    return f"{table.summary}\n> {targets} | {inputs}"


CASES = list(expectations()) if EXPECTED.exists() else []


@pytest.mark.parametrize(("name", "words", "text"), CASES, ids=[case[0] for case in CASES])
def test_a_messy_file_is_read_as_expected(name, words, text):
    assert say(name, words) == text


def test_every_file_of_the_corpus_has_its_expectation():
    files = {path.name for path in FOLDER.iterdir()} - {EXPECTED.name}
    assert files == {name for name, _, _ in CASES}
    assert len(files) >= 60


if __name__ == "__main__":
    parts = [f"== {shlex.join([name, *words])}\n{say(name, words)}\n" for name, words, _ in CASES]
    EXPECTED.write_text("\n".join(parts), encoding="utf-8")
