"""Where studies are kept: a folder for every configuration, below one for every table."""

import os
from dataclasses import replace
from itertools import count

import pytest

from regaug import methods
from regaug.runs.store import STUDY, Store
from regaug.studies import folders
from regaug.studies.config import StudyConfig
from regaug.studies.folders import claim_place, name_study
from regaug.studies.plan import QUICK_METHODS

FULL = StudyConfig(
    "houses.csv", methods.default_names(), ("mean",), 6, 10, "rmse", 0.25, rows=515, checksum="a"
)
QUICK = replace(FULL, methods=QUICK_METHODS, trials=3, splits=5, checksum="b")
GIVEN = {"source": "houses.csv", "target": ["price"]}


@pytest.fixture
def claim(tmp_path, monkeypatch):
    """Claim the place of a study; return where it is below the folder, and what was said."""
    monkeypatch.chdir(tmp_path)
    for folder in ("", "old"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "houses.csv").touch()

    def call(config, *, given=GIVEN, quick=False, **asked):
        name = name_study(config, quick=quick, **asked)
        place = claim_place(tmp_path / "runs", config, name=name, given=given)
        assert (place.folder / STUDY).exists()
        assert place.notes[-1] == f"The study is kept in {place.folder}."
        return str(place.folder.relative_to(tmp_path / "runs")), list(place.notes[:-1])

    return call


@pytest.mark.parametrize(
    ("config", "asked", "name"),
    [
        (FULL, {}, "full"),
        (QUICK, {"quick": True}, "quick"),
        (replace(FULL, seed=1), {}, "full-seed-1"),
        (replace(QUICK, seed=3), {"quick": True}, "quick-seed-3"),
        (replace(FULL, metric="mae"), {}, "full-mae"),
        (replace(FULL, splits=20), {"splits": 20}, "full-splits-20"),
        (FULL, {"splits": 10}, "full"),
        (replace(FULL, splits=1), {}, "full"),  # a table that is split by time has one
        (replace(FULL, trials=20), {}, "full-trials-20"),
        (FULL, {"split": "random"}, "full-split-random"),
        (replace(FULL, search="tpe"), {}, "full-tpe"),
        (replace(FULL, independent=True), {}, "full-independent"),
        (replace(FULL, methods=("erm", "mixup", "foma-rho")), {}, "full-mixup+foma-rho"),
        (replace(FULL, methods=("erm",)), {}, "full-erm"),
        (replace(FULL, methods=methods.default_names()[:6]), {}, "full-6-methods"),
        (replace(FULL, methods=tuple(reversed(methods.default_names()))), {}, "full"),
        (QUICK, {"quick": False}, "full-5-methods-trials-3"),
    ],
    ids=str,
)
def test_a_name_says_what_was_asked_for_beside_the_defaults(config, asked, name):
    assert name_study(config, **{"quick": False, **asked}) == name


def test_quick_and_full_stand_side_by_side_and_the_same_command_goes_on(claim):
    for _ in range(2):
        assert claim(QUICK, quick=True) == ("houses/quick", [])
        assert claim(FULL) == ("houses/full", [])
        assert claim(replace(FULL, seed=1)) == ("houses/full-seed-1", [])


def test_another_table_of_the_same_name_has_a_folder_of_its_own(claim, tmp_path):
    claim(FULL)
    other = {"source": "old/houses.csv", "target": ["price"]}
    note = f"{tmp_path / 'runs' / 'houses'} holds studies of {tmp_path / 'houses.csv'}."
    for _ in range(2):
        assert claim(replace(FULL, checksum="c"), given=other)[0] == "houses-2/full"
    assert claim(replace(QUICK, checksum="d"), given=other, quick=True) == (
        "houses-2/quick",
        [note],
    )
    assert claim(FULL) == ("houses/full", [])


def test_a_table_that_was_moved_goes_on_where_it_was(claim):
    claim(FULL)
    other = {"source": "old/houses.csv", "target": ["price"]}
    assert claim(FULL, given=other) == ("houses/full", [])


def test_a_table_that_has_changed_is_studied_beside_and_that_is_said(claim, tmp_path):
    claim(FULL)
    folder, notes = claim(replace(FULL, rows=520, checksum="c"))
    first = tmp_path / "runs" / "houses" / "full"
    assert folder == "houses/full-2"
    assert notes == [f"{first} holds another study: it has 515 rows, and the table has 520 rows."]
    folder, notes = claim(replace(FULL, checksum="d"))
    assert folder == "houses/full-3"
    assert "the table has changed since: as many rows, with other values." in notes[0]
    assert claim(replace(FULL, rows=520, checksum="c")) == ("houses/full-2", [])


