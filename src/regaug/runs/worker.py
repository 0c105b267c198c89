"""The pieces of work that a study consists of, and how one is done in a worker process."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch

from regaug import _random
from regaug.data.base import Part, Split
from regaug.data.scaling import StandardizedSplit, standardize
from regaug.studies.search import Trial
from regaug.runs.store import run_key
from regaug.training import RunResult, fit_many
from regaug.training.baselines import fit_baseline
from regaug.training.settings import Metric
from regaug.training.stacked import MOST_RUNS

# Test rows whose predictions are kept of every run, for the report.
_SHOWN_ROWS = 200


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study: a trial on a split, or a baseline (without a trial).

    Attributes:
        name: The method, or the baseline.
        split: Number of the split.
        seed: Seed of the run.
        trial: The trial; None for a baseline.
        metric: The error that counts.
    """

    name: str
    split: int
    seed: int
    trial: Trial | None
    metric: Metric

    def describe(self) -> dict[str, Any]:
        """Return all that makes this run, as plain values."""
        described: dict[str, Any] = {"method": self.name, "split": self.split, "seed": self.seed}
        if self.trial is not None:
            settings = replace(self.trial.settings, seed=self.seed).to_dict()
            described |= {"trial": self.trial.number, "log": self.trial.log, "settings": settings}
        return described

    @property
    def key(self) -> str:
        """What the store knows this run by."""
        return run_key(self.describe())


Task = tuple[Any, ...]  # what a worker does in one go: runs, each with its key
# What it makes of one: key, description and result of every run.
Outcome = list[tuple[str, dict[str, Any], dict[str, Any]]]


class Works(Protocol):
    """Who does tasks; a copy is sent to every process."""

    def do(self, task: Any) -> Outcome:
        """Return key, description and result of every run of a task."""


def plan_runs(
    trials: Mapping[str, Sequence[Trial]],
    baselines: Sequence[str],
    *,
    splits: int,
    seed: int,
    metric: Metric,
) -> list[PlannedRun]:
    """Return all runs of a study."""
    planned = [
        PlannedRun(method, split, _run_seed(seed, method, split, trial.number), trial, metric)
        for method, own in trials.items()
        for trial in own
        for split in range(splits)
    ]
    rows = [
        PlannedRun(name, split, seed, None, metric) for name in baselines for split in range(splits)
    ]
    return planned + rows


def make_tasks(runs: Iterable[PlannedRun]) -> list[Task]:
    """Put runs that can share a stack together; early trials of all methods come first.

    What a task contains depends on the plan alone, so that a result does not depend on how many
    workers there are.
    """
    groups: dict[tuple[Any, ...], list[PlannedRun]] = {}
    for run in runs:
        form: tuple[Any, ...] = (run.name,)
        if run.trial is not None:
            own = run.trial.settings
            form = (run.name, own.batch_size, repr(own.method.get("place")))
        groups.setdefault(form, []).append(run)
    tasks = [
        tuple(members[start : start + MOST_RUNS])
        for members in groups.values()
        for start in range(0, len(members), MOST_RUNS)
    ]
    return sorted(tasks, key=lambda task: task[0].trial.number if task[0].trial else -1)


class Worker:
    """Does tasks on the splits of a study.

    Args:
        splits: The splits, in the target's own units.
        hidden: Widths of the net's hidden layers.
    """

    def __init__(self, splits: Sequence[Split], hidden: Sequence[int]) -> None:
        self.hidden = tuple(hidden)
        self._splits = splits
        self._scaled: dict[tuple[int, bool], StandardizedSplit] = {}

    def do(self, task: Task) -> Outcome:
        """Return key, description and result of every run of a task."""
        if task[0].trial is None:
            results = [
                fit_baseline(run.name, self._splits[run.split], seed=run.seed, metric=run.metric)
                for run in task
            ]
        else:
            trials = [run.trial for run in task if run.trial is not None]
            results = fit_many(
                [
                    self._scale(run.split, trial.log)
                    for run, trial in zip(task, trials, strict=True)
                ],
                task[0].name,
                [replace(t.settings, seed=run.seed) for run, t in zip(task, trials, strict=True)],
                hidden=self.hidden,
            )
        return [
            (run.key, run.describe(), _summarize(result, self._splits[run.split]))
            for run, result in zip(task, results, strict=True)
        ]

    def _scale(self, number: int, log: bool) -> StandardizedSplit:
        if (number, log) not in self._scaled:
            self._scaled[number, log] = standardize(self._splits[number], log=log)
        return self._scaled[number, log]

    def __getstate__(self) -> dict[str, Any]:
        # Tensors would travel between processes through shared files; arrays travel as they are.
        return {"hidden": self.hidden, "splits": [_pack(split) for split in self._splits]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hidden, self._scaled = state["hidden"], {}
        self._splits = [_unpack(split) for split in state["splits"]]


def _run_seed(seed: int, method: str, split: int, trial: int) -> int:
    return _random.derive(_random.Stream.RUNS, seed, zlib.crc32(method.encode()), split, trial)


def _summarize(result: RunResult, split: Split) -> dict[str, Any]:
    """Return what a store keeps of a result: no weights, and a few of the predictions."""
    kept = result.to_dict()
    history = kept.pop("history")
    for known in ("method", "settings"):
        kept.pop(known)
    if history:
        kept["history"] = {name: [_short(epoch[name]) for epoch in history] for name in history[0]}
    rows = np.unique(np.linspace(0, len(split.test) - 1, _SHOWN_ROWS).astype(np.int64))
    if not history:  # a baseline: the penalty or the number of trees it has chosen
        kept["chosen"] = dict(result.settings.method)
    kept["sample"] = {
        "true": [[_short(v) for v in row] for row in split.test.y[rows].tolist()],
        "predicted": [
            [_short(v) for v in row] for row in result.predictions["test"][rows].tolist()
        ],
    }
    return kept


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def _pack(split: Split) -> list[dict[str, Any]]:
    return [
        {"x": np.asarray(part.x[:]), "y": part.y.numpy(), "rows": part.rows, "groups": part.groups}
        for part in (split.train, split.validation, split.test)
    ]


def _unpack(parts: Iterable[dict[str, Any]]) -> Split:
    train, validation, test = (
        Part(
            x=torch.from_numpy(part["x"]),
            y=torch.from_numpy(part["y"]),
            rows=part["rows"],
            groups=part["groups"],
        )
        for part in parts
    )
    return Split(train, validation, test)
