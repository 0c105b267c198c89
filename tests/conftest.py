"""What all tests share: cores, Hypothesis settings, Ctrl-C, processes, the folder of real data."""

import importlib
import json
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings

# Where the tests run on all cores, every worker computes in one thread. The libraries read this
# when they are loaded; a process that a test starts must not find it.
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if IS_WORKER:  # its threads shall sleep while they wait: another worker needs the core
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
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


def _shorten(patch: pytest.MonkeyPatch, epochs: int, patience: int | None = None) -> None:
    from regaug.studies import plan

    draw = plan.draw_recipes  # perhaps shortened before

    def draw_short(*given: Any, **options: Any) -> list[Any]:
        return [replace(own, epochs=epochs, patience=patience) for own in draw(*given, **options)]

    patch.setattr(plan, "draw_recipes", draw_short)


@pytest.fixture(scope="session")
def shorten() -> Callable[..., None]:
    """A function that makes all trainings of studies short: ``shorten(monkeypatch, epochs)``."""
    return _shorten


@pytest.fixture
def registries() -> Iterator[None]:
    """Let a test register what it likes: afterwards nothing of it is known."""
    from regaug import data, methods, samplers  # noqa: F401 - they make their registries
    from regaug._registry import REGISTRIES

    before = {group: dict(vars(registry)) for group, registry in REGISTRIES.items()}
    for registry in REGISTRIES.values():
        vars(registry).update(_registered={}, _loaded={}, _unreachable={}, _points=None)
    yield
    for group, registry in REGISTRIES.items():
        vars(registry).update(before[group])


@pytest.fixture
def install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registries: None
) -> Callable[..., Path]:
    """Install packages as pip does, in a folder that is on the path of new processes too."""
    folder = tmp_path / "installed"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)

    def add(name: str, code: str, entry_points: str) -> Path:
        (folder / f"{name}.py").write_text(code)
        facts = folder / f"{name}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(entry_points)
        importlib.invalidate_caches()
        return folder

    return add


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a made-up Airfoil of 1503 rows, and nothing else."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (1503, 5))
    y = 120 + 3 * np.sin(3 * x[:, 0]) + 2 * x[:, 1] + 0.3 * rng.standard_normal(1503)
    folder = tmp_path / "data" / "airfoil"
    folder.mkdir(parents=True)
    np.savetxt(folder / "airfoil_self_noise.dat", np.column_stack([x, y]), delimiter="\t")
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data files: REGAUG_DATA, or ../shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("REGAUG_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"needs the real data files: set REGAUG_DATA, or put them in {beside}")
    return folder


@pytest.fixture(scope="session")
def fresh() -> Iterator[Callable[[str], str]]:
    """Run code in a process in which nothing but torch was imported; return what it prints.

    One process imports torch, once for all questions, and forks another for each of them.
    """
    if not hasattr(os, "fork"):
        pytest.skip("needs a system that can fork")
    with subprocess.Popen(
        [sys.executable, "-c", _FRESH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def run(code: str) -> str:
            requests.write(json.dumps(code) + "\n")
            requests.flush()
            printed = str(json.loads(answers.readline()))
            assert printed, f"failed: {code}"
            return printed.strip()

        yield run
        requests.close()


_FRESH = """
import contextlib, io, json, os, sys, torch
for line in sys.stdin:
    read, write = os.pipe()
    if os.fork() == 0:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(json.loads(line), {})
        os.write(write, printed.getvalue().encode())
        os._exit(0)
    os.close(write)
    with open(read) as answer:
        print(json.dumps(answer.read()), flush=True)
    os.wait()
"""


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
