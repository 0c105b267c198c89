"""Who does runs: a copy is sent to every process."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from regaug.data.base import Split
from regaug.exceptions import DivergedError, NonFiniteError
from regaug.problems import Problem
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.training import Machine, RunResult, Settings, fit, fit_many
from regaug.training.baselines import fit_baseline
from regaug.training.checkpoint import Checkpoints
from regaug.training.scores import MOST_TRAINING_ROWS
from regaug.training.settings import Recorded

# What a worker does in one go: runs that share a problem and a method.
Task = tuple[Run, ...]
# The folder of states from which trainings go on, below that of a study.
CHECKPOINTS = "checkpoints"


# Learning curves have a point after so many epochs.
_EVERY = 10


# A study may look at training and test rows for this share of the time that training takes.
_LOOKING = 0.04


class Worker:
    """Does the runs of some problems.

    With ``details`` the records keep what a report shows: learning curves and some predictions.
    Stacked runs end ``until`` a time, in seconds since 1970, with the best they have then. In a
    ``folder`` a training that pauses keeps the state from which it goes on.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        details: bool = False,
        until: float | None = None,
        folder: str | Path | None = None,
    ) -> None:
        self.problems: Mapping[str, Problem] = {problem.name: problem for problem in problems}
        self.details, self.until = details, until
        self.folder = None if folder is None else Path(folder)
        self._recorded: tuple[Recorded, ...] = ("train", "validation", "test") if details else ()
        self._prepare = lru_cache(maxsize=32)(self._prepare_split)

    def do(self, task: Task) -> list[RunRecord]:
        """Return what came out of every run of a task."""
        problem = self.problems[task[0].problem]
        if task[0].is_baseline:
            return self._fit_baselines(task, problem)
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

    def _fit_baselines(self, task: Task, problem: Problem) -> list[RunRecord]:
        if not problem.is_repeated:
            return [self._fit_baseline(run) for run in task]
        # Nothing about a baseline differs between repetitions: it is fitted once.
        firsts = [replace(run, split=0) for run in task]
        found = {run.key: run for run in firsts}
        records = {key: self._fit_baseline(run) for key, run in found.items()}
        return [
            replace(records[first.key], run=run) for run, first in zip(task, firsts, strict=True)
        ]

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
        states = self._checkpoints(run)
        try:
            result = fit(
                problem.make_net(split, run.seed),
                split,
                run.method,
                settings,
                machine=Machine("cpu"),
                checkpoint=None if states is None else states.folder,
                record=dict.fromkeys(self._recorded, look_every(split)),
            )
        except (DivergedError, NonFiniteError):  # no reason to end all the others
            return RunRecord.diverged(run, problem.splits[run.split])
        if states is not None and result.ending != "paused":
            states.clear()
        return self._record(run, result)

    def _checkpoints(self, run: Run) -> Checkpoints | None:
        """Return where a training that pauses, or has paused before, keeps its state."""
        if self.folder is None or run.settings is None:
            return None
        whole = replace(run, settings=replace(run.settings, stop_after=None))
        states = Checkpoints(self.folder / CHECKPOINTS / whole.key)
        return states if run.settings.stop_after or states.latest() else None

    def _record(self, run: Run, result: RunResult) -> RunRecord:
        split = self.problems[run.problem].splits[run.split]
        return RunRecord.of(run, result, split, details=self.details)

    def _prepare_split(self, problem: str, number: int, log: bool) -> Split:
        if self.problems[problem].is_repeated and number:  # one copy is enough
            return self._prepare(problem, 0, log)
        return self.problems[problem].split(number, log=log)

    def __reduce__(self) -> tuple[object, ...]:
        problems = tuple(self.problems.values())
        made = partial(type(self), problems, details=self.details, until=self.until)
        return partial(made, folder=self.folder), ()


def look_every(split: Split) -> int:
    """Return after how many epochs learning curves have a point, so that it costs little.

    A row takes about three times as long to train on as to predict.

    Example:
        >>> from regaug.data import load
        >>> look_every(load("diabetes").split(seed=0))
        11
    """
    train, validation, test = (len(part) for part in (split.train, split.validation, split.test))
    looked_at = min(train, MOST_TRAINING_ROWS) + test
    return max(1, math.ceil(looked_at / (_LOOKING * (3 * train + validation))))
