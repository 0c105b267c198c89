"""The store: what was added is there, whoever writes, whatever breaks; studies are not mixed."""

import builtins
import errno
import json
import multiprocessing
import os
import pickle
import random
import resource
import shutil
import subprocess
import sys
import time
from collections import OrderedDict
from contextlib import contextmanager
from io import FileIO
from types import MappingProxyType

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from regaug.exceptions import ArgumentError, ArgumentTypeError, StoreError
from regaug.runs.store import Store, StoredRun, run_key
from regaug.studies import store as module

STUDY = {"data": "houses.csv", "methods": ["erm", "foma"], "trials": 20, "rate": 1.0}
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
# A server that has imported the store and nothing of the tests, from which processes are forked.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["regaug.runs.store"])

keys = st.text(max_size=5) | st.sampled_from(["$float", "$", "$$float", "$100"])
finite = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
finite = finite.filter(lambda value: value not in (float("inf"), -float("inf")))


def nested(leaves):
    values = st.recursive(leaves, lambda v: st.lists(v) | st.dictionaries(keys, v), max_leaves=6)
    return st.dictionaries(keys, values)


def start(code, **names):
    """Run code in a process of its own; these names are there."""
    process = SERVER.Process(target=exec, args=(code, names))
    process.start()
    return process


def fill(store, n):
    for i in range(n):
        store.add(f"key-{i}", {"i": i}, {"rmse": i / 7})


def run_files(folder):
    return sorted(folder.glob("runs-*.jsonl"))


# Keys


def turned_over(value):
    """The same with the entries of all dicts in the opposite order, and tuples for lists."""
    if isinstance(value, dict):
        return {key: turned_over(value[key]) for key in reversed(value)}
    return tuple(map(turned_over, value)) if isinstance(value, list) else value


@given(nested(finite))
def test_the_key_does_not_depend_on_the_order_nor_on_tuples(configuration):
    assert run_key(turned_over(configuration)) == run_key(configuration)
    assert run_key(OrderedDict(configuration)) == run_key(MappingProxyType(configuration))
    assert run_key(json.loads(json.dumps(configuration))) == run_key(configuration)
    assert len(run_key(configuration)) == 32


def test_equal_numbers_have_the_same_key():
    assert run_key({"a": 1}) == run_key({"a": 1.0}) == run_key({"a": np.float64(1)})
    assert run_key({"a": 10**22}) == run_key({"a": 1e22})
    assert run_key({"a": 0.0}) == run_key({"a": -0.0})


def test_different_configurations_have_different_keys():
    values = [1, 2, 1.5, True, False, None, "1", "", "None", [], {}, [1], [[1]], {"b": 1}, [1, 2]]
    configurations = [{}, *({"a": value} for value in values), {"b": 1}, {"$a": 1}, {"$$a": 1}]
    assert len({run_key(configuration) for configuration in configurations}) == len(configurations)


def test_the_key_is_the_same_in_a_process_with_another_hash_seed():
    configuration = {"method": "foma", "names": ["\u00e4", "b"], "settings": {"rho": 0.1, "k": 3}}
    code = f"from regaug.runs.store import run_key; print(run_key({configuration!r}))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == run_key(configuration) == "88ba804a78f83c132bbca4d195f4a987"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_key_needs_finite_numbers(tmp_path, number):
    configuration = {"settings": {"rho": [0.5, number]}}
    message = r"`configuration`\['settings'\]\['rho'\]\[1\] must be finite, got"
    with pytest.raises(ArgumentError, match=message):
        run_key(configuration)
    with pytest.raises(ArgumentError, match=message):
        Store(tmp_path / "new", configuration)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("value", [torch.ones(1), np.ones(1), np.int64(1), {1}, b"1", object()])
def test_what_json_does_not_have_is_refused_with_its_place(tmp_path, value):
    with pytest.raises(ArgumentTypeError, match=r"`configuration`\['a'\] must be a number"):
        run_key({"a": value})
    with pytest.raises(ArgumentTypeError, match=r"`result`\['a'\]\[0\] must be a number"):
        Store(tmp_path, {}).add("key", {}, {"a": [value]})
    assert run_files(tmp_path) == []