def test_other_columns_of_the_same_table_are_named(claim):
    claim(FULL)
    cases = {
        "rent": {**GIVEN, "target": ["rent"]},
        "price+rent": {**GIVEN, "target": ["price", "rent"]},
        "group-city": {**GIVEN, "group": "city"},
        "time-sold-on": {**GIVEN, "time": "sold on"},
        "without-street": {**GIVEN, "drop": ["street"]},
        "without-4-columns": {**GIVEN, "drop": list("abcd")},
        "rent-group-city": {**GIVEN, "target": ["rent"], "group": "city"},
    }
    for number, (words, given) in enumerate(cases.items()):
        config = replace(FULL, checksum=f"{number}")
        folder, notes = claim(config, given=given)
        assert folder == f"houses/full-{words}"
        assert "it is about other columns" in notes[0]
        assert claim(config, given=given) == (f"houses/full-{words}", [])


def test_a_study_is_found_again_when_another_one_is_gone(claim, tmp_path):
    claim(FULL)
    claim(replace(FULL, checksum="c"))
    claim(FULL, given={"source": "old/houses.csv"})
    (tmp_path / "runs" / "houses" / "full").rename(tmp_path / "gone")
    assert claim(replace(FULL, checksum="c")) == ("houses/full-2", [])


def test_what_is_not_regaugs_is_passed_by(claim, tmp_path):
    table = tmp_path / "runs" / "houses"
    (table / "full").mkdir(parents=True)
    (table / "full" / "notes.txt").write_text("mine")
    (table / "quick").write_text("a file")
    assert claim(FULL) == ("houses/full-2", [f"{table / 'full'} holds something else."])
    assert claim(QUICK, quick=True)[0] == "houses/quick-2"
    assert os.listdir(table / "full") == ["notes.txt"]
    assert (table / "quick").read_text() == "a file"


def test_a_store_of_something_else_is_no_folder_of_a_table(claim, tmp_path):
    Store(tmp_path / "runs" / "houses", {"what": "the reproduction of a paper"})
    folder, notes = claim(FULL)
    assert folder == "houses-2/full"
    assert notes == [f"{tmp_path / 'runs' / 'houses'} holds something else."]


@pytest.mark.parametrize("content", ["", "{}", '{"format": 99, "configuration": {}}\n'])
def test_a_study_that_cannot_be_read_is_left_alone(claim, tmp_path, content, monkeypatch):
    monkeypatch.setattr("regaug.runs.store.PATIENCE", 0.0)
    claim(FULL)
    file = tmp_path / "runs" / "houses" / "full" / STUDY
    file.write_text(content)
    assert claim(FULL)[0] == "houses/full-2"
    assert file.read_text() == content


def test_a_folder_that_somebody_takes_in_the_last_moment_is_left_to_them(
    claim, tmp_path, monkeypatch
):
    real, calls = folders._find_place, count()

    def late(*arguments):
        place = real(*arguments)
        if next(calls) == 0:
            about = {**GIVEN, "source": str(tmp_path / "houses.csv")}
            Store(place.folder, replace(FULL, seed=9).to_dict(), about=about)
        return place

    monkeypatch.setattr(folders, "_find_place", late)
    assert claim(FULL)[0] == "houses/full-2"


@pytest.mark.parametrize(
    ("problem", "folder"),
    [
        ("houses.csv.gz", "houses"),
        ("my houses (2024).parquet", "my-houses-2024"),
        ("../../etc/passwd", "passwd"),
        ("..", "table"),
        ("häuser.csv", "häuser"),
        ("x" * 300 + ".csv", "x" * 40),
        ("-o.csv", "o"),
    ],
)
def test_any_name_of_a_table_gives_a_plain_name_of_a_folder(claim, problem, folder):
    assert claim(replace(FULL, problem=problem), given={})[0] == f"{folder}/full"


def test_the_other_studies_of_a_table_may_lend_their_runs(tmp_path):
    out = tmp_path / "runs"
    first = claim_place(out, QUICK, name="quick", given=GIVEN)
    second = claim_place(out, FULL, name="full", given=GIVEN)
    assert (first.others, second.others) == ([], [first.folder])
    (out / "houses" / "latest").symlink_to("quick")  # no study of its own
    assert claim_place(out, FULL, name="full", given=GIVEN).others == [first.folder]
