"""What decides everything about the record of a run: two with one origin are the same."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache

from regaug._files import JSON
from regaug.data.base import Split
from regaug.problems import Problem
from regaug.runs.run import Run, run_key
from regaug.runs.worker import Task
from regaug.training.results import versions


class Origins:
    """Names the origins of runs.

    What a net becomes depends on the runs that it is trained beside, as those that are far behind
    end early: its origin is its task, the rows of the splits included. A baseline is fitted by
    itself. Runs of a network of the user's own have no origin: its code may have changed.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._problems = {problem.name: problem for problem in problems if problem.is_stacked}
        self._checksum = cache(self._checksum_of)

    def of(self, task: Task) -> dict[str, str]:
        """Return the origin of every run of a task by the run's key, where it has one."""
        if task[0].problem not in self._problems:
            return {}
        if task[0].is_baseline:
            return {run.key: self._name([run]) for run in task}
        return dict.fromkeys((run.key for run in task), self._name(task))

    def _name(self, runs: Sequence[Run]) -> str:
        problem = self._problems[runs[0].problem]
        origin: dict[str, JSON] = {
            "runs": [run.key for run in runs],
            "rows": [self._checksum(problem.name, run.split) for run in runs],
            "hidden": list(problem.hidden),
            "metric": problem.metric,
            "is_scaled": problem.is_scaled,
            "versions": versions(),
        }
        return run_key(origin)

    def _checksum_of(self, problem: str, number: int) -> str:
        return _checksum(self._problems[problem].splits[number])


def _checksum(split: Split) -> str:
    """Return what differs for other rows, or other groups of them."""
    digest = hashlib.sha256()
    for name, part in split.parts.items():
        digest.update(f"{name} {tuple(part.x.shape)} {tuple(part.y.shape)}".encode())
        for values in (part.x[:], part.y):
            digest.update(values.contiguous().numpy().tobytes())
        labels = () if part.groups is None else part.groups
        digest.update("\0".join(str(label) for label in labels).encode("utf-8", "replace"))
    return digest.hexdigest()[:32]