def test_keys_of_dicts_are_strings_and_nothing_contains_itself():
    with pytest.raises(ArgumentTypeError, match=r"`configuration`\['a'\] must have strings .* 1\."):
        run_key({"a": {1: 2}})
    with pytest.raises(ArgumentTypeError, match="`configuration` must be a dict, got list"):
        run_key([1])
    endless = {}
    endless["a"] = endless
    with pytest.raises(ArgumentError, match="must not contain itself"):
        run_key(endless)


def test_the_key_of_a_run_is_a_string(tmp_path):
    with pytest.raises(ArgumentTypeError, match="`key` must be a string, got 7"):
        Store(tmp_path, {}).add(7, {}, {})


# Round trips


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("shared"), {})


@given(nested(finite | st.floats()), nested(finite | st.floats()))
@example({"a": float("nan")}, {"$float": [float("inf"), -0.0, 5e-324], "b": "\ud800\n\u2028"})
def test_what_is_added_is_read_back(shared, run, result):
    key = f"key-{len(shared.done())}"
    shared.add(key, run, result)
    # As text, for which NaN is equal to NaN and 1 is not equal to 1.0.
    assert repr(shared.results()[key]) == repr(StoredRun(key, run, result))
    assert repr(Store.open(shared.folder).results()[key]) == repr(StoredRun(key, run, result))
    assert shared.damaged == []


@given(nested(finite))
def test_a_study_is_opened_again_with_the_same_configuration(tmp_path_factory, configuration):
    folder = tmp_path_factory.mktemp("study")
    Store(folder, configuration)
    again = Store(folder, turned_over(configuration))
    assert repr(again.configuration) == repr(configuration)
    assert repr(Store.open(folder).configuration) == repr(configuration)
    assert os.listdir(folder) == ["study.json"]


def test_every_line_is_plain_json(tmp_path):
    store = Store(tmp_path, STUDY)
    store.add("key", {"a": (1, 2)}, {"nan": float("nan"), "text": "\u00e4\n"})
    (line,) = run_files(tmp_path)[0].read_text("ascii").splitlines()

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    values = json.loads(line, parse_constant=refuse)
    assert {**values, "crc32": None} == {
        "format": 1,
        "key": "key",
        "run": {"a": [1, 2]},
        "result": {"nan": {"$float": "nan"}, "text": "\u00e4\n"},
        "crc32": None,
    }


def test_only_what_is_new_is_read(tmp_path, monkeypatch):
    store, other = Store(tmp_path, STUDY), Store(tmp_path, STUDY)
    fill(other, 5)
    assert len(store.results()) == 5
    seen = []
    real = module._parse
    monkeypatch.setattr(module, "_parse", lambda line: seen.append(line) or real(line))
    other.add("new", {}, {})
    assert len(store.results()) == len(store.done()) == 6
    assert len(seen) == 1


def write_runs(folder, name, *pairs):
    """Write lines as another process would have, to a file of this name."""
    scratch = Store(folder.parent / f"scratch-{random.random()}", STUDY)
    for key, value in pairs:
        scratch.add(key, {}, {"value": value})
    run_files(scratch.folder)[0].rename(folder / name)


def test_of_runs_with_one_key_the_first_by_file_and_line_counts(tmp_path):
    folder = tmp_path / "runs"
    store = Store(folder, STUDY)
    write_runs(folder, "runs-b.jsonl", ("one", 1), ("two", 2), ("one", 3))
    assert {key: run.result["value"] for key, run in store.results().items()} == {
        "one": 1,
        "two": 2,
    }
    # A file that comes first by its name is found later: the order is the same as if read anew.
    write_runs(folder, "runs-a.jsonl", ("two", 4))
    assert store.results() == Store.open(folder).results()
    assert list(store.results().items()) == list(Store.open(folder).results().items())
    assert store.results()["two"].result == {"value": 4}
    assert store.damaged == []


