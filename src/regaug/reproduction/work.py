"""A run of the reproduction, and how a worker does some of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from regaug import methods
from regaug.data.base import Rules, Split
from regaug.exceptions import DivergedError
from regaug.metrics import METRICS, Scores
from regaug.models import MLP
from regaug.reproduction.sources import find
from regaug.runs.store import run_key
from regaug.runs.worker import Outcome
from regaug.training import RunResult, Settings, fit, fit_many
from regaug.training.baselines import fit_baseline
from regaug.training.results import versions
from regaug.training.stacked import MOST_RUNS


@dataclass(frozen=True)
class Run:
    """One training, or a baseline.

    Attributes:
        data: The data set of the paper that it is about.
        source: What stands for it, as :class:`regaug.reproduction.sources.Source` names it.
        protocol: ``"paper"`` or ``"tuned"``.
        method: The method, or the baseline.
        split: Seed of the split.
        settings: Settings of the training; None for a baseline.
        trial: Place among the settings that were drawn, in the tuned protocol.
    """

    data: str
    source: str
    protocol: Rules
    method: str
    split: int
    settings: Settings | None
    trial: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return all that makes this run, as plain values."""
        return {
            "data": self.data,
            "source": self.source,
            "protocol": self.protocol,
            "method": self.method,
            "split": self.split,
            "trial": self.trial,
            "settings": None if self.settings is None else self.settings.to_dict(),
        }

    @property
    def key(self) -> str:
        """What the store knows this run by."""
        return run_key(self.describe())

    @property
    def can_stack(self) -> bool:
        """Whether the run may train beside others, if it is one of a table."""
        return self.settings is not None and self.settings.method.get("place") != methods.BOTH


Task = tuple[Run, ...]


def make_tasks(runs: Iterable[Run]) -> list[Task]:
    """Put runs of tables that can share a stack together; every other one is a task of its own.

    What a task contains depends on the runs alone, so that results do not depend on the workers.
    The paper's protocol comes first, and early settings of all methods, in case the time runs out.
    """
    runs = list(runs)
    is_table = {data: find(data).net is None for data in {run.data for run in runs}}
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        form: Any = run.key
        if is_table[run.data] and run.can_stack and run.settings is not None:
            form = (
                run.data,
                run.protocol,
                run.method,
                run.settings.batch_size,
                repr(run.settings.method.get("place")),
            )
        groups.setdefault(form, []).append(run)
    tasks = [
        tuple(members[start : start + MOST_RUNS])
        for members in groups.values()
        for start in range(0, len(members), MOST_RUNS)
    ]
    return sorted(tasks, key=_urgency)


def _urgency(task: Task) -> tuple[bool, bool, int]:
    first = task[0]
    return first.protocol == "tuned", first.settings is None, first.trial or 0


class Worker:
    """Does tasks; reads the data itself, wherever it is sent."""

    def do(self, task: Task) -> Outcome:
        """Return key, description and result of every run of a task."""
        first, source = task[0], find(task[0].data)
        splits = {seed: source.split(seed, first.protocol) for seed in {run.split for run in task}}
        if first.settings is None:
            results = [fit_baseline(run.method, splits[run.split], seed=run.split) for run in task]
        elif source.net is None and first.can_stack:
            settings = [run.settings for run in task if run.settings is not None]
            own = [splits[run.split] for run in task]
            results = fit_many(own, first.method, settings, record=())
        else:
            return [
                (run.key, run.describe(), _fit(run, source.net, splits[run.split])) for run in task
            ]
        return [
            (run.key, run.describe(), _summarize(result, splits[run.split]))
            for run, result in zip(task, results, strict=True)
        ]


def _fit(run: Run, make_net: Any, split: Split) -> dict[str, Any]:
    settings = run.settings or Settings()
    if make_net is None:
        net = MLP(split.train.x.shape[1], split.train.y.shape[1], seed=settings.seed)
    else:
        net = make_net(split, settings.seed)
    try:
        result = fit(net, split, run.method, settings, device="cpu", record=())
    except DivergedError:  # a finding, and no reason to end all the others
        nothing = dict.fromkeys(METRICS)
        return {"scores": {"validation": nothing, "test": nothing}, "ending": "diverged"} | {
            "sizes": _sizes(split),
            "made_by": versions(),
        }
    return _summarize(result, split)


def _summarize(result: RunResult, split: Split) -> dict[str, Any]:
    """Return what a store keeps of a result: few numbers, for the files are kept with the code."""
    return {
        "scores": {name: _short(scores) for name, scores in result.scores.items()},
        "best_epoch": result.best_epoch,
        "epochs": len(result.history),
        "ending": result.ending,
        "seconds": round(result.seconds, 3),
        "sizes": _sizes(split),
        "made_by": dict(result.made_by),
        **({} if result.history else {"chosen": dict(result.settings.method)}),
    }


def _sizes(split: Split) -> list[int]:
    return [len(part) for part in (split.train, split.validation, split.test)]


def _short(scores: Scores) -> dict[str, Any]:
    """Return the metrics of some predictions, overall and in the worst group."""
    numbers: dict[str, Any] = {name: _digits(getattr(scores, name)) for name in METRICS}
    if scores.groups:
        numbers["worst"] = {}
        for name in ("rmse", "pearson"):
            known = [g for g in scores.groups.values() if getattr(g, name) is not None]
            if known:
                numbers["worst"][name] = _digits(scores.worst(name)[1])
    return numbers


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
