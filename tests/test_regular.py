"""Files that nobody vouches for: pipes, devices and endless lines neither hang nor fill memory."""

import os

import pytest

from regaug._regular import open_regular, read_regular
from regaug.ensemble import Ensemble
from regaug.exceptions import CheckpointError, FileError, StoreError
from regaug.runs import store as module
from regaug.runs.claims import Claim
from regaug.runs.nets import read_net
from regaug.runs.store import Store
from regaug.studies.facts import read_facts
from regaug.studies.study import Study
from regaug.studies.targets import read_targets
from regaug.training.checkpoint import Checkpoints

STUDY = {"problem": "houses"}


def make_pipe(path):
    os.mkfifo(path)


def link_zeros(path):
    path.symlink_to("/dev/zero")


ENDLESS = pytest.mark.parametrize("make", [make_pipe, link_zeros])


@ENDLESS
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / "file")
    for read in (open_regular, read_regular):
        with pytest.raises(FileError, match=r"file: it is not a regular file\. Remove it\.$"):
            read(tmp_path / "file")


def test_a_link_to_a_regular_file_is_one(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link", 7) == b"content"


def test_a_file_that_claims_to_be_huge_is_not_read(tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileError, match=r"at most 268,435,456 bytes, got 1,099,511,627,776"):
        read_regular(tmp_path / "sparse")


@ENDLESS
def test_a_store_leaves_out_what_is_no_regular_file_and_says_so(tmp_path, make):
    store = Store(tmp_path, STUDY)
    make(tmp_path / "runs-x.jsonl")
    for _ in range(2):
        assert store.records() == {}
        assert store.damaged == ["runs-x.jsonl, is not a regular file and is left out"]


def test_a_line_without_an_end_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 1000)
    store = Store(tmp_path, STUDY)
    (tmp_path / "runs-x.jsonl").write_bytes(b"{}\n" + 5000 * b" ")
    for _ in range(2):
        assert store.records() == {}
        assert store.damaged == [
            "runs-x.jsonl, line 1 is damaged; its run is done again",
            "runs-x.jsonl, line 2 is longer than 1,000 bytes; it and what follows are left out",
        ]


def test_a_line_that_is_short_of_its_end_is_read_when_it_has_one(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 1000)
    store, file = Store(tmp_path, STUDY), tmp_path / "runs-x.jsonl"
    file.write_bytes(999 * b" ")
    store.records()
    assert store.damaged == ["runs-x.jsonl, line 1 is cut; its run is done again"]
    file.write_bytes(999 * b" " + b"\n")
    store.records()
    assert store.damaged == ["runs-x.jsonl, line 1 is damaged; its run is done again"]


@ENDLESS
@pytest.mark.parametrize(
    ("name", "read", "error"),
    [
        ("study.json", Study.open, StoreError),
        ("about.json", read_facts, StoreError),
        ("targets.safetensors", read_targets, StoreError),
        ("epoch-00001.safetensors", lambda folder: Checkpoints(folder).latest(), CheckpointError),
        ("net.safetensors", lambda folder: read_net(folder / "net.safetensors"), FileError),
        ("model.json", Ensemble.load, CheckpointError),
    ],
)
def test_no_file_of_a_folder_is_waited_for(tmp_path, make, name, read, error):
    make(tmp_path / name)
    with pytest.raises(error, match=name):
        read(tmp_path)


@ENDLESS
def test_a_claim_is_not_waited_for(tmp_path, make):
    make(tmp_path / "claim.json")
    assert Claim.take(tmp_path / "claim.json") is None
