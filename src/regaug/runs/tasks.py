"""Do the tasks of a study: by whom, until when, and what becomes of the results."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from regaug._checks import check_choice, check_integer, check_range
from regaug.exceptions import ArgumentError
from regaug.runs.executors import run_here, run_in_processes
from regaug.runs.store import Store
from regaug.runs.worker import Outcome, Task, Works

Executor = Literal["process", "ray"]


def run_tasks(
    worker: Works,
    rounds: Iterable[Sequence[Task]],
    store: Store,
    *,
    total: int,
    jobs: int,
    executor: Executor = "process",
    ray_address: str | None = None,
    max_minutes: float | None = None,
    watch: Callable[[Outcome], None] | None = None,
) -> bool:
    """Do the tasks whose runs a store does not have yet, and put the runs there.

    The first Ctrl-C finishes what is running and starts nothing new; the second interrupts.

    Args:
        worker: Does a task.
        rounds: Tasks; a round is asked for when the one before is finished.
        store: Keeps every finished run.
        total: Number of runs in all rounds.
        jobs: Worker processes; 1 works in this one.
        executor: ``"process"`` or ``"ray"``.
        ray_address: Where a Ray cluster listens; None starts Ray on this machine.
        max_minutes: Start nothing new after so many minutes.
        watch: Called with what every finished task has made.

    Returns:
        Whether all are done; False if the time was up or Ctrl-C was pressed.
    """
    check_work(jobs, executor, ray_address, max_minutes)
    end = None if max_minutes is None else time.monotonic() + 60 * max_minutes
    with _stoppable() as stopped, _workers(executor, jobs, ray_address) as execute:

        def is_over() -> bool:
            return stopped.is_set() or (end is not None and time.monotonic() > end)

        def is_done(task: Task) -> bool:
            return {run.key for run in task} <= store.done()

        for tasks in rounds:
            for outcome in execute(worker, tasks, is_done=is_done, is_over=is_over):
                # Of a task that a kill cut short, or that others do too, some may be there.
                known = store.done()
                for key, run, result in outcome:
                    if key not in known:
                        store.add(key, run, result)
                if watch is not None:
                    watch(outcome)
            if is_over():  # perhaps in the middle of a round
                return len(store.done()) >= total
    return True


def check_work(
    jobs: int, executor: Executor, ray_address: str | None, max_minutes: float | None
) -> None:
    """Refuse what :func:`run_tasks` would, before anything is done."""
    check_integer("jobs", jobs, 1)
    check_choice("executor", executor, ("process", "ray"))
    if ray_address is not None and executor != "ray":
        raise ArgumentError(f'`ray_address` needs executor="ray", got {executor!r}.')
    if max_minutes is not None:
        check_range("max_minutes", max_minutes, 0.0, open_low=True)


@contextmanager
def _workers(
    executor: Executor, jobs: int, ray_address: str | None
) -> Iterator[Callable[..., Iterator[Outcome]]]:
    """Give the function that does tasks, and keep alive for a while what it needs."""
    if executor == "ray":
        from regaug.runs.ray_executor import run_on_ray, running_ray

        with running_ray(jobs=jobs, address=ray_address):
            yield partial(run_on_ray, jobs=jobs)
    else:
        yield run_here if jobs == 1 else partial(run_in_processes, jobs=jobs)


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Let the first Ctrl-C ask for an end after what is running; the second one interrupts."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: Any) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
