"""The short form of the fuzz: whatever a file holds, a sentence or a result, soon."""

import pytest
from tests.fuzz import fuzz as module
from tests.fuzz.fuzz import Tally, fuzz, try_one
from tests.fuzz.targets import TARGETS, Target

from regaug.exceptions import RegaugError


def test_no_changed_file_ends_in_anything_but_a_sentence():
    tally = fuzz(seed=0, count=60, seconds=5)
    assert sum(tally.tried.values()) > 0
    assert not tally.findings, str(tally)


@pytest.mark.slow
def test_a_minute_of_changed_files_ends_in_nothing_but_sentences():
    tally = fuzz(seed=1, seconds=60)
    assert not tally.findings, str(tally)


def use_forever(folder):
    while True:
        pass


def fail(folder):
    raise KeyError("x")


def refuse(folder):
    raise RegaugError("x" * 10_000)


@pytest.mark.parametrize(
    ("use", "found"),
    [
        (use_forever, "TimeoutError"),
        (fail, "KeyError"),
        (refuse, "AssertionError"),
        (lambda folder: bytearray(2**36), "MemoryError"),
    ],
)
def test_the_fuzz_finds_hangs_errors_floods_and_hunger(tmp_path, monkeypatch, capsys, use, found):
    monkeypatch.setitem(TARGETS, "bad", Target(lambda path: None, lambda path, rng: None, use))
    monkeypatch.setattr(module, "SECONDS", 0.1)
    (tmp_path / "bad").mkdir()
    tally = Tally()
    with module.limited_memory():
        try_one("bad", "0-0", tmp_path, tally)
    assert [place.split()[0] for place in tally.findings] == [found]
    assert "bad, seed 0-0" in str(tally)
