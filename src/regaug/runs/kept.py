"""Runs whose weights are wanted, not their scores alone: for a model, not for a store."""

import pickle
from dataclasses import dataclass, field

from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.worker import Worker
from regaug.training.results import RunResult


@dataclass(frozen=True, eq=False)
class KeptRecord(RunRecord):
    """What came out of a run, with all of the result; no store keeps it.

    Attributes:
        result: Weights, predictor and predictions.
    """

    result: RunResult | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # By itself torch sends a tensor to another process as an open file, of which a system
        # allows some hundreds: this is sent as bytes.
        return _unpacked, (pickle.dumps(vars(self)),)


class KeepingWorker(Worker):
    """A worker whose records are :class:`KeptRecord`, but for runs that have diverged."""

    def _record(self, run: Run, result: RunResult) -> RunRecord:
        return KeptRecord(**vars(super()._record(run, result)), result=result)


def _unpacked(content: bytes) -> KeptRecord:
    # From a process of ours, through a pipe.
    return KeptRecord(**pickle.loads(content))  # noqa: S301
