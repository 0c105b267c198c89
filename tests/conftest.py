"""What all tests share: cores, Hypothesis settings, Ctrl-C, processes, the folder of real data."""

import multiprocessing
import os
import runpy
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from unittest import mock

import pytest
from filelock import FileLock
from hypothesis import settings

# Where the tests run on all cores, every worker computes in one thread. The libraries read this
# when they are loaded; a process that a test starts must not find it.
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
with mock.patch.dict(os.environ):
    if IS_WORKER:
        os.environ["OMP_NUM_THREADS"] = "1"
    import sklearn.ensemble  # noqa: F401
    import torch

# Torch's first call is slow, and a shared machine has slow moments.
settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("default")

# A shell that starts the tests in the background has them ignore Ctrl-C; some test what it does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a serial test, its fixtures included, wait until no other worker does one."""
    if not IS_WORKER or item.get_closest_marker("serial") is None:
        return (yield)
    name = f"serial-tests-{os.environ['PYTEST_XDIST_TESTRUNUID']}.lock"
    with FileLock(Path(tempfile.gettempdir(), name)):
        return (yield)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data files: REGAUG_DATA, or ../shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("REGAUG_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"needs the real data files: set REGAUG_DATA, or put them in {beside}")
    return folder


@pytest.fixture(scope="session")
def run_forked() -> Callable[..., None]:
    """Run a script in several processes as torchrun does, without importing everything again."""
    if not hasattr(os, "fork"):
        pytest.skip("needs a system that can fork")
    return _run_forked


def _run_forked(script: Path, *arguments: object, processes: int = 2) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    words = [str(script), *map(str, arguments)]
    started = [
        context.Process(target=_be_rank, args=(rank, processes, port, words))
        for rank in range(processes)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(timeout=120)
        process.kill()
        process.join()
    assert [process.exitcode for process in started] == [0] * processes


def _be_rank(rank: int, processes: int, port: int, words: list[str]) -> None:
    """Run a script as the main module, with what torchrun says to it."""
    torch.set_num_threads(1)
    warnings.resetwarnings()
    ranks = dict.fromkeys(["RANK", "LOCAL_RANK", "ROLE_RANK"], rank) | {"GROUP_RANK": 0}
    sizes = dict.fromkeys(["WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"], processes)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "tests"}
    os.environ |= {name: str(value) for name, value in (ranks | sizes | place).items()}
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
