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
import time
import zlib
from contextlib import contextmanager
from io import FileIO

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from regaug import _files
from regaug.exceptions import ArgumentError, ArgumentTypeError, StoreError
from regaug.metrics import Scores
from regaug.runs import store as module
from regaug.runs.record import RunRecord, Sample
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.training.settings import Settings

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


def make_record(i, who="ridge", *, value=None, length=1):
    """A record of run number ``i``, as long as wanted."""
    scores = {"test": Scores(9, i / 7 if value is None else value, 0.5, None, 0, 0.25, None)}
    run, made_by = Run("houses", who, i, 0), {"text": "x" * length}
    return RunRecord(run, scores, "finished", 0, 0, 0.5, (6, 2, 2), made_by)


def key_of(i, who="ridge"):
    return make_record(i, who).run.key


KEYS = [key_of(i) for i in range(3)]


def fill(store, n):
    for i in range(n):
        store.add(make_record(i))


def as_text(records):
    """Records by key as text, for which NaN is equal to NaN and 1 is not equal to 1.0."""
    return {key: repr(record) for key, record in records.items()}


def turned_over(value):
    """The same with the entries of all dicts in the opposite order, and tuples for lists."""
    if isinstance(value, dict):
        return {key: turned_over(value[key]) for key in reversed(value)}
    return tuple(map(turned_over, value)) if isinstance(value, list) else value


def run_files(folder):
    return sorted(folder.glob("runs-*.jsonl"))


# Round trips


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("shared"), {})


numbers = st.floats() | st.integers(-9, 9)
scores = st.builds(
    Scores, st.just(9), numbers, numbers, st.none() | numbers, st.just(0), numbers, st.none()
)


@given(st.dictionaries(keys, scores, max_size=2), nested(finite | st.floats()))
@example(
    {"$x": Scores(1, float("nan"), float("inf"), None, 0, -0.0, 5e-324)},
    {"$float": "\ud800\n\u2028"},
)
def test_what_is_added_is_read_back(shared, groups, chosen):
    run = Run("$houses", "foma", len(shared.done()), 0, Settings(method_settings={"k": (1, 2)}), 3)
    by_part = {"$more": Scores(9, 1, 0.5, None, 0, None, None, groups)}
    curves, sample = {"test": [1.0, None]}, Sample([[0.5, None]], [[1, 2.5]])
    record = RunRecord(
        run, by_part, "early", 2, 3, 0.5, (6, 2, 1), {"$": "a"}, chosen, curves, sample
    )
    shared.add(record)
    for store in (shared, Store.open(shared.folder)):
        found = store.records()[run.key]
        assert repr(found) == repr(record)
        assert found.run == run
        assert store.damaged == []


@given(nested(finite))
def test_a_study_is_opened_again_with_the_same_configuration(tmp_path_factory, configuration):
    folder = tmp_path_factory.mktemp("study")
    Store(folder, configuration)
    again = Store(folder, turned_over(configuration))
    assert repr(again.configuration) == repr(configuration)
    assert repr(Store.open(folder).configuration) == repr(configuration)
    assert os.listdir(folder) == ["study.json"]


def test_every_line_is_plain_json(tmp_path):
    record = make_record(0, value=float("nan"), length=0)
    Store(tmp_path, STUDY).add(record)
    (line,) = run_files(tmp_path)[0].read_text("ascii").splitlines()

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    values = json.loads(line, parse_constant=refuse)
    assert values.keys() == {"format", "key", "record", "crc32"}
    assert (values["format"], values["key"]) == (2, record.run.key)
    assert values["record"]["run"] == record.run.to_dict()
    assert values["record"]["scores"]["test"]["rmse"] == {"$float": "nan"}
    assert values["record"]["sizes"] == [6, 2, 2]


@pytest.mark.parametrize("value", [{1}, torch.ones(1)])
def test_what_a_file_cannot_hold_is_refused_with_its_place(tmp_path, value):
    record = make_record(0, value=value)
    message = rf"`record` must .* {type(value).__name__} at scores\.test\.rmse\."
    with pytest.raises(ArgumentTypeError, match=message):
        Store(tmp_path, {}).add(record)
    assert run_files(tmp_path) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_study_needs_finite_numbers(tmp_path, number):
    message = r"`configuration`\['settings'\]\['rho'\]\[1\] must be finite, got"
    with pytest.raises(ArgumentError, match=message):
        Store(tmp_path / "new", {"settings": {"rho": [0.5, number]}})
    assert not (tmp_path / "new").exists()


