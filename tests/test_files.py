"""Files: whole or as before, whatever breaks; states come back, and damage is found."""

import errno
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regaug import _files, _random
from regaug._files import read_state, write_state
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    FileError,
)

DTYPES = sorted(_files.DTYPES, key=str)
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
        assert str(caught.value) == (
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


def test_every_changed_byte_breaks_the_seal():
    line = _files.seal({"key": "a", "values": [0.5, None]})
    assert json.loads(line)["values"] == [0.5, None]
    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        assert not _files.is_sealed(bytes(changed))


# States.


def same(a, b):
    """Equal in value, type and order, NaN and the sign of zero included."""
    if isinstance(a, Tensor):
        if not isinstance(b, Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        raw_a, raw_b = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b))
        return torch.equal(raw_a, raw_b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items(), strict=False)
        return len(a) == len(b) and all(same(x, y) for x, y in pairs)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=False))
    if isinstance(a, float):
        return repr(a) == repr(b)
    return a == b


def round_trip(state):
    with tempfile.TemporaryDirectory() as parent:
        write_state(Path(parent, "saved"), state)
        return read_state(Path(parent, "saved"))


def metadata(path):
    with safe_open(path, framework="pt") as file:
        return file.metadata()["regaug"]


def make_tensor(shape, dtype, seed):
    values = torch.randn(shape, generator=_random.make_generator(seed)) * 100
    return values.to(dtype)


tensors = st.builds(
    make_tensor,
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(DTYPES),
    st.integers(0, 99),
)
# Keys and strings that look like the format's own marks, and half of a surrogate pair.
ugly = st.sampled_from(["$tensor", "$dict", "$float", "#0", "__metadata__", "", "a.b", "\ud800"])
strings = st.text(max_size=5) | ugly
scalars = st.none() | st.booleans() | st.integers() | st.floats() | strings
keys = strings | st.integers() | st.floats(allow_nan=False) | st.none()
values = st.recursive(
    scalars | tensors,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(strings, values, max_size=5))
def test_any_state_comes_back_as_it_was(state):
    assert same(round_trip(state), state)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e16, 1.0])
def test_every_float_comes_back_from_valid_json(tmp_path, number):
    def refuse(constant):
        raise AssertionError(constant)

    write_state(tmp_path / "saved", {"number": number, number: 1})
    assert same(read_state(tmp_path / "saved"), {"number": number, number: 1})
    json.loads(metadata(tmp_path / "saved"), parse_constant=refuse)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 2)])
def test_every_dtype_and_shape_comes_back(dtype, shape):
    state = {"tensor": make_tensor(shape, dtype, seed=1)}
    assert same(round_trip(state), state)


def test_views_come_back_with_memory_of_their_own():
    base = torch.arange(12.0).reshape(3, 4)
    negated = torch._neg_view(base)  # its memory holds the opposite sign
    state = {"whole": base, "same": base, "turned": base.T, "column": base[:, 1], "neg": negated}
    state["expanded"] = torch.ones(1, 3).expand(2, 3)
    state["weight"] = nn.Parameter(base)
    back = round_trip(state)
    assert same(back, state | {"neg": -base})
    assert type(back["weight"]) is Tensor
    pointers = {tensor.untyped_storage().data_ptr() for tensor in back.values()}
    assert len(pointers) == len(back)
    back["whole"].zero_()
    assert base.sum() == 66


def test_names_that_safetensors_or_the_format_reserve_come_back():
    ones = torch.ones(2)
    state = {"a": {"b": ones}, "a.b": 2 * ones, "#1": 3 * ones, "#0": 4 * ones}
    state |= {"__metadata__": 5 * ones, "\n": 6 * ones, "#3": 7 * ones}
    assert same(round_trip(state), state)
    assert same(round_trip({"#1": ones, "\n": 2 * ones}), {"#1": ones, "\n": 2 * ones})


def test_subclasses_come_back_as_what_they_derive_from():
    back = round_trip({"ordered": OrderedDict(a=np.float64(0.5)), "size": torch.Size([2])})
    assert same(back, {"ordered": {"a": 0.5}, "size": (2,)})


