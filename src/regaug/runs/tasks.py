"""Do runs: which of them together, by whom, until when, and what becomes of the records."""

import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import Literal, Self

from regaug._checks import check_choice, check_integer, check_range
from regaug.data.base import Part
from regaug.exceptions import ArgumentError
from regaug.problems import Problem
from regaug.runs.division import Division, clear_claims
from regaug.runs.executors import process_pool, run_here, run_in_pool
from regaug.runs.origins import Origins
from regaug.runs.processes import handling
from regaug.runs.ray_cluster import Cluster
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.speed import slowness
from regaug.runs.store import Store
from regaug.runs.worker import Task, Worker
from regaug.training.stacked import most_runs

Executor = Literal["process", "ray"]
Report = Callable[[Sequence[RunRecord]], None]

# In seconds, on the machine of regaug.runs.speed. What begins with every command, and what every
# training takes beside its epochs.
_START, _RUN = 2.0, 0.005
# What baselines take on a small table, and for each number of a large one; and any other regressor.
_BASELINES = {
    "mean": (0.0, 0.0),
    "last-value": (0.0, 0.0),
    "ridge": (0.02, 1e-7),
    "boosting": (0.45, 5e-5),
    "trees": (0.45, 7e-5),
    "gp": (0.1, 2e-5),
}
_REGRESSOR = (0.3, 2e-5)
# Epochs that a run takes which may end early: a share of its own, and no fewer than the last.
_STOPPED, _SOONEST = 0.34, 30.0
# What the settings that a study tries of a method take, in plain trainings; those of FOMA act at a
# layer too, where a decomposition is made in every step.
_AUGMENTED, _OTHERS = {"erm": 1.0, "foma": 2.4, "foma-rho": 2.4, "cems": 1.6}, 1.35
# Seconds after which to look whether somebody else has finished the runs that are left.
_LOOK = 0.25


@dataclass(frozen=True)
class Workforce:
    """Who does runs, and for how long.

    Attributes:
        jobs: Worker processes; 1 works in this one. Results do not depend on it.
        executor: ``"process"``, or ``"ray"`` for workers on Ray, which is an extra. Results do not
            depend on it either.
        ray_address: Where a Ray cluster listens; None takes that of ``RAY_ADDRESS``, and starts Ray
            on this machine if there is none.
        max_minutes: Start nothing new after so many minutes.
        gpus_per_run: What Ray reserves for every run, such as 1 or 0.5; of a graphics card that
            several runs share each has a part. Untried, as no such machine was at hand.
        ray_runtime_env: What Ray gives to its workers: see
            :func:`regaug.runs.ray_cluster.read_runtime_env`.
    """

    jobs: int = 1
    executor: Executor = "process"
    ray_address: str | None = None
    max_minutes: float | None = None
    gpus_per_run: float = 0.0
    ray_runtime_env: object = None

    def __post_init__(self) -> None:
        check_integer("jobs", self.jobs, 1)
        check_choice("executor", self.executor, ("process", "ray"))
        for name in ("ray_address", "ray_runtime_env"):
            if getattr(self, name) is not None and self.executor != "ray":
                raise ArgumentError(f'`{name}` needs executor="ray", got {self.executor!r}.')
        if self.max_minutes is not None:
            check_range("max_minutes", self.max_minutes, 0.0, open_low=True)
        check_range("gpus_per_run", self.gpus_per_run, 0.0)
        if self.gpus_per_run > 1.0 and self.gpus_per_run % 1.0:
            raise ArgumentError(
                "`gpus_per_run` must be a part of one or a whole number, as Ray has it, got "
                f"{self.gpus_per_run!r}."
            )
        if self.gpus_per_run and self.executor != "ray":
            raise ArgumentError(
                f'`gpus_per_run` needs executor="ray", got {self.executor!r}: processes of this '
                "machine share the first graphics card that is there."
            )

    def for_cluster(self) -> Self:
        """Return the same with as many jobs as the Ray cluster has CPUs, if there is one."""
        if self.executor != "ray":
            return self
        from regaug.runs.ray_executor import count_cpus

        cluster = Cluster.find(self.ray_address, self.ray_runtime_env)
        return self if cluster.address is None else replace(self, jobs=count_cpus(cluster))


