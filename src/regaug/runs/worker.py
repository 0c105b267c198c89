"""Who does runs: a copy is sent to every process."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from regaug._scripts import blaming
from regaug.data.base import Split
from regaug.exceptions import DivergedError, NonFiniteError
from regaug.problems import Problem
from regaug.runs.nets import write_net
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.training import Machine, RunResult, Settings, fit, fit_many
from regaug.training.baselines import fit_baseline
from regaug.training.settings import Recorded

# What a worker does in one go: runs that share a problem and a method.
Task = tuple[Run, ...]


# Learning curves have a point after so many epochs.
_EVERY = 10


class Worker:
    """Does the runs of some problems.

    With ``details`` the records keep what a report shows: learning curves and some predictions.
    Stacked runs end ``until`` a time, in seconds since 1970, with the best they have then. With a
    study's ``folder`` the weights of every other net are left there: see :mod:`regaug.runs.nets`.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        details: bool = False,
        until: float | None = None,
        folder: Path | None = None,
    ) -> None:
        self.problems: Mapping[str, Problem] = {problem.name: problem for problem in problems}
        self.details, self.until, self.folder = details, until, folder
        self._recorded: tuple[Recorded, ...] = ("train", "validation", "test") if details else ()
        self._prepare = lru_cache(maxsize=32)(self._prepare_split)

    @blaming()
    def do(self, task: Task) -> list[RunRecord]:
        """Return what came out of every run of a task."""
        problem = self.problems[task[0].problem]
        if task[0].is_baseline:
            return [self._fit_baseline(run) for run in task]
        if problem.is_stacked and task[0].can_stack:
            results = fit_many(
                [self._prepare(run.problem, run.split, run.log) for run in task],
                task[0].method,
                [run.settings or Settings() for run in task],
                hidden=problem.hidden,
                record=dict.fromkeys(self._recorded, _EVERY),
                until=self.until,
            )
        else:
            return [self._fit(run) for run in task]
        return [self._record(*pair) for pair in zip(task, results, strict=True)]

    def _fit_baseline(self, run: Run) -> RunRecord:
        problem = self.problems[run.problem]
        split = self._prepare(run.problem, run.split, run.log)
        try:
            result = fit_baseline(run.method, split, seed=run.seed, metric=problem.metric)
        except NonFiniteError:  # a logarithm far outside of what was seen
            return RunRecord.diverged(run, problem.splits[run.split])
        return self._record(run, result)

    def _fit(self, run: Run) -> RunRecord:
        """Train one net by itself."""
        problem, settings = self.problems[run.problem], run.settings or Settings()
        split = self._prepare(run.problem, run.split, run.log)
        try:
            result = fit(
                problem.make_net(split, run.seed),
                split,
                run.method,
                settings,
                machine=Machine("cpu"),
                record=self._recorded,
            )
        except (DivergedError, NonFiniteError):  # no reason to end all the others
            return RunRecord.diverged(run, problem.splits[run.split])
        if self.folder is not None and problem.kind == "network":
            write_net(self.folder, run, result.weights)
        return self._record(run, result)

    def _record(self, run: Run, result: RunResult) -> RunRecord:
        split = self.problems[run.problem].splits[run.split]
        return RunRecord.of(run, result, split, details=self.details)

    def _prepare_split(self, problem: str, number: int, log: bool) -> Split:
        return self.problems[problem].split(number, log=log)

    def __reduce__(self) -> tuple[object, ...]:
        problems, own = tuple(self.problems.values()), {"details": self.details}
        return partial(type(self), problems, until=self.until, folder=self.folder, **own), ()