# Several processes

WRITE = """
import os
from regaug.runs.store import Store, run_key
store = store or Store(folder, {"seed": 0})
barrier.wait(60)
for i in range(200):
    run = {"who": who, "i": i}
    store.add(run_key(run), run, {"values": [i / 7] * 50})
    if i % 20 == 0:
        assert len(store.done()) > i
        assert all("is cut" in place for place in store.damaged)
"""


@pytest.mark.parametrize("is_sent", [False, True], ids=["own store", "sent store"])
def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path, is_sent):
    sent = Store(tmp_path, {"seed": 0}) if is_sent else None
    if sent:
        sent.add("mine", {"who": 2, "i": 0}, {})  # so that it has a file, which is not to be shared
    barrier = SERVER.Barrier(2)
    names = {"folder": str(tmp_path), "store": sent, "barrier": barrier}
    processes = [start(WRITE, who=who, **names) for who in (0, 1)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    store = Store(tmp_path, {"seed": 0})
    found = sorted((run.run["who"], run.run["i"]) for run in store.results().values())
    assert found == [(w, i) for w in (0, 1) for i in range(200)] + [(2, 0)] * is_sent
    assert store.damaged == []
    assert len(run_files(tmp_path)) == 2 + is_sent
    lines = sum(len(file.read_bytes().splitlines()) for file in run_files(tmp_path))
    assert lines == len(found)


CREATE = """
import errno, os
from regaug.exceptions import StoreError
from regaug.runs.store import Store

def refuse(*_):
    raise PermissionError(errno.EPERM, "no links here")

if not has_links:
    os.link = refuse
for trial in range(60):
    barrier.wait(60)
    try:
        Store(f"{folder}/{trial}", {"who": who, "same": 0})
        said.send("won")
    except StoreError as error:
        said.send(str(error))
"""


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
def test_of_two_creators_exactly_one_wins(tmp_path, has_links):
    barrier, pipes = SERVER.Barrier(2), [SERVER.Pipe() for _ in range(2)]
    names = {"barrier": barrier, "folder": str(tmp_path), "has_links": has_links}
    processes = [start(CREATE, who=w, said=pipes[w][1], **names) for w in (0, 1)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    for trial in range(60):
        said = [pipe[0].recv() for pipe in pipes]
        winner = said.index("won")
        assert f"another study: who was {winner} and is {1 - winner}. " in said[1 - winner]
        assert Store.open(tmp_path / str(trial)).configuration == {"who": winner, "same": 0}
        assert os.listdir(tmp_path / str(trial)) == ["study.json"]


@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
def test_a_study_that_appears_in_the_last_moment_is_not_replaced(tmp_path, monkeypatch, has_links):
    Store(tmp_path / "first", {"who": 0})
    real = os.link

    def come_first(source, target):
        shutil.copy(tmp_path / "first" / "study.json", target)
        if not has_links:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        real(source, target)

    monkeypatch.setattr(os, "link", come_first)
    with pytest.raises(StoreError, match="another study: who was 0 and is 1"):
        Store(tmp_path / "second", {"who": 1})
    assert os.listdir(tmp_path / "second") == ["study.json"]
    assert Store.open(tmp_path / "second").configuration == {"who": 0}


ADD_FOREVER = """
from regaug.runs.store import Store
store, i = Store(folder, {"seed": 0}), 0
while True:
    key = f"{turn}-{i}"
    store.add(key, {"turn": turn}, {"values": [i / 7] * 1000})
    said.send(key)
    i += 1
"""


def test_twenty_kills_at_random_moments_lose_no_announced_run(tmp_path):
    moments, announced = random.Random(0), []
    for turn in range(20):
        listen, said = SERVER.Pipe(duplex=False)
        process = start(ADD_FOREVER, folder=str(tmp_path), turn=turn, said=said)
        said.close()
        announced.append(listen.recv())
        time.sleep(moments.uniform(0.0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -9
        while True:
            try:
                announced.append(listen.recv())
            except (EOFError, OSError):
                break
        listen.close()
    store = Store(tmp_path, {"seed": 0})
    done = store.done()
    assert len(set(announced)) == len(announced)
    assert set(announced) <= done
    assert len(done) <= len(announced) + 20  # the run under way may have been written
    assert all("is cut; its run is done again" in place for place in store.damaged)
    assert len(run_files(tmp_path)) == 20


# Damage


def test_a_cut_last_line_is_reported_wherever_it_was_cut(tmp_path):
    fill(Store(tmp_path, STUDY), 3)
    (file,) = run_files(tmp_path)
    content = file.read_bytes()
    begin = content[:-1].rindex(b"\n") + 1
    for end in range(begin + 1, len(content)):
        file.write_bytes(content[:end])
        store = Store(tmp_path, STUDY)
        assert store.done() == {"key-0", "key-1"}
        assert store.damaged == [f"{file.name}, line 3 is cut; its run is done again"]
    file.write_bytes(content[:begin])
    assert store.done() == {"key-0", "key-1"}
    assert store.damaged == []


def test_the_run_of_a_cut_line_is_done_again(tmp_path):
    fill(Store(tmp_path, STUDY), 3)
    (file,) = run_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-9])
    store = Store(tmp_path, STUDY)
    store.add("key-2", {"i": 2}, {"rmse": 2 / 7})
    assert store.done() == {"key-0", "key-1", "key-2"}
    assert len(run_files(tmp_path)) == 2


def test_a_line_that_is_still_being_written_is_found_when_it_is_complete(tmp_path):
    fill(Store(tmp_path, STUDY), 2)
    (file,) = run_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:-30])
    store = Store(tmp_path, STUDY)
    assert store.done() == {"key-0"}
    assert len(store.damaged) == 1
    with file.open("ab") as rest:
        rest.write(content[-30:])
    assert store.done() == {"key-0", "key-1"}
    assert store.damaged == []


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A store with three runs, its file, and the content of that."""
    store = Store(tmp_path_factory.mktemp("three"), STUDY)
    fill(store, 3)
    (file,) = run_files(store.folder)
    return store.results(), file, file.read_bytes()


@given(st.data())
def test_a_changed_byte_never_gives_another_result(three, data):
    runs, file, content = three
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.sampled_from(b'\n\r 0123456789",}\x00\xff') | st.integers(0, 255))
    file.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
    store = Store.open(file.parent)
    found = store.results()
    assert found.items() <= runs.items()
    is_changed = byte != content[at]
    assert (len(found) < 3) == bool(store.damaged) == is_changed


@given(st.binary(max_size=200))
@example(b"\n\n")
@example(b"[" * 100_000 + b"\n")
@example(b'{"format":1}\n')
@example(b'{"format":1,"key":1,"run":1,"result":1,"crc32":1}\n')
@example(b"1\nnull\n[]\n")
def test_noise_is_reported_and_hides_no_run(three, noise):
    runs, file, content = three
    file.write_bytes(content + noise)
    store = Store.open(file.parent)
    assert store.results() == runs
    assert len(store.damaged) == len(noise.split(b"\n")) - noise.endswith(b"\n") - (not noise)


def test_an_empty_file_is_no_damage(tmp_path):
    store = Store(tmp_path, STUDY)
    (tmp_path / "runs-killed-1-0.jsonl").touch()
    assert store.results() == {}
    assert store.damaged == []


def test_a_line_of_another_version_is_reported_and_left_out(tmp_path, monkeypatch):
    store = Store(tmp_path, STUDY)
    store.add("now", {}, {})
    monkeypatch.setattr(module, "FORMAT", 2)
    store.add("later", {}, {})
    monkeypatch.undo()
    assert store.done() == {"now"}
    assert store.damaged == [
        f"{run_files(tmp_path)[0].name}, line 2 is of format 2, which another version of regaug "
        "wrote; its run is done again"
    ]


# Which study


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 30}, "trials was 20 and is 30"),
        ({"methods": ["erm", "ada"]}, 'methods.1 was "foma" and is "ada"'),
        ({"methods": ["erm"]}, 'methods.1 was "foma" and is not set'),
        ({"rate": True}, "rate was 1 and is true"),
        ({"net": {"width": 8}}, 'net was not set and is {"width":8}'),
        ({"data": "x" * 99}, f'data was "houses.csv" and is "{"x" * 59}'),
        ({"methods": {}}, 'methods was ["erm","foma"] and is {}'),
    ],
)
def test_another_study_is_refused_with_what_differs(tmp_path, change, message):
    fill(Store(tmp_path, STUDY), 1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(StoreError) as caught:
        Store(tmp_path, STUDY | change)
    assert str(caught.value) == (
        f"The store {tmp_path} belongs to another study: {message}. Give another folder (--out), "
        "or delete that one to start anew."
    )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_of_many_differences_the_first_are_listed(tmp_path):
    Store(tmp_path, {"a": {"b": list(range(9))}})
    with pytest.raises(StoreError, match=r"study: a\.b\.0 was 0 and is 9; .*\.3 .*; and 5 more\."):
        Store(tmp_path, {"a": {"b": [9] * 9}})


def test_a_folder_that_has_other_files_can_be_used(tmp_path):
    (tmp_path / "report.html").touch()
    fill(Store(tmp_path, STUDY), 1)
    assert Store.open(tmp_path).done() == {"key-0"}


def test_runs_without_a_study_are_not_adopted(tmp_path):
    fill(Store(tmp_path, STUDY), 1)
    (tmp_path / "study.json").unlink()
    with pytest.raises(StoreError, match=r"holds runs \(runs-.*jsonl\) .* study.json is missing"):
        Store(tmp_path, STUDY)


def test_open_wants_a_study(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match="There is no study in .* study.json is missing"):
            Store.open(folder)
    assert os.listdir(tmp_path) == []


def changed(document):
    document["configuration"]["trials"] = 21


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff}\n",
        b"[]\n",
        b"{}\n",
        b'{"format":1,"configuration":3,"key":""}\n',
        changed,
    ],
    ids=str,
)
def test_a_damaged_study_file_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    Store(tmp_path, STUDY)
    file = tmp_path / "study.json"
    if content is changed:
        document = json.loads(file.read_text())
        changed(document)
        content = json.dumps(document).encode() + b"\n"
    file.write_bytes(content)
    for attempt in (lambda: Store.open(tmp_path), lambda: Store(tmp_path, STUDY)):
        with pytest.raises(StoreError, match=r"study.json is damaged\. Give another folder"):
            attempt()
    assert file.read_bytes() == content


def test_a_study_of_another_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FORMAT", 2)
    Store(tmp_path, STUDY)
    monkeypatch.undo()
    with pytest.raises(StoreError, match=r"has format 2, written by regaug .* reads format 1\."):
        Store(tmp_path, STUDY)


# Disks


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("text")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match="Could not write to .* A file is in the way"):
            Store(folder, STUDY)
    with pytest.raises(StoreError, match="There is no study"):
        Store.open(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_an_error(tmp_path):
    store = Store(tmp_path / "old", STUDY)
    (tmp_path / "new").mkdir()
    for folder in ("old", "new"):
        (tmp_path / folder).chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied. Choose a folder that you may write"):
        Store(tmp_path / "new", STUDY)
    with pytest.raises(StoreError, match="Permission denied. Choose a folder that you may write"):
        fill(store, 1)
    assert Store.open(tmp_path / "old").results() == {}
    for folder in ("old", "new"):
        (tmp_path / folder).chmod(0o700)


def test_a_disk_that_is_read_only_can_still_be_read(tmp_path, monkeypatch):
    fill(Store(tmp_path / "old", STUDY), 2)

    def read_only(path, mode="r", *args, **kwargs):
        if mode != "rb":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return builtins.open(path, mode, *args, **kwargs)

    monkeypatch.setattr(module, "open", read_only, raising=False)
    message = "Could not write to the store .*: Read-only file system. Choose a folder that you may"
    with pytest.raises(StoreError, match=message):
        Store(tmp_path / "new", STUDY)
    assert os.listdir(tmp_path / "new") == []
    store = Store(tmp_path / "old", STUDY)
    with pytest.raises(StoreError, match=message):
        fill(store, 1)
    assert len(store.results()) == 2


def test_a_disk_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    store = Store(tmp_path, STUDY)
    fill(store, 1)

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module, "open", fail, raising=False)
    with pytest.raises(StoreError, match="Could not read the store .*: Input/output error. Run"):
        store.results()


@contextmanager
def files_of_at_most(size):
    """Set the largest size of a file, as a full disk would.

    It ends before the test does, because the tests' own output may go to a file that is larger.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_line_that_the_disk_takes_in_part_is_taken_back(tmp_path):
    store = Store(tmp_path, STUDY)
    fill(store, 3)
    (file,) = run_files(tmp_path)
    content = file.read_bytes()
    for _ in range(2):  # the second time the first line of a file
        with (
            files_of_at_most(len(content) + 20),
            pytest.raises(StoreError, match=r"Could not write to the store .*: File too large\."),
        ):
            store.add("next", {}, {"long": "x" * 1000})
        assert run_files(tmp_path) == [file]
        assert file.read_bytes() == content
    assert Store(tmp_path, STUDY).done() == {"key-0", "key-1", "key-2"}
    assert store.damaged == []