def make_tasks(runs: Iterable[Run], problems: Mapping[str, Problem]) -> list[Task]:
    """Put runs that can share a stack together; every other one is a task of its own.

    What a task contains depends on the runs alone, so that a result does not depend on how many
    workers there are. Tasks are in the order of their first runs.
    """
    groups: dict[tuple[object, ...], list[tuple[int, Run]]] = {}
    for place, run in enumerate(runs):
        form: tuple[object, ...] = (run.key,)
        if run.settings is None:
            if problems[run.problem].is_repeated:  # it is fitted once
                form = (run.problem, run.method)
        elif problems[run.problem].is_stacked and run.can_stack:
            own = run.settings
            acts = repr(own.method_settings.get("place"))
            form = (run.problem, run.method, run.stage, own.batch_size, own.frequencies, acts)
        groups.setdefault(form, []).append((place, run))
    stacks = [stack for members in groups.values() for stack in _cut(members)]
    stacks.sort(key=lambda stack: stack[0][0])
    return [tuple(run for _, run in stack) for stack in stacks]


def _cut(members: list[tuple[int, Run]]) -> Iterator[list[tuple[int, Run]]]:
    """Cut runs of one form into stacks that are about equal, as small ones take longer a run."""
    settings, size = members[0][1].settings, 1
    if settings is None:
        yield members
        return
    most = most_runs(settings.batch_size)
    if settings.halve:  # those of a split are rivals, so they stay together
        members = sorted(members, key=lambda member: member[1].split)
        size = min(most, max(Counter(run.split for _, run in members).values()))
    units = -(-len(members) // size)
    stacks = -(-units // (most // size))
    for number in range(stacks):
        start, end = (size * (i * units // stacks) for i in (number, number + 1))
        yield members[start:end]


def estimate_seconds(
    runs: Iterable[Run], problems: Mapping[str, Problem], *, most_rows: int | None = None
) -> float:
    """Return about how long some runs take one worker; right within a factor of two or so.

    They learn from all training rows, or from ``most_rows`` of them.
    """
    rows: dict[str, tuple[int, int]] = {}
    total = _START
    for run in runs:
        problem = problems[run.problem]
        if run.problem not in rows:
            train = problem.splits[0].train
            n = min(len(train), most_rows or len(train))
            rows[run.problem] = n, n * math.prod(train.x.shape[1:])
        n, numbers = rows[run.problem]
        if run.settings is None:
            total += _estimate_baseline(run.method, numbers)
            continue
        epochs = float(min(run.settings.epochs, run.settings.stop_after or math.inf))
        if run.settings.patience is not None or run.settings.halve:
            epochs = min(epochs, max(_SOONEST, _STOPPED * epochs))
        steps = max(1, n // run.settings.batch_size)
        own = _RUN + epochs * (steps * problem.cost.step + n * problem.cost.sample)
        total += own * _AUGMENTED.get(run.method, _OTHERS)
    return total * slowness()


def estimate_baseline(name: str, train: Part) -> float:
    """Return about how long a baseline takes to be fitted, in seconds.

    Example:
        >>> from regaug.data import load
        >>> train = load("diabetes").split(seed=0).train
        >>> estimate_baseline("mean", train) < estimate_baseline("boosting", train)
        True
    """
    return _estimate_baseline(name, math.prod(train.x.shape)) * slowness()


def _estimate_baseline(name: str, numbers: int) -> float:
    alone, each = _BASELINES.get(name, _REGRESSOR)
    return alone + each * numbers


def do_runs(
    worker: Worker,
    rounds: Iterable[Sequence[Run]],
    store: Store,
    *,
    total: int,
    workforce: Workforce,
    report: Report | None = None,
    origins: Origins | None = None,
    say: Callable[[str], None] | None = None,
) -> bool:
    """Do the runs that a store does not have yet, and put their records there.

    A round is asked for when the one before is finished; ``total`` counts the runs of all rounds.
    The first Ctrl-C finishes what is running, of networks the epoch, and starts nothing new; the
    second interrupts. Others who have the same store take part (:class:`Division`), and all wait
    for the last of a round. ``report`` gets the records of every finished task, those of others
    too; ``origins`` says of them what another study must have in common to take them over. ``say``
    is told what a reader should know of the workers. Returns whether all runs are done.
    """
    minutes = workforce.max_minutes
    end = None if minutes is None else time.monotonic() + 60 * minutes
    worker.resume()
    news = _News(store, report)
    with (
        _stoppable(worker) as stopped,
        _workers(workforce, worker, say) as execute,
        _pausing(worker),
        Division(store) as division,
    ):

        def is_over() -> bool:
            return stopped.is_set() or (end is not None and time.monotonic() > end)

        for runs in rounds:
            tasks = make_tasks(runs, worker.problems)
            while tasks:
                finished: set[str] = set()
                for records in execute(worker, division.pending(tasks, is_over=is_over)):
                    # Nothing comes of a network that has paused, or that somebody else trains.
                    finished |= _keep(records, store, worker, origins)
                    division.settle(finished)
                    news.tell(records)
                    news.look()
                division.let_go()
                if is_over():  # perhaps in the middle of a round
                    worker.resume()
                    return len(store.done()) >= total
                known = finished | news.look()
                tasks = [task for task in tasks if not {run.key for run in task} <= known]
                if tasks and not finished:
                    stopped.wait(_LOOK)
    clear_claims(store.folder)
    return True


class _News:
    """Tells of records: those of this process as they are made, those of others when they are seen.

    Args:
        store: Where all of them are.
        report: Who is told; None if nobody is.
    """

    def __init__(self, store: Store, report: Report | None) -> None:
        self._store, self._report = store, report
        self._told = store.done()

    def tell(self, records: Sequence[RunRecord]) -> None:
        """Tell of records that were made here."""
        self._told |= {record.run.key for record in records}
        if records and self._report is not None:
            self._report(records)

    def look(self) -> set[str]:
        """Tell of records that others have made since; return the keys of all runs."""
        found = self._store.records()
        self.tell([record for key, record in found.items() if key not in self._told])
        return set(found)


def _keep(
    records: Sequence[RunRecord], store: Store, worker: Worker, origins: Origins | None
) -> set[str]:
    """Put the records of a task into a store; return the keys of their runs."""
    # Of a task that a kill cut short, or that others do too, some may be there.
    known = store.done() if records else set()
    named = origins.of(tuple(own.run for own in records)) if origins and records else {}
    for record in records:
        if record.run.key not in known:
            store.add(record, origin=named.get(record.run.key, ""))
        if record.ending != "paused":
            worker.forget(record.run)
    return {record.run.key for record in records}


@contextmanager
def _pausing(worker: Worker) -> Iterator[None]:
    """Let networks pause that other processes train for this one, if it fails."""
    try:
        yield
    except BaseException:
        worker.pause()
        raise


@contextmanager
def _workers(
    workforce: Workforce, worker: Worker, say: Callable[[str], None] | None
) -> Iterator[Callable[..., Iterator[list[RunRecord]]]]:
    """Give the function that does tasks, and keep alive for a while what it needs."""
    jobs = workforce.jobs
    if workforce.executor == "ray":
        from regaug.runs.ray_executor import run_on_ray, running_ray

        gpus = workforce.gpus_per_run
        cluster = Cluster.find(workforce.ray_address, workforce.ray_runtime_env)
        with running_ray(cluster, jobs=jobs, gpus=gpus):
            yield partial(run_on_ray, jobs=jobs, gpus=gpus, say=say)
    elif jobs == 1:
        yield run_here
    else:
        with process_pool(worker, jobs) as pool:  # for all rounds: a process takes seconds to start
            yield partial(run_in_pool, pool=pool, jobs=jobs)


@contextmanager
def _stoppable(worker: Worker) -> Iterator[threading.Event]:
    """Let the first Ctrl-C ask for an end after what is running; the second one interrupts."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        worker.pause()

    with handling(signal.SIGINT, stop):
        yield stopped
