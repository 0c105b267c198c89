"""Who does the work of a study: processes on this machine, or a Ray cluster."""

import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from typing import TypeVar

from regaug.exceptions import ArgumentError, RegaugError
from regaug.runs.entrance import begin, do
from regaug.runs.processes import handling, process_context, without_script
from regaug.runs.record import RunRecord
from regaug.runs.registrations import pack
from regaug.runs.threads import one_thread
from regaug.runs.versions import own_versions
from regaug.runs.worker import Task, Worker

T = TypeVar("T")  # a task that has been started


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


@dataclass(frozen=True)
class Pool:
    """Processes that have a copy of a worker; each is started when there is a task for it.

    Attributes:
        processes: What is given tasks.
        needs_script: Whether processes run the script that was started once more, as what they
            are sent is defined in it.
    """

    processes: ProcessPoolExecutor
    needs_script: bool

    def submit(self, task: Task) -> Future[list[RunRecord]]:
        """Give a task to a process that has nothing to do, or to a new one."""
        # A process that is started now ignores Ctrl-C from its beginning. It reaches all
        # processes of a terminal; the one that was started by hand decides what to do.
        script = nullcontext() if self.needs_script else without_script()
        with handling(signal.SIGINT, signal.SIG_IGN), script:
            return self.processes.submit(do, pickle.dumps(task))


@contextmanager
def process_pool(worker: Worker, jobs: int) -> Iterator[Pool]:
    """Give processes that have a copy of the worker, and end them.

    They know what has been registered in this process, as far as it can be sent.
    """
    try:
        given = pickle.dumps((worker, pack(), own_versions()))
    except (AttributeError, pickle.PicklingError, TypeError) as error:
        raise ArgumentError(
            "`model` and `splits` of a problem must be such that they can be sent to "
            f"another process, got: {error}. Define `model` in a module, not in a "
            "function and not by lambda, or take jobs=1."
        ) from error
    context = process_context()
    # Not as what a process begins with: Python waits forever until that is read, even by one
    # that has died before, as it does if an import fails or a script starts itself again.
    ours, theirs = context.Pipe(duplex=False)
    threading.Thread(target=_hand_out, args=(theirs, given, jobs), daemon=True).start()
    try:
        with ProcessPoolExecutor(jobs, context, begin, (ours, context.Lock())) as processes:
            yield Pool(processes, needs_script=b"__main__" in given)
    finally:
        ours.close()  # which ends the thread, if not all were started


def run_in_pool(
    worker: Worker, tasks: Iterable[Task], *, pool: Pool, jobs: int
) -> Iterator[list[RunRecord]]:
    """Do tasks in processes that have a copy of the worker, and may have done others before."""
    first, has_done = partial(wait, return_when=FIRST_COMPLETED), False
    try:
        for future in keep_busy(tasks, [], jobs=jobs, start=pool.submit, wait=first):
            records = future.result()
            has_done = True
            yield records
    except BrokenProcessPool as error:
        if pool.needs_script and not has_done:
            raise RegaugError(
                "Worker processes could not be started. They run this script once more, as a "
                "model or method is defined in it: put all that it does below "
                'if __name__ == "__main__":, define the model or method in a module of its own, '
                "or take jobs=1."
            ) from error
        raise RegaugError(
            "A worker process was ended from outside, perhaps for want of memory. What was "
            "finished is kept; continue with the same command and fewer jobs (-j)."
        ) from error
    except BaseException:
        pool.processes.shutdown(wait=False, cancel_futures=True)
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


def _hand_out(pipe: Connection, given: bytes, times: int) -> None:
    """Give as many processes the same; there is an end when nobody can read it any more."""
    with pipe, suppress(OSError):
        for _ in range(times):
            pipe.send_bytes(given)
