"""Who does the work of a study: processes on this machine, or a Ray cluster."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context

import torch

from regaug.exceptions import RegaugError
from regaug.studies.work import Outcome, Task, Works

_worker: Works | None = None  # of this process


def run_here(
    worker: Works,
    tasks: Sequence[Task],
    *,
    is_done: Callable[[Task], bool],
    is_over: Callable[[], bool],
) -> Iterator[Outcome]:
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
    worker: Works,
    tasks: Sequence[Task],
    *,
    jobs: int,
    is_done: Callable[[Task], bool],
    is_over: Callable[[], bool],
) -> Iterator[Outcome]:
    """Do tasks in worker processes; give what each has made as soon as it is there.

    Every worker uses one thread, whatever ``jobs`` is, so that results do not depend on it.

    Args:
        worker: Does a task; every process gets a copy.
        tasks: What is to be done, in this order.
        jobs: Number of processes.
        is_done: Asked before a task starts: whether somebody else has done it.
        is_over: Asked before a task starts: whether to start no more.
    """
    waiting = iter(tasks)
    # Not forked: a fork of a process whose torch has threads can hang.
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start, (worker,)) as pool:
        running: set[Future[Outcome]] = set()
        try:
            while True:
                while len(running) < jobs and not is_over():
                    task = next((task for task in waiting if not is_done(task)), None)
                    if task is None:
                        break
                    with _ignoring_interrupts():
                        running.add(pool.submit(_do, task))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        except BrokenProcessPool as error:
            raise RegaugError(
                "A worker process was ended from outside, perhaps for want of memory. What was "
                "finished is kept; continue with the same command and fewer jobs (-j)."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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


def _start(worker: Works) -> None:
    global _worker
    _worker = worker
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where processes do not inherit it


def _do(task: Task) -> Outcome:
    if _worker is None:
        raise RegaugError("A worker process has not been started by run_in_processes.")
    return _worker.do(task)
