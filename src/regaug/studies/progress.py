"""How far a study has come: told when it begins, and whenever something is finished."""

import math
import sys
import time as clock
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from regaug.formatting import count, duration
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.runs.tasks import Report, Workforce, estimate_seconds
from regaug.studies.plan import Plan
from regaug.training.bar import bar_from_first_call


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a study has come; told when it begins, and whenever something is finished.

    Attributes:
        plan: What the study is going to do.
        records: What has just been finished; nothing at the beginning.
        done: Finished runs of every method and baseline.
        seconds_left: About how long the others take, and what is done after them.
        notes: What a reader should know, told at the beginning.
    """

    plan: Plan
    records: Sequence[RunRecord]
    done: Mapping[str, int]
    seconds_left: float
    notes: Sequence[str] = field(default=())

    @property
    def announcement(self) -> list[str]:
        """What is to be said at the beginning: notes, how many runs, how long they take."""
        total, done = len(self.plan.runs), sum(self.done.values())
        return announce(total, done, self.seconds_left, self.notes)


Observer = Callable[[Progress], None]


@contextmanager
def observing(progress: bool | Observer | None) -> Iterator[Observer | None]:
    """Give what is told how far a study has come.

    If only that is asked for, it says what is going to be done, and shows a bar.
    """
    if progress is not True:
        yield progress or None
        return
    with bar_from_first_call("run") as show:

        def observe(event: Progress) -> None:
            if not event.records:
                print(*event.announcement, sep="\n", file=sys.stderr, flush=True)
            words = event.records[-1].run.method if event.records else ""
            show(sum(event.done.values()), len(event.plan.runs), words)

        yield observe


def announce(planned: int, done: int, seconds: float, notes: Sequence[str]) -> list[str]:
    """Say what is to be known at the beginning, how many runs there are and how long they take."""
    already = f", {done:,} of them done" if done else ""
    time_left = f"{count(planned, 'run')}{already}; this takes about {duration(seconds)}."
    if done >= planned:
        time_left = f"{count(planned, 'run')}, all of them done."
    return [*notes, time_left]


def begin(
    plan: Plan,
    store: Store,
    workforce: Workforce,
    observer: Observer | None,
    notes: Sequence[str],
    *,
    afterwards: float = 0.0,
) -> Report:
    """Tell an observer, if there is one, that a study begins; return what tells it of records.

    What is done with them takes ``afterwards`` seconds.
    """
    # Not by key: the plan does not know the recipes of the second stage yet.
    places = {_place(own.run) for own in store.records().values()}
    notes = [*notes, *(f"Note: {damage}" for damage in store.damaged)]  # known when they are read
    start = clock.monotonic()
    left = [run for run in plan.runs if _place(run) not in places]
    planned = _estimate(plan, left) / workforce.jobs
    # How much slower than expected all may be: much, if nobody has measured what it takes.
    most = 3.0 if plan.budget is not None and plan.budget.paces else math.inf

    def tell(records: Sequence[RunRecord], seconds: float, notes: Sequence[str] = ()) -> None:
        if observer is not None:
            done = Counter(method for _, method, _, _ in places)
            observer(Progress(plan, records, done, seconds + afterwards, notes))

    def finished(records: Sequence[RunRecord]) -> None:
        places.update(_place(own.run) for own in records)
        # Recipes, methods and baselines take unequally long, so that counting them tells little.
        others = [run for run in plan.runs if _place(run) not in places]
        rest = _estimate(plan, others) / workforce.jobs
        passed = clock.monotonic() - start
        # A tenth of all as if it had gone as expected: the first runs are the shortest ones.
        slower = (passed + planned / 10) / (planned - rest + planned / 10) if planned else 1.0
        tell(records, rest * min(max(slower, 0.5), most) if others else 0.0)

    tell((), planned, notes)
    return finished


def _estimate(plan: Plan, runs: Sequence[Run]) -> float:
    """Return about how long some runs of a plan take one worker."""
    measured: list[Run] = []
    if plan.budget is not None and plan.budget.paces:
        measured = [run for run in runs if not run.is_baseline]
        runs = [run for run in runs if run.is_baseline]
        if plan.problem.is_repeated:  # they are fitted once
            runs = [run for run in runs if run.split == 0]
    seconds = 0.0 if plan.budget is None else plan.budget.seconds(measured)
    return seconds + estimate_seconds(runs, {plan.problem.name: plan.problem})


def _place(run: Run) -> tuple[str | None, str, int | None, int]:
    return run.stage, run.method, run.trial, run.split
