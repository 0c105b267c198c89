"""What a blend may be made of: nets and baselines, each fitted on all folds of a table but one."""

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from regaug import _random
from regaug._random import Stream
from regaug.data.base import Rows
from regaug.ensemble.component import Component, Models, Predictors
from regaug.ensemble.members import is_usable, stack_members
from regaug.ensemble.prepared import Prepared
from regaug.formatting import duration
from regaug.problems import Cost, Problem
from regaug.runs.executors import pending, run_here, run_in_processes
from regaug.runs.kept import KeepingWorker, KeptRecord
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.tasks import estimate_seconds, make_tasks
from regaug.training.deadline import Until
from regaug.training.results import RunResult
from regaug.training.settings import Settings

# Seconds of work for which processes are not worth their start, which takes a few itself.
WORTH_PROCESSES = 8.0
# The problems: the targets as they are, and their logarithms.
_PLAIN, _LOG = "plain", "log"


@dataclass(frozen=True)
class FitProgress:
    """How far a fit has come; told when it begins, and whenever something is finished.

    Attributes:
        done: Finished runs of a blend, or epochs of the nets of a method that is named.
        total: All of them; of epochs there may be fewer.
        seconds_left: About how long the others take.
        method: The method or baseline of what has just been finished; empty at the beginning.
        unit: What is counted: ``"run"`` or ``"epoch"``.
    """

    done: int
    total: int
    seconds_left: float
    method: str = ""
    unit: str = "run"

    @property
    def words(self) -> str:
        """What has just been finished, and the time left."""
        left = f"about {duration(self.seconds_left)} left" if 0 < self.done < self.total else ""
        return ", ".join(filter(None, [self.method, left]))


Observer = Callable[[FitProgress], None]