def test_only_what_is_new_is_read(tmp_path, monkeypatch):
    store, other = Store(tmp_path, STUDY), Store(tmp_path, STUDY)
    fill(other, 5)
    assert len(store.records()) == 5
    seen = []
    real = module._parse
    monkeypatch.setattr(module, "_parse", lambda line: seen.append(line) or real(line))
    other.add(make_record(9))
    assert len(store.records()) == len(store.done()) == 6
    assert len(seen) == 1


def write_runs(folder, name, *pairs):
    """Write lines as another process would have, to a file of this name."""
    scratch = Store(folder.parent / f"scratch-{random.random()}", STUDY)
    for number, value in pairs:
        scratch.add(make_record(number, value=value))
    run_files(scratch.folder)[0].rename(folder / name)


def test_of_runs_with_one_key_the_first_by_file_and_line_counts(tmp_path):
    folder = tmp_path / "runs"
    store = Store(folder, STUDY)
    write_runs(folder, "runs-b.jsonl", (0, 1.0), (1, 2.0), (0, 3.0))

    def values(of):
        return {key: record.score("test", "rmse") for key, record in of.records().items()}

    assert values(store) == {KEYS[0]: 1.0, KEYS[1]: 2.0}
    # A file that comes first by its name is found later: the order is the same as if read anew.
    write_runs(folder, "runs-a.jsonl", (1, 4.0))
    assert list(values(store).items()) == list(values(Store.open(folder)).items())
    assert values(store) == {KEYS[0]: 1.0, KEYS[1]: 4.0}
    assert store.damaged == []


# Several processes

WRITE = """
import os
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
store = store or Store(folder, {"seed": 0})
barrier.wait(60)
for i in range(200):
    run, made_by = Run("houses", str(who), i, 0), {"text": "x" * 900}
    store.add(RunRecord(run, {}, "finished", 0, 0, 0.5, (6, 2, 2), made_by))
    if i % 20 == 0:
        assert len(store.done()) > i
        assert all("is cut" in place for place in store.damaged)
"""


@pytest.mark.serial
@pytest.mark.parametrize("is_sent", [False, True], ids=["own store", "sent store"])
def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path, is_sent):
    sent = Store(tmp_path, {"seed": 0}) if is_sent else None
    if sent:
        sent.add(make_record(0, "2"))  # so that it has a file, which is not to be shared
    barrier = SERVER.Barrier(2)
    names = {"folder": str(tmp_path), "store": sent, "barrier": barrier}
    processes = [start(WRITE, who=who, **names) for who in (0, 1)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    store = Store(tmp_path, {"seed": 0})
    found = sorted((int(own.run.method), own.run.split) for own in store.records().values())
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


@pytest.mark.serial
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
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
store, i = Store(folder, {"seed": 0}), 0
while True:
    run = Run("houses", str(turn), i, 0)
    store.add(RunRecord(run, {}, "finished", 0, 0, 0.5, (6, 2, 2), {"text": "x" * 20_000}))
    said.send(run.key)
    i += 1
"""


@pytest.mark.serial
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
        assert store.done() == set(KEYS[:2])
        assert store.damaged == [f"{file.name}, line 3 is cut; its run is done again"]
    file.write_bytes(content[:begin])
    assert store.done() == set(KEYS[:2])
    assert store.damaged == []


def test_the_run_of_a_cut_line_is_done_again(tmp_path):
    fill(Store(tmp_path, STUDY), 3)
    (file,) = run_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-9])
    store = Store(tmp_path, STUDY)
    store.add(make_record(2))
    assert store.done() == set(KEYS)
    assert len(run_files(tmp_path)) == 2


def test_a_line_that_is_still_being_written_is_found_when_it_is_complete(tmp_path):
    fill(Store(tmp_path, STUDY), 2)
    (file,) = run_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:-30])
    store = Store(tmp_path, STUDY)
    assert store.done() == {KEYS[0]}
    assert len(store.damaged) == 1
    with file.open("ab") as rest:
        rest.write(content[-30:])
    assert store.done() == set(KEYS[:2])
    assert store.damaged == []


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A store with three runs, its file, and the content of that."""
    store = Store(tmp_path_factory.mktemp("three"), STUDY)
    fill(store, 3)
    (file,) = run_files(store.folder)
    return as_text(store.records()), file, file.read_bytes()


@given(st.data())
def test_a_changed_byte_never_gives_another_result(three, data):
    runs, file, content = three
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.sampled_from(b'\n\r 0123456789",}\x00\xff') | st.integers(0, 255))
    file.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
    store = Store.open(file.parent)
    found = as_text(store.records())
    assert found.items() <= runs.items()
    is_changed = byte != content[at]
    assert (len(found) < 3) == bool(store.damaged) == is_changed


