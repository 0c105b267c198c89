"""Who does the work of a study: processes on this machine, or a Ray cluster."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from multiprocessing import parent_process
from pickle import PicklingError
from typing import TypeVar

from regaug.exceptions import ArgumentError, RegaugError
from regaug.runs.processes import handling, process_context
from regaug.runs.record import RunRecord
from regaug.runs.registrations import Registration, pack, unpack
from regaug.runs.threads import one_thread, use_one_thread
from regaug.runs.versions import check_worker, own_versions
from regaug.runs.worker import Task, Worker

T = TypeVar("T")  # a task that has been started
# Of this process, if it is a worker, and the versions of the one that has started it.
_worker: Worker | None = None
_wanted: Mapping[str, str] = {}


def pending(
    tasks: Iterable[Task], *, is_done: Callable[[Task], bool], is_over: Callable[[], bool]
) -> Iterator[Task]:
    """Give tasks, each when its turn comes, until the end, but none that somebody else has done."""
    for task in tasks:
        if not is_done(task):
            if is_over():
                return
            yield task


def run_here(worker: Worker, tasks: Iterable[Task]) -> Iterator[list[RunRecord]]:
    """Do tasks one after another in this process, with one thread."""
    for task in tasks:
        with one_thread():
            records = worker.do(task)
        yield records


def run_in_processes(
    worker: Worker, tasks: Iterable[Task], *, jobs: int
) -> Iterator[list[RunRecord]]:
    """Do tasks in ``jobs`` processes; give what each has made as soon as it is there.

    Every process gets a copy of the worker and uses one thread, whatever ``jobs`` is, so that
    results do not depend on it. A task is asked for when there is a process for it.
    """
    with process_pool(worker, jobs) as pool:
        yield from run_in_pool(worker, tasks, pool=pool, jobs=jobs)


def process_pool(worker: Worker, jobs: int) -> ProcessPoolExecutor:
    """Return processes that have a copy of the worker; each is started when there is a task.

    They know what has been registered in this process, as far as it can be sent.
    """
    given = worker, pack(), own_versions()
    return ProcessPoolExecutor(jobs, process_context(), _start, given)


def run_in_pool(
    worker: Worker, tasks: Iterable[Task], *, pool: ProcessPoolExecutor, jobs: int
) -> Iterator[list[RunRecord]]:
    """Do tasks in processes that have a copy of the worker, and may have done others before."""

    def start(task: Task) -> Future[list[RunRecord]]:
        # A process that is started now ignores Ctrl-C from its beginning. It reaches all
        # processes of a terminal; the one that was started by hand decides what to do.
        with handling(signal.SIGINT, signal.SIG_IGN):
            try:
                return pool.submit(_do, task)
            except (AttributeError, PicklingError, TypeError) as error:
                raise ArgumentError(
                    "`model` and `splits` of a problem must be such that they can be sent to "
                    f"another process, got: {error}. Define `model` in a module, not in a "
                    "function and not by lambda, or take jobs=1."
                ) from error

    first = partial(wait, return_when=FIRST_COMPLETED)
    try:
        for future in keep_busy(tasks, [], jobs=jobs, start=start, wait=first):
            yield future.result()
    except BrokenProcessPool as error:
        raise RegaugError(
            "A worker process was ended from outside, perhaps for want of memory. What was "
            "finished is kept; continue with the same command and fewer jobs (-j)."
        ) from error
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def keep_busy(
    tasks: Iterable[Task],
    running: list[T],
    *,
    jobs: int,
    start: Callable[[Task], T],
    wait: Callable[[list[T]], tuple[Iterable[T], Iterable[T]]],
) -> Iterator[T]:
    """Start tasks so that ``jobs`` of them run all the time; give each when it has ended.

    What runs is kept in ``running``, for a caller who has to end it. ``wait`` waits for some of
    those, and returns them and the others.
    """
    waiting = iter(tasks)
    while True:
        running += map(start, islice(waiting, jobs - len(running)))
        if not running:
            return
        ended, others = wait(running)
        running[:] = others
        yield from ended


def _start(worker: Worker, registrations: Iterable[Registration], ours: Mapping[str, str]) -> None:
    global _worker, _wanted
    _worker, _wanted = worker, ours
    unpack(registrations)
    use_one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where processes do not inherit it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as the one that has started it is gone, however it was ended."""
    # What is under way would reach nobody, and the process would wait for more work for ever.
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _do(task: Task) -> list[RunRecord]:
    if _worker is None:
        raise RegaugError("A worker process has not been started by run_in_processes.")
    # Somebody may have installed another version since the study began.
    check_worker(own_versions(), _wanted, socket.gethostname())
    return _worker.do(task)
