"""Files: whole or as before, whatever breaks; JSON is what it says it is."""

import errno
import json
import math
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regaug import _files
from regaug.exceptions import DataError, FileError
from regaug.training.state import read_state, write_state

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Failing:
    """Calls the real function, except that one of the calls fails."""

    def __init__(self, real, at, error):
        self.real, self.left, self.error = real, at, error

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == -1:
            raise self.error
        return self.real(*args, **kwargs)


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# Writing.

WRITERS = {
    "bytes": lambda path: _files.write_bytes(path, b"new"),
    "text": lambda path: _files.write_text(path, "new"),
    "json": lambda path: _files.write_json(path, ["new"]),
    "state": lambda path: write_state(path, {"new": torch.ones(3)}),
    "callback": lambda path: _files.write_whole(path, lambda other: other.write_text("new")),
    "folder": lambda path: _files.write_folder(path, {"one": b"new", "two": b"more"}),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_makes_folders_replaces_what_was_there_and_leaves_nothing_else(tmp_path, writer):
    path = tmp_path / "made" / "here"
    WRITERS[writer](path)
    first = contents(tmp_path)
    WRITERS[writer](path)
    assert contents(tmp_path) == first
    assert os.listdir(path.parent) == ["here"]


def failures(writer):
    """The calls of a writer to the system before the new content is in place."""
    if writer == "folder":  # the second fsync is of the folder, which may fail
        return [("mkdir", 1), ("fsync", 0), ("fsync", 2), ("replace", 0), ("replace", 1)]
    return [("fsync", 0), ("replace", 0)]


@pytest.mark.parametrize(
    ("writer", "function", "at"),
    [(writer, *failure) for writer in WRITERS for failure in failures(writer)],
)
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "replaced"])
def test_a_failed_write_changes_nothing(tmp_path, monkeypatch, writer, function, at, error, is_new):
    path = tmp_path / "file"
    if not is_new and writer == "folder":
        _files.write_folder(path, {"one": b"old"})
    elif not is_new:
        path.write_bytes(b"old")
    elif (function, at) == ("replace", 1):
        pytest.skip("a new folder takes one step")
    before = contents(tmp_path)
    failing = Failing(getattr(os, function), at, error)
    monkeypatch.setattr(_files.os, function, failing)
    with pytest.raises((FileError, KeyboardInterrupt)) as caught:
        WRITERS[writer](path)
    monkeypatch.undo()
    assert failing.left < 0
    if error is FULL:
        said = re.sub(r" The disk of \S+ has [\d,.]+ MB left\.", "", str(caught.value))
        assert said == (
            f"Could not write {path}: No space left on device. Free some space and run the same "
            "command again."
        )
    assert contents(tmp_path) == before
    assert len(os.listdir(tmp_path)) == (0 if is_new else 1)


def test_an_error_in_a_callback_is_passed_on_and_leaves_what_was_there(tmp_path):
    def write(path):
        path.write_text("half a")
        raise DataError("no table")

    (tmp_path / "file").write_text("before")
    with pytest.raises(DataError, match="^no table$"):
        _files.write_whole(tmp_path / "file", write)
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "before"


def test_a_write_that_the_system_cuts_short_changes_nothing(tmp_path):
    (tmp_path / "file").write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(FileError, match="File too large"):
            _files.write_bytes(tmp_path / "file", b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "before"


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_or_folder_in_the_way_is_named_and_stays(tmp_path, writer):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="A file is in the way"):
        WRITERS[writer](tmp_path / "file" / "new")
    way = tmp_path / "file" if writer == "folder" else tmp_path / "folder"
    if writer != "folder":
        (way / "mine").mkdir(parents=True)
    with pytest.raises(FileError, match="is in the way"):
        WRITERS[writer](way)
    assert (tmp_path / "file").read_text() == "mine"
    assert len(os.listdir(tmp_path)) == (1 if writer == "folder" else 2)