def test_the_next_line_after_a_cut_one_is_not_lost_with_it(tmp_path, monkeypatch):
    store = Store(tmp_path, STUDY)
    fill(store, 3)
    size = run_files(tmp_path)[0].stat().st_size

    class Stubborn(FileIO):
        def truncate(self, size=None):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module, "open", lambda path, mode, **_: Stubborn(path, mode), raising=False)
    with files_of_at_most(size + 20), pytest.raises(StoreError, match="File too large"):
        store.add("cut", {}, {"long": "x" * 1000})
    monkeypatch.undo()
    assert run_files(tmp_path)[0].stat().st_size == size + 20
    store.add("next", {}, {})
    assert store.done() == {"key-0", "key-1", "key-2", "next"}
    assert [place.split(", ")[1] for place in store.damaged] == [
        "line 4 is cut; its run is done again"
    ]


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_line_that_does_not_reach_the_disk_is_taken_back(tmp_path, monkeypatch, error):
    store = Store(tmp_path, STUDY)
    fill(store, 2)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(_):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught:
        store.add("next", {}, {})
    if error is FULL:
        assert str(caught.value) == (
            f"Could not write to the store {tmp_path}: No space left on device. Free some space "
            "and run the same command again."
        )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises((StoreError, KeyboardInterrupt)):
        Store(tmp_path / "new", STUDY)
    assert os.listdir(tmp_path / "new") == []
    monkeypatch.undo()
    fill(store, 3)
    assert store.done() == {"key-0", "key-1", "key-2"}


def test_a_full_disk_leaves_no_study_file_where_there_are_no_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    Store(tmp_path / "good", STUDY)
    assert Store.open(tmp_path / "good").configuration == STUDY
    with files_of_at_most(20), pytest.raises(StoreError, match="File too large"):
        Store(tmp_path / "full", STUDY)
    assert os.listdir(tmp_path / "full") == []


def test_a_copy_of_a_store_in_memory_keeps_its_runs(tmp_path):
    store = Store(tmp_path, STUDY)
    fill(store, 2)
    copy = pickle.loads(pickle.dumps(store))
    copy.add("more", {}, {})
    assert copy.done() == store.done() == {"key-0", "key-1", "more"}
