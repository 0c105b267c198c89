"""How worker processes come into being: at once, if what they need was imported early.

Nothing here imports torch, which takes longer than reading a table.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_all_start_methods, get_context
from multiprocessing.context import ForkServerContext, SpawnContext
from types import FrameType, ModuleType
from typing import TypeAlias

Handler: TypeAlias = "Callable[[int, FrameType | None], None] | int | None"
# What the libraries that NumPy, SciPy and scikit-learn bring along read when they are loaded.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_has_begun = False


def begin_early() -> None:
    """Begin to import what workers need in a process that they will be copies of.

    A command calls it before it imports torch itself and reads its table: when that is done,
    workers need not be waited for.
    """
    global _has_begun
    if _has_begun or "forkserver" not in get_all_start_methods():
        return
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        forkserver.set_forkserver_preload(["regaug.runs.needed"])
        with handling(signal.SIGINT, signal.SIG_IGN):  # the copies inherit it
            forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
    _has_begun = True


def process_context() -> ForkServerContext | SpawnContext:
    """Return how processes are started.

    None is a fork of this one: a fork of a process whose torch has threads can hang. The process
    of :func:`begin_early` has one thread, and has done nothing but imports.
    """
    return get_context("forkserver") if _has_begun else get_context("spawn")


@contextmanager
def without_script() -> Iterator[None]:
    """Start processes that do not run once more what was started, as they need nothing of it.

    So a script that has no ``if __name__ == "__main__":`` does not start itself again and again.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def handling(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Handle a signal in this way for a while; only the main thread may decide that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
