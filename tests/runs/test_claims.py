"""Claims: one process has it, others see that, and nobody waits for one that is gone."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from regaug.runs import claims
from regaug.runs.claims import Claim


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "claim.json"


def claim_elsewhere(path):
    """Start a process that claims a file and waits to be ended."""
    code = (
        "import pathlib, sys; from regaug.runs.claims import Claim; "
        "claim = Claim.take(pathlib.Path(sys.argv[1])); print(claim is not None, flush=True); "
        "sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "True\n"
    return process


def write(path, **owner):
    known = {**claims._this_process(), "token": "other"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**known, **owner}))


def test_what_is_claimed_is_claimed_until_it_is_let_go(path):
    claim = Claim.take(path)
    assert Claim.take(path) is None
    claim.end()
    assert not path.exists()
    Claim.take(path).end()


def test_a_claim_that_is_kept_is_free_for_its_own_process_alone(path):
    claim = Claim.take(path)
    claim.end(keep=True)
    assert path.exists()
    again = Claim.take(path)
    assert again is not None
    again.end()


@pytest.mark.serial
def test_a_living_process_keeps_others_away_and_a_killed_one_does_not(path):
    process = claim_elsewhere(path)
    try:
        assert Claim.take(path) is None
        os.kill(process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        claim = None
        while claim is None and time.monotonic() < deadline:
            claim = Claim.take(path)  # nobody has waited for the process yet: it is a zombie
        assert claim is not None
        claim.end()
    finally:
        process.kill()
        process.communicate()


def test_a_claim_of_another_machine_expires(path):
    write(path, system="another")
    assert Claim.take(path) is None
    old = time.time() - claims.EXPIRY - 1
    os.utime(path, (old, old))
    claim = Claim.take(path)
    assert claim is not None
    assert os.listdir(path.parent) == [path.name]  # nothing is left of the other
    claim.end()


def test_a_claim_is_renewed_while_it_is_in_force(path, monkeypatch):
    monkeypatch.setattr(claims, "BEAT", 0.01)
    monkeypatch.setattr(claims, "_thread", None)  # one that waits for longer, of another test
    claim = Claim.take(path)
    os.utime(path, (0, 0))
    deadline = time.monotonic() + 10
    while path.stat().st_mtime == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.stat().st_mtime > 0
    claim.end()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"process": "x"}'])
def test_a_damaged_claim_is_somebodys_until_it_expires(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    assert Claim.take(path) is None
    os.utime(path, (0, 0))
    claim = Claim.take(path)
    assert claim is not None
    claim.end()


def test_a_claim_that_somebody_has_just_taken_over_stays_with_them(path, monkeypatch):
    claim = Claim.take(path)
    before = path.read_bytes()
    write(path, token="new", process=2**22 + 1)  # a number that no process has
    after = path.read_bytes()
    seen = iter([before, after])
    monkeypatch.setattr(claims, "_content", lambda path: next(seen, after))
    claim.end()
    assert path.read_bytes() == after
    assert os.listdir(path.parent) == [path.name]


def take_and_tell(path, barrier, answers):
    barrier.wait()
    claim = Claim.take(path)
    answers.put(claim is not None)
    barrier.wait()


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts processes by forking")
@pytest.mark.parametrize("is_dead", [False, True])
def test_of_many_who_ask_at_once_one_has_it(path, is_dead):
    if is_dead:
        write(path, process=2**22 + 1)  # a number that no process has
    context = multiprocessing.get_context("fork")
    answers, barrier = context.Queue(), context.Barrier(4)
    started = [
        context.Process(target=take_and_tell, args=(path, barrier, answers)) for _ in range(4)
    ]
    for process in started:
        process.start()
    found = [answers.get(timeout=20) for _ in started]
    for process in started:
        process.join(timeout=20)
    assert sum(found) == 1


def test_a_number_that_is_used_again_is_another_process(path):
    if claims._start_of(os.getppid()) is None:
        pytest.skip("nothing tells when a process was started")
    write(path, process=os.getppid(), start=claims._start_of(os.getppid()))
    assert Claim.take(path) is None
    write(path, process=os.getppid(), start="1")
    claim = Claim.take(path)
    assert claim is not None
    claim.end()


def test_who_wants_to_be_alone_waits_for_whoever_is_there(path, monkeypatch):
    monkeypatch.setattr(claims, "_LOOK", 0.01)
    first, order = Claim.take(path), []

    def wait():
        with claims.alone(path):
            order.append("second")

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    order.append("first")
    first.end()
    thread.join(timeout=10)
    assert order == ["first", "second"]
    assert not path.exists()