@dataclass(frozen=True, eq=False)
class Try:
    """What is to become a candidate: a method at a recipe, or a baseline.

    Attributes:
        method: The method, or the baseline.
        number: Its place among those of the method.
        log: Whether it fits the logarithm of the targets.
        recipe: What the nets are trained with; None for a baseline.
    """

    method: str
    number: int
    log: bool = False
    recipe: Settings | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method at a recipe, or a baseline, fitted once for every fold.

    Attributes:
        tried: What it is.
        settings: The recipe with the method's own settings; None for a baseline.
        models: What was fitted, a model for each fold.
        predicted: What each row is predicted by the model that has not learned it, ``(n, m)``, in
            the targets' own units.
    """

    tried: Try
    settings: Settings | None
    models: Models = field(repr=False)
    predicted: Tensor = field(repr=False)

    @property
    def is_baseline(self) -> bool:
        """Whether it is no net."""
        return self.tried.recipe is None

    def as_component(self, share: float) -> Component:
        """Return it as a component of a model."""
        return Component(self.tried.method, share, self.models, self.settings)


class Folds:
    """Fits candidates on the folds of a table.

    Args:
        ready: The table.
        folds: Rows that each of the models of a candidate does not learn; each row is in one.
        hidden: Widths of the hidden layers of the nets.
        seed: Decides what is drawn.
        jobs: Worker processes; 1 works in this one.
        total: Runs of all candidates that there will be.
        until: When to begin nothing new, in seconds since 1970, but for what makes the first
            candidate; None for never. Nets that are under way end then.
        observer: Told how far it has come.

    Attributes:
        left_out: What has not become a candidate as the time was up.
        cut_short: Candidates whose nets have not come to their end.
    """

    def __init__(
        self,
        ready: Prepared,
        folds: Sequence[Rows],
        *,
        hidden: Sequence[int],
        seed: int,
        jobs: int,
        total: int,
        until: Until | None = None,
        observer: Observer | None,
    ) -> None:
        self.ready, self.folds, self.seed, self.jobs = ready, folds, seed, jobs
        self.until, self.left_out, self.cut_short = until, list[Try](), list[Try]()
        self._has_one = False
        self.rows = torch.from_numpy(np.concatenate(folds))
        self.target, self.bounds = ready.y[self.rows], ready.bounds(log=ready.may_log)
        scales = {_PLAIN: False} | ({_LOG: True} if ready.may_log else {})
        (_, columns), targets = ready.x.shape, ready.y.shape[1]
        self.problems: Mapping[str, Problem] = {
            name: Problem(
                ready.splits(folds, log=log),
                is_scaled=True,
                name=name,
                hidden=tuple(hidden),
                cost=Cost.of_table(columns, targets, hidden),
            )
            for name, log in scales.items()
        }
        self.total, self.done, self._observer = total, 0, observer
        self._start = time.monotonic()

    def fit(self, tries: Sequence[Try]) -> list[Candidate]:
        """Fit all models of some candidates; those with a model that failed are left out.

        When the time is up, those that are not finished are left out as well.
        """
        if not tries:
            return []
        if self.is_over():
            self.left_out += tries
            return []
        runs = {own: self._runs(own) for own in tries}
        flat = [run for own in runs.values() for run in own]
        expected = estimate_seconds(flat, self.problems)
        if not self.done:
            self._tell(expected * self.total / len(flat) / self.jobs)
        found: dict[str, RunResult] = {}
        finished: set[str] = set()
        for records in self._execute(flat, expected):
            found |= {own.run.key: r for own in records if (r := _result(own)) is not None}
            finished |= {own.run.key for own in records}
            self._has_one |= any(all(run.key in found for run in own) for own in runs.values())
            self.done += len(records)
            passed = time.monotonic() - self._start
            left = passed / self.done * (self.total - self.done)
            self._tell(left, records[-1].run.method)
        made = [self._candidate(own, [found.get(run.key) for run in runs[own]]) for own in tries]
        for own in tries:
            results = [found[run.key] for run in runs[own] if run.key in found]
            if any(run.key not in finished for run in runs[own]):
                self.left_out.append(own)
            elif any(result.ending == "stopped" for result in results):
                self.cut_short.append(own)
        return [candidate for candidate in made if candidate is not None]

    def is_over(self) -> bool:
        """Tell whether the time is up, and there is something to make a model of."""
        return self._has_one and self.until is not None and time.time() > self.until

    def _runs(self, own: Try) -> list[Run]:
        """Return a run for each fold."""
        name, code = _LOG if own.log else _PLAIN, zlib.crc32(own.method.encode())
        numbers = [(code, fold, own.number) for fold in range(len(self.folds))]
        seeds = [_random.derive(Stream.RUNS, self.seed, *place) for place in numbers]
        if own.recipe is None:
            return [Run(name, own.method, fold, seed) for fold, seed in enumerate(seeds)]
        return [
            Run(name, own.method, fold, seed, own.recipe, own.number, own.log)
            for fold, seed in enumerate(seeds)
        ]

    def _execute(self, runs: Sequence[Run], expected: float) -> Iterator[list[RunRecord]]:
        worker = KeepingWorker(list(self.problems.values()), until=self.until)
        planned = make_tasks(runs, self.problems)
        tasks = pending(planned, is_done=lambda task: False, is_over=self.is_over)
        if self.jobs == 1 or expected < WORTH_PROCESSES:
            return run_here(worker, tasks)
        return run_in_processes(worker, tasks, jobs=min(self.jobs, len(planned)))

    def _candidate(self, own: Try, results: Sequence[RunResult | None]) -> Candidate | None:
        kept = [result for result in results if result is not None]
        if len(kept) < len(results):
            return None
        problem, scale = self.problems[_LOG if own.log else _PLAIN], self.ready.scale(log=own.log)
        predicted = torch.cat([result.predictions["validation"].double() for result in kept])
        predicted = self.bounds.clamp(predicted)
        if own.recipe is None:
            found = [result.predictor for result in kept if result.predictor is not None]
            return Candidate(own, None, Predictors(tuple(found), scale), predicted)
        nets = stack_members(kept, problem.splits[0], hidden=problem.hidden, scale=scale)
        return Candidate(own, replace(kept[0].settings, seed=self.seed), nets, predicted)

    def _tell(self, seconds: float, method: str = "") -> None:
        if self._observer is not None:
            self._observer(FitProgress(self.done, self.total, seconds, method))


def _result(record: RunRecord) -> RunResult | None:
    """Return what a run has fitted, if it can be used."""
    if not isinstance(record, KeptRecord) or record.result is None:
        return None
    result = record.result
    return result if record.run.is_baseline or is_usable(result) else None