def test_denied_permission_is_an_error_with_the_way_out(tmp_path, monkeypatch):
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    monkeypatch.setattr(_files.os, "replace", Failing(os.replace, 0, error))
    with pytest.raises(FileError, match=r"Permission denied\. Choose a folder that you may"):
        _files.write_bytes(tmp_path / "file", b"new")


@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_a_kill_while_a_folder_is_replaced_leaves_the_old_or_the_new(tmp_path, place):
    """A process ends at one of the two renames without any clean-up."""
    folder = tmp_path / "model"
    _files.write_folder(folder, {"one": b"old"})
    code = f"""
import os, sys, pathlib
from regaug import _files
real, calls = os.replace, []
def replace(*names):
    calls.append(names)
    if {place!r} == "before" or ({place!r} == "between" and len(calls) == 2):
        os._exit(7)
    real(*names)
    if len(calls) == 2:
        os._exit(7)
_files.os.replace = replace
_files.write_folder(pathlib.Path(sys.argv[1]), {{"one": b"new"}})
"""
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert done.returncode == 7
    found = _files.find_folder(folder)
    assert (found / "one").read_bytes() == (b"new" if place == "after" else b"old")
    _files.write_folder(folder, {"one": b"newest"})
    assert (_files.find_folder(folder) / "one").read_bytes() == b"newest"
    assert folder.exists()
    assert not (tmp_path / "model.previous").exists()


def test_leftovers_of_these_names_and_of_this_age_are_removed(tmp_path):
    for name in (".a.dat.1.tmp", ".a.dat.2.tmp", ".b.dat.1.tmp", "a.dat", ".mine.tmp"):
        (tmp_path / name).write_text("half of")
    (tmp_path / ".a.dat.3.tmp").mkdir()
    for name in (".a.dat.1.tmp", ".a.dat.3.tmp", ".b.dat.1.tmp"):
        os.utime(tmp_path / name, (1e9, 1e9))
    _files.remove_leftovers(tmp_path, "a.dat", age=1e6)
    left = [".a.dat.2.tmp", ".b.dat.1.tmp", ".mine.tmp", "a.dat"]
    assert sorted(os.listdir(tmp_path)) == left
    _files.remove_leftovers(tmp_path / "nowhere", "*")
    _files.remove_leftovers(tmp_path, "*.dat")
    assert sorted(os.listdir(tmp_path)) == [".mine.tmp", "a.dat"]


def test_a_writer_removes_what_was_left_of_its_own_file_a_day_ago(tmp_path):
    for name in (".a[1].1.tmp", ".a[1].2.tmp", ".a1.1.tmp"):
        (tmp_path / name).write_text("half of")
    for name in (".a[1].1.tmp", ".a1.1.tmp"):
        os.utime(tmp_path / name, (1e9, 1e9))
    _files.write_bytes(tmp_path / "a[1]", b"new")
    assert sorted(os.listdir(tmp_path)) == [".a1.1.tmp", ".a[1].2.tmp", "a[1]"]


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
def test_the_first_to_create_a_file_decides(tmp_path, monkeypatch, has_links):
    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if not has_links:
        monkeypatch.setattr(_files.os, "link", refuse)
    _files.create_whole(tmp_path / "study", b"first")
    _files.create_whole(tmp_path / "study", b"second")
    assert os.listdir(tmp_path) == ["study"]
    assert (tmp_path / "study").read_bytes() == b"first"


def test_what_does_not_reach_the_disk_is_not_appended(tmp_path, monkeypatch):
    monkeypatch.setattr(_files.os, "fsync", Failing(os.fsync, 0, FULL))
    with pytest.raises(OSError, match="No space"):
        _files.append(tmp_path / "new", b"one\n")
    assert os.listdir(tmp_path) == []
    _files.append(tmp_path / "new", b"one\n")
    monkeypatch.setattr(_files.os, "fsync", Failing(os.fsync, 0, FULL))
    with pytest.raises(OSError, match="No space"):
        _files.append(tmp_path / "new", b"two\n")
    _files.append(tmp_path / "new", b"three\n")
    assert (tmp_path / "new").read_bytes() == b"one\nthree\n"