@given(st.binary(max_size=200))
@example(b"\n\n")
@example(b"[" * 100_000 + b"\n")
@example(b'{"format":1}\n')
@example(b'{"format":2}\n')
@example(b'{"format":2,"key":1,"record":1,"crc32":1}\n')
@example(b"1\nnull\n[]\n")
def test_noise_is_reported_and_hides_no_run(three, noise):
    runs, file, content = three
    file.write_bytes(content + noise)
    store = Store.open(file.parent)
    assert as_text(store.records()) == runs
    assert len(store.damaged) == len(noise.split(b"\n")) - noise.endswith(b"\n") - (not noise)


def test_an_empty_file_is_no_damage(tmp_path):
    store = Store(tmp_path, STUDY)
    (tmp_path / "runs-killed-1-0.jsonl").touch()
    assert store.records() == {}
    assert store.damaged == []


def test_a_line_of_another_version_is_reported_and_left_out(tmp_path, monkeypatch):
    store = Store(tmp_path, STUDY)
    store.add(make_record(0))
    monkeypatch.setattr(module, "FORMAT", 3)
    store.add(make_record(1))
    monkeypatch.undo()
    assert store.done() == {KEYS[0]}
    assert store.damaged == [
        f"{run_files(tmp_path)[0].name}, line 2 is of format 3, which another version of regaug "
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
        f"The folder {tmp_path} holds another study: {message}. Give another folder (--out), "
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
    assert Store.open(tmp_path).done() == {KEYS[0]}


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
        b'{"format":2,"configuration":3,"key":""}\n',
        changed,
    ],
    ids=lambda content: getattr(content, "__name__", str(content)),
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
    monkeypatch.setattr(module, "FORMAT", 3)
    Store(tmp_path, STUDY)
    monkeypatch.undo()
    with pytest.raises(StoreError, match=r"has format 3, written by regaug .* reads format 2\."):
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
    assert Store.open(tmp_path / "old").records() == {}
    for folder in ("old", "new"):
        (tmp_path / folder).chmod(0o700)


def test_a_disk_that_is_read_only_can_still_be_read(tmp_path, monkeypatch):
    fill(Store(tmp_path / "old", STUDY), 2)

    def read_only(path, mode="r", *args, **kwargs):
        if mode != "rb":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return builtins.open(path, mode, *args, **kwargs)

    monkeypatch.setattr(_files, "open", read_only, raising=False)
    message = "Could not write to the store .*: Read-only file system. Choose a folder that you may"
    with pytest.raises(StoreError, match=message):
        Store(tmp_path / "new", STUDY)
    assert os.listdir(tmp_path / "new") == []
    store = Store(tmp_path / "old", STUDY)
    with pytest.raises(StoreError, match=message):
        fill(store, 1)
    assert len(store.records()) == 2


def test_a_disk_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    store = Store(tmp_path, STUDY)
    fill(store, 1)

    def fail(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module, "open_regular", fail)
    with pytest.raises(StoreError, match="Could not read the store .*: Input/output error. Run"):
        store.records()


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
            store.add(make_record(9, length=1000))
        assert run_files(tmp_path) == [file]
        assert file.read_bytes() == content
    assert Store(tmp_path, STUDY).done() == set(KEYS)
    assert store.damaged == []


def test_the_next_line_after_a_cut_one_is_not_lost_with_it(tmp_path, monkeypatch):
    store = Store(tmp_path, STUDY)
    fill(store, 3)
    size = run_files(tmp_path)[0].stat().st_size

    class Stubborn(FileIO):
        def truncate(self, size=None):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(_files, "open", lambda path, mode, **_: Stubborn(path, mode), raising=False)
    with files_of_at_most(size + 20), pytest.raises(StoreError, match="File too large"):
        store.add(make_record(8, length=1000))
    monkeypatch.undo()
    assert run_files(tmp_path)[0].stat().st_size == size + 20
    store.add(make_record(9))
    assert store.done() == {*KEYS, key_of(9)}
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
        store.add(make_record(9))
    if error is FULL:
        assert str(caught.value).startswith(
            f"Could not write to the store {tmp_path}: No space left on device. Free some space "
            f"and run the same command again. The disk of {tmp_path} has "
        )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with pytest.raises((StoreError, KeyboardInterrupt)):
        Store(tmp_path / "new", STUDY)
    assert os.listdir(tmp_path / "new") == []
    monkeypatch.undo()
    fill(store, 3)
    assert store.done() == set(KEYS)


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
    copy.add(make_record(9))
    assert copy.done() == store.done() == {*KEYS[:2], key_of(9)}


