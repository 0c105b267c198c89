"""How a worker process begins.

Nothing here imports a library before it can be said in a sentence that there is not enough memory
for it.
"""

import os
import pickle
import signal
import socket
import threading
from collections.abc import Mapping
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Lock
from typing import TYPE_CHECKING

from regaug.exceptions import RegaugError

if TYPE_CHECKING:
    from regaug.runs.record import RunRecord
    from regaug.runs.worker import Worker

# Of this process, if it is a worker: what works, the versions of the process that has started it,
# and why it cannot work.
_worker: "Worker | None" = None
_wanted: Mapping[str, str] = {}
_failure: Exception | None = None


def begin(pipe: Connection, turn: Lock) -> None:
    """Become a worker: read from a pipe what all are given, each in its turn."""
    global _failure
    with pipe, turn:
        given = pipe.recv_bytes()
    try:
        _become(given)
    except (ImportError, MemoryError, OSError) as error:
        _failure = error  # who gives it a task is told
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where processes do not inherit it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _become(given: bytes) -> None:
    global _worker, _wanted
    _worker, registrations, _wanted = pickle.loads(given)  # noqa: S301 - of who started this one
    from regaug.runs.registrations import unpack
    from regaug.runs.threads import use_one_thread

    unpack(registrations)
    use_one_thread()


def _end_with_parent() -> None:
    """End this process as soon as the one that has started it is gone, however it was ended."""
    # What is under way would reach nobody, and the process would wait for more work for ever.
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def do(content: bytes) -> "list[RunRecord]":
    """Do a task, which comes pickled: to read it takes libraries too."""
    if _failure is not None:
        reason = str(_failure).strip().splitlines()
        what = f"{type(_failure).__name__}: {reason[0]}" if reason else type(_failure).__name__
        raise RegaugError(
            f"A worker process could not be started ({what}). If that is for want of memory, or a "
            "limit forbids it (ulimit -v), take fewer `jobs`, or a higher limit. What was finished "
            "is kept."
        )
    if _worker is None:
        raise RegaugError("A worker process has not been started by run_in_processes.")
    from regaug.runs.versions import check_worker, own_versions

    # Somebody may have installed another version since the study began.
    check_worker(own_versions(), _wanted, socket.gethostname())
    return _worker.do(pickle.loads(content))  # noqa: S301 - of who started this one
