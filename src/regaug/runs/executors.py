"""Who does the work of a study: processes on this machine, or a Ray cluster."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from pickle import PicklingError
from typing import TypeVar

import torch

from regaug.exceptions import ArgumentError, RegaugError
from regaug.runs.record import RunRecord
from regaug.runs.worker import Task, Worker

T = TypeVar("T")  # a task that has been started
_worker: Worker | None = None  # of this process


def run_here(
    worker: Worker,
    tasks: Sequence[Task],
    *,
    is_done: Callable[[Task], bool],
    is_over: Callable[[], bool],
) -> Iterator[list[RunRecord]]:
    """Do tasks one after another in this process, with one thread; see :func:`run_in_processes`."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for task in tasks:
            if is_over():
                return
            if not is_done(task):
                yield worker.do(task)
    finally:
        torch.set_num_threads(threads)


def run_in_processes(
    worker: Worker,
    tasks: Sequence[Task],
    *,
    jobs: int,
    is_done: Callable[[Task], bool],
    is_over: Callable[[], bool],
) -> Iterator[list[RunRecord]]:
    """Do tasks in worker processes; give what each has made as soon as it is there.

    Every worker uses one thread, whatever ``jobs`` is, so that results do not depend on it.

    Args:
        worker: Does a task; every process gets a copy.
        tasks: What is to be done, in this order.
        jobs: Number of processes.
        is_done: Asked before a task starts: whether somebody else has done it.
        is_over: Asked before a task starts: whether to start no more.
    """
    # Not forked: a fork of a process whose torch has threads can hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start, (worker,)) as pool:

        def start(task: Task) -> Future[list[RunRecord]]:
            with _ignoring_interrupts():
                try:
                    return pool.submit(_do, task)
                except (AttributeError, PicklingError, TypeError) as error:
                    raise ArgumentError(
                        "`model` and `splits` of a problem must be such that they can be sent to "
                        f"another process, got: {error}. Define `model` in a module, not in a "
                        "function and not by lambda, or take jobs=1."
                    ) from error

        try:
            for future in keep_busy(
                tasks,
                [],
                jobs=jobs,
                start=start,
                wait=partial(wait, return_when=FIRST_COMPLETED),
                is_done=is_done,
                is_over=is_over,
            ):
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
    is_done: Callable[[Task], bool],
    is_over: Callable[[], bool],
) -> Iterator[T]:
    """Start tasks so that some run all the time; give each when it has ended.

    Args:
        tasks: What is to be done, in this order.
        running: What runs is kept in this list, for a caller who has to end it.
        jobs: Tasks that run at the same time, at most.
        start: Starts a task.
        wait: Waits for some of those that run; returns them, and the others.
        is_done: Asked before a task starts: whether somebody else has done it.
        is_over: Asked before a task starts: whether to start no more.
    """
    waiting = iter(tasks)
    while True:
        while len(running) < jobs and not is_over():
            task = next((task for task in waiting if not is_done(task)), None)
            if task is None:
                break
            running.append(start(task))
        if not running:
            return
        ended, others = wait(running)
        running[:] = others
        yield from ended


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C for a moment: a process that is started then ignores it from its beginning.

    Ctrl-C reaches all processes of a terminal; the one that was started by hand decides what to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start(worker: Worker) -> None:
    global _worker
    _worker = worker
    torch.set_num_threads(1)
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
    return _worker.do(task)
