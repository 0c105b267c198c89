"""Processes that are there early: the same work, one thread, and nothing of theirs is left."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from regaug.runs import processes
from regaug.runs.processes import ONE_THREAD, begin_early, handling, process_context

HAS_SERVER = "forkserver" in processes.get_all_start_methods()
EARLY = """
import os, signal, sys
from regaug.runs.processes import begin_early, process_context

def look(_):
    ignores = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    return "torch" in sys.modules, ignores, os.environ["OMP_NUM_THREADS"]

if __name__ == "__main__":
    begin_early()
    begin_early()
    assert "torch" not in sys.modules, "that takes long"
    with process_context().Pool(1) as pool:
        print(*pool.apply(look, (None,)), os.environ["OMP_NUM_THREADS"])
"""


@pytest.mark.skipif(not HAS_SERVER, reason="This system has no fork server.")
@pytest.mark.serial
def test_early_processes_have_imported_all_with_one_thread_and_ignore_ctrl_c(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(EARLY)
    environment = os.environ | {"OMP_NUM_THREADS": "7"}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["True", "True", "1", "7"], done.stderr


def test_without_it_processes_are_started_from_nothing(monkeypatch):
    monkeypatch.setattr(processes, "_has_begun", False)
    assert process_context().get_start_method() == "spawn"
    monkeypatch.setattr(processes, "get_all_start_methods", lambda: ["spawn"])
    begin_early()  # where there is no such thing
    assert process_context().get_start_method() == "spawn"


@pytest.mark.skipif(not HAS_SERVER, reason="This system has no fork server.")
def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.setattr(processes, "_has_begun", False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    seen = {}
    monkeypatch.setattr(processes.forkserver, "ensure_running", lambda: seen.update(os.environ))
    before = dict(os.environ)
    begin_early()
    assert dict(os.environ) == before
    assert {name: seen[name] for name in ONE_THREAD} == ONE_THREAD
    assert process_context().get_start_method() == "forkserver"


def test_a_started_process_ignores_ctrl_c_from_its_beginning():
    code = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    before = signal.getsignal(signal.SIGINT)
    with handling(signal.SIGINT, signal.SIG_IGN):
        inside = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    outside = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert (inside.stdout.strip(), outside.stdout.strip()) == ("True", "False")
    assert signal.getsignal(signal.SIGINT) is before


def test_work_may_be_started_by_any_thread():
    seen = []

    def work():
        with handling(signal.SIGINT, signal.SIG_IGN):
            seen.append("inside")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == ["inside"]