def test_other_programs_find_the_tensors_by_their_names(tmp_path):
    state = {str(dtype): make_tensor((3,), dtype, seed=2) for dtype in reversed(DTYPES)}
    state |= {"Größe 😀": torch.ones(1), "empty": torch.ones(0, 2), "net": {"bias": torch.ones(())}}
    write_state(tmp_path / "saved", state)
    found = load_file(tmp_path / "saved")
    expected = state | {"net.bias": state["net"]["bias"]}
    del expected["net"]
    assert found.keys() == expected.keys()
    content = (tmp_path / "saved").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    del header["__metadata__"]
    for name, entry in header.items():  # who reads numbers in place needs them aligned
        assert entry["data_offsets"][0] % found[name].itemsize == 0
    assert all(same(found[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize(
    ("value", "kind"),
    [({1, 2}, "set"), (np.float32(1), "float32"), (np.zeros(2), "ndarray"), (1j, "complex")],
)
def test_what_cannot_be_saved_is_named_with_its_place(tmp_path, value, kind):
    state = {"optimizer": {"state": {0: {"foo": [1, value]}}}}
    with pytest.raises(ArgumentTypeError, match=rf"{kind} at optimizer\.state\.0\.foo\.1\."):
        write_state(tmp_path / "saved", state)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(2, dtype=torch.complex128),
        torch.eye(2).to_sparse(),
        torch.ones(1, device="meta"),
    ],
    ids=["complex", "sparse", "meta"],
)
def test_tensors_that_cannot_be_saved_are_named_with_their_place(tmp_path, tensor):
    with pytest.raises(ArgumentTypeError, match=r"at net\.weight\."):
        write_state(tmp_path / "saved", {"net": {"weight": tensor}})


def test_a_key_that_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"as keys, got \(1, 2\) in a\.b\."):
        write_state(tmp_path / "saved", {"a": {"b": {(1, 2): 0}}})


def test_a_state_that_is_no_dict_or_contains_itself_is_refused(tmp_path):
    with pytest.raises(ArgumentTypeError, match="must be a dict"):
        write_state(tmp_path / "saved", [1, 2])
    state = {}
    state["itself"] = state
    with pytest.raises(ArgumentError, match="must not contain itself"):
        write_state(tmp_path / "saved", state)


STATE = {"epoch": 6, "rate": 0.125, "net": {"weight": torch.arange(64.0)}, "ids": {3: (1, 2)}}


@pytest.fixture
def saved(tmp_path):
    write_state(tmp_path / "saved", STATE)
    return tmp_path / "saved"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_found(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileError, match=r"Cannot use .*saved: .* damaged\."):
        read_state(saved)


def test_a_flipped_bit_is_found_wherever_it_is(saved):
    content, found = saved.read_bytes(), 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 7
        saved.write_bytes(damaged)
        try:
            back = read_state(saved)
        except FileError:
            found += 1
        else:
            assert same(back, STATE)  # a space may become a tab
    assert found >= 0.99 * len(content)


def test_a_file_of_other_programs_is_refused(tmp_path):
    save_file({"weight": torch.ones(2)}, tmp_path / "foreign")
    with pytest.raises(FileError, match="regaug did not write it"):
        read_state(tmp_path / "foreign")
    save_file({"weight": torch.ones(2)}, tmp_path / "foreign", {"regaug": "[]"})
    with pytest.raises(FileError, match="regaug did not write it"):
        read_state(tmp_path / "foreign")


def test_another_format_is_refused_with_the_version_that_wrote_it(saved):
    document = json.loads(metadata(saved)) | {"format": 2, "regaug": "9.8.7"}
    save_file(load_file(saved), saved, {"regaug": json.dumps(document)})
    with pytest.raises(FileError, match=r"format 2, written by regaug 9\.8\.7, .*Use the version"):
        read_state(saved)


def forge(path, tree):
    """Write another tree, with a checksum that fits."""
    path.write_bytes(_files.dump_tensors({"net.weight": torch.ones(2)}, {"state": tree})[0])


def test_a_reference_to_no_tensor_is_named(saved):
    forge(saved, {"net": {"$tensor": "net.bias"}})
    with pytest.raises(FileError, match=r"saved: the tensor 'net\.bias' is missing"):
        read_state(saved)


@pytest.mark.parametrize(
    "tree",
    [
        *([], None, "", {"$tensor": "net.weight"}, {"$tuple": []}),
        *({"a": {"$dict": 5}}, {"a": {"$dict": [[[], 1]]}}, {"a": {"$float": "one"}}),
        *({"a": {"$tensor": []}}, {"a": {"$tuple": 1}}),
    ],
)
def test_a_tree_of_another_form_is_refused(saved, tree):
    forge(saved, tree)
    with pytest.raises(FileError, match="saved: its content does not have the form of a state"):
        read_state(saved)


def test_metadata_without_a_state_are_refused(saved):
    saved.write_bytes(_files.dump_tensors({}, {})[0])
    with pytest.raises(FileError, match="form of a state"):
        read_state(saved)


def test_importing_files_does_not_import_safetensors():
    code = "import sys, regaug._files; print('safetensors' in sys.modules)"
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
    # What comes from the network goes to the name that the one writer gives.
    assert [line.split(":")[0] for line in others] == ["data/datasets/download.py"]
    assert len(found) > 5
