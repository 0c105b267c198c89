"""Who does runs: a copy is sent to every process."""

import math
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from regaug._scripts import blaming
from regaug.data.base import Split
from regaug.exceptions import CheckpointError, DivergedError, NonFiniteError
from regaug.problems import Problem
from regaug.runs.nets import write_net
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.unfinished import CHECKPOINTS, Unfinished, clear_all
from regaug.training import RunResult, Settings, fit, fit_many
from regaug.training.baselines import fit_baseline
from regaug.training.deadline import Deadline, Until
from regaug.training.estimators import NewRows, fit_estimator
from regaug.training.logged import LoggedResult, LoggedTraining
from regaug.training.scores import MOST_TRAINING_ROWS
from regaug.training.settings import Recorded

# What a worker does in one go: runs that share a problem and a method.
Task = tuple[Run, ...]
# Learning curves have a point after so many epochs.
_EVERY = 10
# A study may look at training and test rows for this share of the time that training takes.
_LOOKING = 0.02


class Worker:
    """Does the runs of some problems, networks on the accelerator that is there.

    A run of a network of the user's own, if there is a ``folder``, keeps its state there while it
    trains, so that whoever does it again goes on from there, and leaves the weights of its best
    epoch (``nets/<key of the run>.safetensors``) when it has finished. It pauses when it is asked
    to (:meth:`pause`).

    Args:
        problems: What the runs are of.
        details: Keep what a report shows in the records: learning curves and some predictions.
        until: A time, in seconds since 1970. Stacked runs end then with the best they have, and
            networks pause, if there is a folder.
        folder: A study's folder. Where it is not there, as on another machine with disks of its
            own, nothing is kept.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        details: bool = False,
        until: Until | None = None,
        folder: str | Path | None = None,
    ) -> None:
        self.problems: Mapping[str, Problem] = {problem.name: problem for problem in problems}
        self.details, self.until = details, until
        # A process of Ray works in another folder than this one.
        self.folder = None if folder is None else Path(folder).absolute()
        self._session = secrets.token_hex(8)
        self._recorded: tuple[Recorded, ...] = ("train", "validation", "test") if details else ()
        self._prepare = lru_cache(maxsize=32)(self._prepare_split)

    @blaming()
    def do(self, task: Task) -> list[RunRecord]:
        """Return what came out of every run of a task, but of networks that are not finished.

        Those have paused, or another process trains them.
        """
        problem = self.problems[task[0].problem]
        if task[0].is_baseline:
            return self._fit_baselines(task, problem)
        if problem.kind == "estimator":
            return [self._fit_estimator(run) for run in task]
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
            records = [self._fit(run) for run in task]
            return [record for record in records if record is not None]
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

    def pause(self) -> None:
        """Ask the copies of this worker, wherever they are, to pause networks after an epoch."""
        if self._flag is not None:
            with suppress(OSError):
                self._flag.parent.mkdir(exist_ok=True)
                self._flag.touch()

    def resume(self) -> None:
        """Take back what :meth:`pause` has asked for."""
        if self._flag is not None:
            with suppress(OSError):
                self._flag.unlink(missing_ok=True)
                self._flag.parent.rmdir()  # if there is nothing else in it

    def forget(self, run: Run) -> None:
        """Remove the state of a run whose record is safe."""
        if self.folder is not None and self._is_kept(run):
            Unfinished(self.folder, run).clear()

    def forget_all(self) -> None:
        """Remove the states of all runs: those that are there will never go on."""
        if self.folder is not None:
            clear_all(self.folder)

    @property
    def _flag(self) -> Path | None:
        """The file that asks for a pause, not in others who work on the same folder."""
        if self.folder is None or all(own.is_stacked for own in self.problems.values()):
            return None
        return self.folder / CHECKPOINTS / f"pause-{self._session}"

    def _is_kept(self, run: Run) -> bool:
        problem = self.problems[run.problem]
        return not run.is_baseline and not problem.is_stacked and problem.kind != "estimator"

    def _fit(self, run: Run) -> RunRecord | None:
        """Train one net by itself; None if it has paused, or somebody else does it."""
        if self.folder is None or not self._is_kept(run) or not self.folder.is_dir():
            return self._train(run)[0]
        until = self.until.until if isinstance(self.until, Deadline) else self.until
        unfinished = Unfinished(self.folder, run, until=until, flag=self._flag)
        claim = unfinished.claim()
        if claim is None:
            return None
        is_finished = False
        try:
            record, result = self._train(run, unfinished)
            is_finished = record.ending not in ("paused", "stopped")
            if is_finished and result is not None and record.scores:
                write_net(self.folder, run, result.weights)
        finally:
            # Who stores the record of a finished run forgets its state, and the claim with it.
            claim.end(keep=is_finished)
        return None if record.ending == "stopped" else record

    def _fit_estimator(self, run: Run) -> RunRecord:
        """Fit a regressor, on the rows of the split and on new ones."""
        problem, split = self.problems[run.problem], self.problems[run.problem].splits[run.split]
        new = NewRows(run.method, problem.rows_for(run.split), problem.keep_integers)
        model = problem.make_regressor(split, run.seed)
        try:
            result = fit_estimator(model, split, run.settings, new)
        except NonFiniteError:
            return RunRecord.diverged(run, split)
        return self._record(run, result)

    def _train(
        self, run: Run, unfinished: Unfinished | None = None
    ) -> tuple[RunRecord, RunResult | LoggedResult | None]:
        """Return what came out of a training, without a result if it has diverged."""
        problem, settings = self.problems[run.problem], run.settings or Settings()
        if problem.lightning is not None:  # whose checkpoints would be pickle files
            return self._train_logged(problem.lightning, run)
        split = self._prepare(run.problem, run.split, run.log)
        while True:
            try:
                net = problem.make_net(split, run.seed)
                result = fit(
                    net,
                    split,
                    run.method,
                    settings,
                    checkpoint=unfinished,
                    record=dict.fromkeys(self._recorded, look_every(split)),
                )
                return self._record(run, result), result
            except (DivergedError, NonFiniteError):  # no reason to end all the others
                return RunRecord.diverged(run, problem.splits[run.split]), None
            except CheckpointError:
                # Damaged, or the network is another one now: go on from the one before, if that
                # can be used, or from the beginning.
                if unfinished is None or not unfinished.drop_latest():
                    raise

    def _train_logged(
        self, training: LoggedTraining, run: Run
    ) -> tuple[RunRecord, LoggedResult | None]:
        """Train once by somebody else's trainer."""
        split = self.problems[run.problem].splits[run.split]
        try:
            result = training.train(run.split, run.method, run.settings or Settings())
        except (DivergedError, NonFiniteError):  # of an augmentation, on what was left of a net
            return RunRecord.diverged(run, split), None
        return RunRecord.of_logged(run, result, split, details=self.details), result

    def _record(self, run: Run, result: RunResult) -> RunRecord:
        split = self.problems[run.problem].splits[run.split]
        return RunRecord.of(run, result, split, details=self.details)

    def _prepare_split(self, problem: str, number: int, log: bool) -> Split:
        if self.problems[problem].is_repeated and number:  # one copy is enough
            return self._prepare(problem, 0, log)
        return self.problems[problem].split(number, log=log)

    def __reduce__(self) -> tuple[object, ...]:
        make = partial(type(self), details=self.details, until=self.until, folder=self.folder)
        return make, (tuple(self.problems.values()),), {"_session": self._session}


def look_every(split: Split) -> int:
    """Return after how many epochs learning curves have a point, so that it costs little.

    A row takes about three times as long to train on as to predict.

    Example:
        >>> from regaug.data import load
        >>> look_every(load("diabetes").split(seed=0))
        20
    """
    train, validation, test = (len(part) for part in (split.train, split.validation, split.test))
    looked_at = min(train, MOST_TRAINING_ROWS) + test
    return max(1, math.ceil(looked_at / (_LOOKING * (3 * train + validation))))
