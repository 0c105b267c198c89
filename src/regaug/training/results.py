"""What a training leaves behind: its history, which decides when it ends, and its result."""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regaug._files import JSON
from regaug._version import __version__
from regaug.metrics import METRICS, Scores
from regaug.training.predictor import Predictor
from regaug.training.settings import Settings

Ending = Literal["finished", "early", "behind", "paused", "stopped", "diverged"]


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    return {
        "regaug": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "sklearn": _sklearn(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


@cache
def _sklearn() -> str:
    return metadata.version("scikit-learn")


@dataclass(frozen=True)
class Epoch:
    """One line of a training's history; errors are in the target's own units, if it is one.

    Of several targets they are as a study compares them (:class:`regaug.metrics.Metric`).

    Attributes:
        loss: Mean loss over the epoch's batches, as the optimizer saw them.
        train: Error on training rows as they are, None if it was not asked for.
        validation: Error on the validation rows; NaN if there are none.
        test: Error on the test rows, None if it was not asked for. Nothing is chosen by it.
    """

    loss: float
    train: float | None
    validation: float
    test: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """One training: what was asked for, how it went, and what came out.

    Attributes:
        method: Name of the method.
        settings: All settings, the method's own completed by its defaults.
        history: A line for every epoch.
        best_epoch: The epoch with the best validation error, counted from 1, or the last one if
            there are no validation rows; the scores, the predictions and the weights are those of
            its end. 0 if there is none.
        ending: ``"finished"`` all epochs, ``"early"`` for want of progress, ``"behind"`` others of
            its stack, ``"paused"`` after the epochs of ``stop_after``, ``"stopped"`` as the time
            was up or somebody asked for it, or ``"diverged"``.
        scores: Scores of ``"validation"`` and ``"test"`` and of further parts, by name.
        predictions: Predictions ``(n, m)`` for the same parts, in the target's own units.
        weights: The model's state, parameters and buffers by name.
        predictor: What predicts, if it was a baseline: from flat inputs ``(n, d)`` to ``(n, m)``,
            in the scale of the split.
        seconds: Time it took.
        predict_seconds: Time that predicting one test row took; None without such rows.
        cuts: Of FOMA: how often a batch of so many singular values had a cut k, as ``(k, values,
            batches)``; -1 for a cut that could not be estimated. Empty for other methods.
        made_by: Versions of what it was made with.
    """

    method: str
    settings: Settings
    history: tuple[Epoch, ...] = ()
    best_epoch: int = 0
    ending: Ending = "finished"
    scores: Mapping[str, Scores]
    predictions: Mapping[str, Tensor] = field(repr=False)
    weights: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    predictor: Predictor | None = field(default=None, repr=False)
    seconds: float
    predict_seconds: float | None = None
    cuts: tuple[tuple[int, int, int], ...] = ()
    made_by: Mapping[str, str] = field(default_factory=versions, repr=False)

    def to_dict(self) -> dict[str, JSON]:
        """Return everything but the tensors as plain values, for a JSON file."""
        plain = vars(self) | {
            "settings": self.settings.to_dict(),
            "history": [asdict(epoch) for epoch in self.history],
            "scores": {name: scores.to_dict() for name, scores in self.scores.items()},
            "made_by": dict(self.made_by),
        }
        large = ("predictions", "weights", "predictor")
        return {name: plain[name] for name in plain if name not in large}


def is_best(history: Sequence[Epoch], best_epoch: int, settings: Settings) -> bool:
    """Tell whether the last epoch has a better validation error than the best one before it."""
    sign, new = METRICS[settings.metric].sign, history[-1].validation
    if not best_epoch:  # any number is better than none
        return not math.isnan(new)
    return sign * new < sign * history[best_epoch - 1].validation


def why_end(done: int, best_epoch: int, settings: Settings) -> Ending | None:
    """Return why there is no further epoch when so many are done; None if there is one."""
    if done >= settings.epochs:
        return "finished"
    if settings.patience is not None:
        wait = max(settings.patience, settings.patience_share * best_epoch)
        if done - best_epoch >= wait:
            return "early"
    is_paused = settings.stop_after is not None and done >= settings.stop_after
    return "paused" if is_paused else None