# JSON.


@pytest.mark.parametrize("value", [{"a": [1, None, "ö"]}, [1.5], {"nan": math.inf}])
def test_json_comes_back(tmp_path, value):
    _files.write_json(tmp_path / "file.json", value, indent=1)
    assert _files.read_json(tmp_path / "file.json", type(value)) == value


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b"[1]", b"null", b"7"])
def test_what_is_no_json_object_is_an_error_that_names_the_file(tmp_path, text):
    (tmp_path / "file.json").write_bytes(text)
    with pytest.raises(FileError, match=r"file\.json: it (is not a complete|must hold)"):
        _files.read_json(tmp_path / "file.json", dict)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match="nowhere: No such file"):
        _files.read_json(tmp_path / "nowhere", dict)
    with pytest.raises(FileError, match="nowhere: No such file"):
        read_state(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("kind", "value"),
    [(int, True), (int, 1.0), (float, 1), (str, None), (dict, []), (bool, 1), (Tensor, [1.0])],
)
def test_an_entry_of_another_type_is_named(kind, value):
    with pytest.raises(DataError, match="`rate` must be of type"):
        _files.entry({"rate": value}, "rate", kind)
    with pytest.raises(DataError, match="`rate` is missing"):
        _files.entry({}, "rate", kind)


def test_a_file_is_removed_if_it_holds_what_was_expected(tmp_path):
    file = tmp_path / "claim"
    assert _files.remove_exactly(file, b"mine")  # it is gone already
    file.write_bytes(b"another's")
    assert not _files.remove_exactly(file, b"mine")
    assert file.read_bytes() == b"another's"
    assert _files.remove_exactly(file, b"another's")
    assert list(tmp_path.iterdir()) == []


def test_the_time_since_a_file_was_written_is_that_of_its_disk(tmp_path):
    file = tmp_path / "claim"
    assert _files.seconds_unchanged(file) == math.inf
    file.touch()
    assert _files.seconds_unchanged(file) < 60
    os.utime(file, (0, 0))
    assert _files.seconds_unchanged(file) > 1e9
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_on_the_disk_before_its_writer_goes_on_if_that_is_wanted(
    tmp_path, monkeypatch, sync
):
    synced = []
    real = os.fsync
    monkeypatch.setattr(_files.os, "fsync", lambda number: synced.append(number) or real(number))
    _files.write_bytes(tmp_path / "whole", b"a", sync=sync)
    _files.create_whole(tmp_path / "new", b"a", sync=sync)
    assert bool(synced) == sync
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "new").read_bytes() == b"a"


def test_every_changed_byte_breaks_the_seal():
    line = _files.seal({"key": "a", "values": [0.5, None]})
    assert json.loads(line)["values"] == [0.5, None]
    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        assert not _files.is_sealed(bytes(changed))


def test_importing_files_does_not_import_safetensors():
    code = "import sys, regaug._files, regaug._tensors; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_no_other_module_writes_files_or_opens_json():
    mark = re.compile(
        r"os\.(replace|rename|link|fsync)|\.write_(text|bytes)\(|NamedTemporaryFile|json\.load\(|"
        r"json\.loads\([^)]*read_|open\([^)]*[\"'][wax]b?[\"']"
    )
    root = Path(_files.__file__).parent
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if mark.search(line) and not re.match(r" *(>>>|\.\.\.) ", line)
    ]
    others = [line for line in found if not line.startswith("_files.py")]
    # What comes from the network, and a table piece by piece, go to the name that the one writer
    # gives.
    named = ["data/datasets/download.py", "data/tabular/writer.py"]
    assert [line.split(":")[0] for line in others] == named
    assert len(found) > 5
