"""What came out of a run: scores that know their metric, and what a report shows of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, Literal, Self, get_args

import numpy as np

from regaug._files import JSON
from regaug.data.base import Split
from regaug.metrics import METRICS, LoggedScores, Scores, read_scores
from regaug.runs.predictions import MOST_NUMBERS, Predictions, from_text, shorten, to_text
from regaug.runs.run import Run
from regaug.training.logged import LoggedResult
from regaug.training.results import Ending, RunResult, versions
from regaug.training.scores import own_targets

Curve = Literal["loss", "train", "validation", "test"]
# Test rows whose predictions are kept of a run, for the report.
_SHOWN_ROWS = 200
# The parts whose predictions are kept, by their place in the sizes.
_PREDICTED = {"validation": 1, "test": 2}
_NUMBERS = {int, float, type(None)}


@dataclass(frozen=True)
class Sample:
    """Some test rows, ``(n, m)``: their targets and what was predicted for them."""

    true: Sequence[Sequence[float | None]] = ()
    predicted: Sequence[Sequence[float | None]] = ()


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What came out of a run; a store keeps it as a line of JSON.

    Attributes:
        run: What was done.
        scores: Scores by the name of the part, in the target's own units; empty if the run has
            diverged before it had learned anything.
        ending: Why it ended.
        best_epoch: The epoch that the scores are of, counted from 1; 0 for a baseline.
        epochs: How many epochs it took.
        seconds: Time it took.
        predict_seconds: Time that predicting one test row took; None if unknown.
        sizes: Numbers of training, validation and test rows.
        made_by: Versions of what it was made with.
        chosen: What a baseline has chosen on the validation rows, such as its penalty.
        curves: Errors after every epoch by part, and the loss; empty if they were not kept.
        sample: Some predictions; empty if they were not kept.
        predictions: Predictions ``(n, m)``, float32, of the validation and the test rows in the
            target's own units, by part: what an ensemble is made of. Empty if they were not kept.
        cuts: Of FOMA: how often a batch of so many singular values had a cut k, ``(k, values,
            batches)``; -1 for a cut that could not be estimated.
    """

    run: Run
    scores: Mapping[str, Scores]
    ending: Ending
    best_epoch: int
    epochs: int
    seconds: float
    sizes: tuple[int, int, int]
    made_by: Mapping[str, str]
    chosen: Mapping[str, JSON] = field(default_factory=dict)
    curves: Mapping[Curve, Sequence[float | None]] = field(default_factory=dict)
    sample: Sample = Sample()
    predictions: Mapping[str, Predictions] = field(default_factory=dict, repr=False)
    predict_seconds: float | None = field(default=None, repr=False)
    cuts: Sequence[tuple[int, int, int]] = field(default=(), repr=False)

    @classmethod
    def of(cls, run: Run, result: RunResult, split: Split, *, details: bool) -> Self:
        """Return what a store keeps of a result: no weights; curves and predictions if wanted."""
        history = result.history if details else ()
        names: tuple[Curve, ...] = get_args(Curve) if history else ()
        # A run that has diverged before its first good epoch has the scores of untrained weights.
        has_learned = result.ending != "diverged" or result.best_epoch > 0
        return cls(
            run=run,
            scores=result.scores if has_learned else {},
            ending=result.ending,
            best_epoch=result.best_epoch,
            epochs=len(result.history),
            seconds=float(f"{result.seconds:.4g}"),  # short ones are compared too
            sizes=_sizes(split),
            made_by=result.made_by,
            chosen=dict(result.settings.method_settings) if run.is_baseline else {},
            curves={name: [_short(getattr(epoch, name)) for epoch in history] for name in names},
            sample=_sample(result, split) if details and has_learned else Sample(),
            predictions=_predictions(result) if details and has_learned else {},
            predict_seconds=_short(result.predict_seconds) if has_learned else None,
            cuts=result.cuts,
        )

    @classmethod
    def of_logged(cls, run: Run, result: LoggedResult, split: Split, *, details: bool) -> Self:
        """Return what a store keeps of a training that is not ours: the values it has logged."""
        sizes = _sizes(split)
        values = {"validation": (result.validation, sizes[1]), "test": (result.test, sizes[2])}
        has_learned = result.best_epoch > 0
        return cls(
            run=run,
            scores={name: LoggedScores.of(own, n=n) for name, (own, n) in values.items()}
            if has_learned
            else {},
            ending=result.ending,
            best_epoch=result.best_epoch,
            epochs=result.epochs,
            seconds=float(f"{result.seconds:.4g}"),
            sizes=sizes,
            made_by=result.made_by,
            curves={"validation": [_short(own) for own in result.history]} if details else {},
        )

    @classmethod
    def diverged(cls, run: Run, split: Split) -> Self:
        """Return the record of a run that has learned nothing: a finding like any other."""
        return cls(run, {}, "diverged", 0, 0, 0.0, _sizes(split), versions())

    def score(self, part: str, metric: str) -> float | None:
        """Return the value of a metric on a part; None if it is undefined, or the run failed."""
        scores = self.scores.get(part)
        return None if scores is None else scores.value(metric)

    def validation_error(self, metric: str) -> float:
        """Return what runs are chosen by: lower is better for every metric, infinite for failed."""
        return METRICS[metric].error(self.score("validation", metric))

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        plain = vars(self) | {
            "run": self.run.to_dict(),
            "scores": {name: scores.to_dict() for name, scores in self.scores.items()},
            "sizes": list(self.sizes),
            "curves": {name: list(values) for name, values in self.curves.items()},
            "sample": {"true": list(self.sample.true), "predicted": list(self.sample.predicted)},
            "predictions": {part: to_text(own) for part, own in self.predictions.items()},
            "cuts": [list(cut) for cut in self.cuts],
        }
        for name in ("predictions", "predict_seconds", "cuts"):
            if not plain[name]:  # as in records that are older than they are
                del plain[name]
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the record that :meth:`to_dict` wrote down; values that are none are an error."""
        train, validation, test = values["sizes"]
        ending, curves, sample = values["ending"], values["curves"], values["sample"]
        if ending not in get_args(Ending) or not curves.keys() <= set(get_args(Curve)):
            raise ValueError(f"unknown ending {ending!r} or curves {', '.join(curves)}")
        return cls(
            run=Run.from_dict(values["run"]),
            scores={name: read_scores(own) for name, own in values["scores"].items()},
            ending=ending,
            best_epoch=index(values["best_epoch"]),
            epochs=index(values["epochs"]),
            seconds=float(values["seconds"]),
            sizes=(index(train), index(validation), index(test)),
            made_by={str(name): str(own) for name, own in values["made_by"].items()},
            chosen=dict(values["chosen"]),
            curves={name: _numbers(curves[name]) for name in curves},
            sample=_read_sample(sample["true"], sample["predicted"]),
            predictions=_read_predictions(values.get("predictions", {}), values["sizes"]),
            predict_seconds=_numbers([values.get("predict_seconds")])[0],
            cuts=tuple(map(_read_cut, values.get("cuts", ()))),
        )


def _numbers(values: Sequence[float | None]) -> Sequence[float | None]:
    """Return what a file holds if it is a list of numbers, as plots take for granted."""
    if not isinstance(values, list | tuple) or not set(map(type, values)) <= _NUMBERS:
        raise TypeError("not a list of numbers")
    return values


def _read_sample(*rows: Sequence[Sequence[float | None]]) -> Sample:
    """Return the rows of a file if each has a target and as many predictions."""
    true, predicted = (list(map(_numbers, own)) for own in rows)
    if [*map(len, true)] != [*map(len, predicted)] or not all(true):
        raise ValueError("targets and predictions that do not belong together")
    return Sample(true, predicted)


def _read_cut(values: Sequence[int]) -> tuple[int, int, int]:
    k, most, count = map(index, values)
    return k, most, count


def _sizes(split: Split) -> tuple[int, int, int]:
    return len(split.train), len(split.validation), len(split.test)


def _sample(result: RunResult, split: Split) -> Sample:
    rows = np.unique(np.linspace(0, len(split.test) - 1, _SHOWN_ROWS).astype(np.int64))
    true, predicted = (
        [[_short(value) for value in row] for row in values[rows].tolist()]
        for values in (own_targets(split, split.test), result.predictions["test"])
    )
    return Sample(true, predicted)


def _predictions(result: RunResult) -> dict[str, Predictions]:
    """Return the predictions of a result that a record keeps; none if they are too many."""
    kept = {part: own for part, own in result.predictions.items() if part in _PREDICTED}
    if sum(own.numel() for own in kept.values()) > MOST_NUMBERS:
        return {}
    return {part: shorten(own) for part, own in kept.items()}


def _read_predictions(texts: Mapping[str, str], sizes: Sequence[int]) -> dict[str, Predictions]:
    """Return the predictions of a file if they are of as many rows as the parts have."""
    found = {part: from_text(text) for part, text in texts.items()}
    for part, values in found.items():
        if len(values) != sizes[_PREDICTED[part]]:
            raise ValueError(f"predictions of {len(values)} rows for another number of them")
    if len({values.shape[1] for values in found.values()}) > 1:
        raise ValueError("predictions of unequally many targets")
    return found


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")
