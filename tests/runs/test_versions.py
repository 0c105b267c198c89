"""Versions: another regaug is refused by name, another library is said."""

import json
import re

import pytest

import regaug
from regaug.exceptions import RegaugError, StoreError
from regaug.runs import entrance
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import STUDY, Store
from regaug.runs.versions import check_store, check_worker, own_versions, say_worker


def make_record(number, **made_by):
    versions = {**own_versions(), **made_by}
    return RunRecord(Run("p", "mean", number, 0), {}, "finished", 0, 0, 0.0, (1, 1, 1), versions)


def test_a_worker_of_the_same_versions_is_welcome():
    ours = own_versions()
    assert ours.keys() == {"regaug", "torch", "sklearn"}
    check_worker(ours, ours, "far")
    assert say_worker(ours, ours, "far") == ""


def test_a_process_that_has_another_regaug_than_its_parent_is_refused(monkeypatch):
    monkeypatch.setattr(entrance, "_worker", object())
    monkeypatch.setattr(entrance, "_wanted", {**own_versions(), "regaug": "99"})
    words = f"has regaug {regaug.__version__}, and this is regaug 99 on "
    with pytest.raises(RegaugError, match=re.escape(words)):
        entrance.do(b"")


def test_a_study_that_another_regaug_has_begun_is_not_continued(tmp_path):
    Store(tmp_path, {"a": 1})
    file = tmp_path / STUDY
    file.write_text(json.dumps(json.loads(file.read_text()) | {"regaug": "0.0.9"}) + "\n")
    store = Store(tmp_path, {"a": 1})
    words = f"was begun by regaug 0.0.9, and this is regaug {regaug.__version__}"
    with pytest.raises(StoreError, match=re.escape(words)):
        check_store(store)


def test_runs_of_another_regaug_are_refused_and_other_versions_said_once(tmp_path):
    store = Store(tmp_path, {"a": 1})
    for number, torch in enumerate(["2.6.0", "2.6.0", own_versions()["torch"]]):
        store.add(make_record(number, torch=torch))
    store.done()
    (sentence,) = check_store(store)
    assert re.search(r"Some runs were made on \S+ with torch 2\.6\.0 \(here ", sentence)
    store.add(make_record(3, regaug="0.0.9"))
    store.done()
    with pytest.raises(RegaugError, match="has regaug 0.0.9"):
        check_store(store)


def test_records_that_do_not_say_their_versions_are_welcome(tmp_path):
    store = Store(tmp_path, {"a": 1})
    store.add(RunRecord(Run("p", "mean", 0, 0), {}, "finished", 0, 0, 0.0, (1, 1, 1), {}))
    store.done()
    assert check_store(store) == []