# Well-formed lines that are no records


def write_line(folder, values):
    """Write a line whose check sum is right."""
    text = json.dumps(values, separators=(",", ":"))[:-1].encode("ascii")
    (folder / "runs-other-1-0.jsonl").write_bytes(text + b',"crc32":%d}\n' % zlib.crc32(text))


def without(values, name):
    return {key: value for key, value in values.items() if key != name}


LINE = {"format": 2, "key": KEYS[0], "record": make_record(0).to_dict()}
SCORES = LINE["record"]["scores"]["test"]


def with_record(**changes):
    return LINE | {"record": LINE["record"] | changes}


def with_run(**changes):
    return with_record(run=LINE["record"]["run"] | changes)


WRONG_LINES = {
    "no key": without(LINE, "key"),
    "no record": without(LINE, "record"),
    "a list": LINE | {"record": []},
    "another key": LINE | {"key": KEYS[1]},
    "another run": with_run(split=7),
    "a run of floats": with_run(split=0.0),
    "settings that are none": with_run(settings={"epochs": 1}),
    "a method that is a list": with_run(method=["erm"]),
    "scores that are text": with_record(scores={"test": SCORES | {"rmse": "low"}}),
    "scores of nothing": with_record(scores={"test": {}}),
    "a number beyond all": with_record(seconds=10**400),
    "a mark of no number": with_record(seconds={"$float": "many"}),
    "curves that are text": with_record(curves={"test": "abc"}),
    "a sample of numbers": with_record(sample={"true": [1], "predicted": [1]}),
    **{f"no {name}": LINE | {"record": without(LINE["record"], name)} for name in LINE["record"]},
}


@pytest.mark.parametrize("line", WRONG_LINES.values(), ids=WRONG_LINES)
def test_a_line_that_is_no_record_is_damaged_and_left_out(tmp_path, line):
    store = Store(tmp_path, STUDY)
    store.add(make_record(2))
    write_line(tmp_path, line)
    assert store.done() == {KEYS[2]}
    assert store.damaged == ["runs-other-1-0.jsonl, line 1 is damaged; its run is done again"]
    write_line(tmp_path, LINE)
    assert Store.open(tmp_path).done() == {KEYS[0], KEYS[2]}


# Files of the format before this one

OLD_STUDY = (
    '{"format": 1, "regaug": "0.1.0", "key": "af7fb864f3fad76463ee3ef71f14b9dd",\n'
    '"configuration": {"data": {"name": "houses"}, "methods": ["erm"], "trials": 1}}\n'
)
OLD_LINE = (
    '{"format":1,"key":"9ddb663ea4b3ebbad8c82f4b4e6b526c","run":{"method":"ridge","split":0,'
    '"seed":0},"result":{"scores":{"test":{"rmse":0.5}}},"crc32":3767671906}\n'
)


def test_a_store_of_the_format_before_is_refused_and_left_alone(tmp_path):
    (tmp_path / "study.json").write_text(OLD_STUDY)
    (tmp_path / "runs-old-1-0.jsonl").write_text(OLD_LINE)
    for attempt in (lambda: Store.open(tmp_path), lambda: Store(tmp_path, STUDY)):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert str(caught.value) == (
            f"Cannot use the store {tmp_path}: it has format 1, written by regaug 0.1.0, and this "
            "version reads format 2. Give another folder (--out), or delete that one to start "
            "anew; the version that wrote it can still read it."
        )
    assert (tmp_path / "study.json").read_text() == OLD_STUDY
    assert len(os.listdir(tmp_path)) == 2


def test_a_line_of_the_format_before_is_reported_and_left_out(tmp_path):
    store = Store(tmp_path, STUDY)
    (tmp_path / "runs-old-1-0.jsonl").write_text(OLD_LINE)
    assert store.done() == set()
    assert store.damaged == [
        "runs-old-1-0.jsonl, line 1 is of format 1, which another version of regaug wrote; its run "
        "is done again"
    ]
