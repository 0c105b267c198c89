"""A baseline on a split: fitted, and scored as any other method."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version

import torch
from torch import Tensor

from regaug._registry import lookup
from regaug.augment.structures import join
from regaug.data.base import Part, Split
from regaug.data.scaling import StandardizedSplit, standardize
from regaug.data.several import is_numeric
from regaug.exceptions import ArgumentError
from regaug.metrics import METRICS, MetricName
from regaug.training.baselines.base import Error, Fitted, Rows
from regaug.training.baselines.mean import Mean
from regaug.training.baselines.predictors import fit_predictor
from regaug.training.results import RunResult, versions
from regaug.training.scores import Predict, own_targets, own_units, score_parts
from regaug.training.settings import Settings

BASELINES = ("mean", "last-value", "ridge", "boosting", "trees", "gp")
# The last four need all inputs of a part in memory, in float64: at most 0.4 GB.
LARGEST = 50_000_000
# What takes minutes, or a large file, beyond so many training rows, or numbers in them.
MOST_ROWS: Mapping[str, int] = {"trees": 50_000, "gp": 2_000}
MOST_NUMBERS = 2_500_000
_CHUNK = 256


def fit_baseline(
    name: str, split: Split, *, seed: int = 0, metric: MetricName = "rmse"
) -> RunResult:
    """Fit one of the baselines and score it as any other method.

    - ``"mean"``: the mean of the training targets.
    - ``"last-value"``: the last row of the window; for series, where the inputs are
      ``(n, window, columns)`` and the columns are the targets.
    - ``"ridge"``: linear regression with a squared penalty, one of 17 from 0.01 to a million.
    - ``"boosting"``: scikit-learn's histogram gradient boosting, an ensemble per target, with one
      of three settings and a number of trees.
    - ``"trees"``: scikit-learn's extremely randomized trees, with one of three settings.
    - ``"gp"``: a Gaussian process per target, with one length for all columns or one for each.

    They see the split as the nets do, standardized. What there is to choose is chosen by the error
    on the validation rows in the target's own units. Test rows are predicted and scored, and decide
    nothing.

    Args:
        name: One of the names above; :func:`baseline_names` tells which can be used.
        split: A split without missing values, with or without a scale. In the scale of logarithms,
            ``standardize(split, log=True)``, it is the logarithms that are fitted.
        seed: Seed of what is drawn.
        metric: The error, or the agreement, that chooses.

    Returns:
        A result without history and weights. ``settings.method_settings`` holds what was chosen;
        ``predictor`` is what predicts, in the scale of ``standardize(split)``.

    Example:
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> split = make_manifold("line", n=100).split()
        >>> result = fit_baseline("ridge", split)
        >>> result.settings.method_settings, result.scores["test"].rmse < 1e-3
        ({'penalty': 0.01}, True)
    """
    start = time.perf_counter()
    lookup("baseline", name, dict.fromkeys(BASELINES))
    settings = Settings(seed=seed, metric=metric)
    if (obstacle := _obstacle(name, split)) is not None:
        raise ArgumentError(f"`split` must suit {name!r}: {obstacle}")
    # The last value is read off the window, in whatever scale that is.
    split = split if name == "last-value" else standardize(split)
    fitted, predict = _fit(name, split, settings)
    scored = score_parts(split, predict)
    return RunResult(
        method=name,
        settings=replace(settings, method_settings={} if fitted is None else fitted.chosen),
        scores=scored.scores,
        predictions=scored.predictions,
        predictor=None if fitted is None else fitted.predictor,
        seconds=time.perf_counter() - start,
        predict_seconds=scored.seconds,
        made_by=versions() | {"scikit-learn": version("scikit-learn")},
    )


def baseline_names(split: Split) -> tuple[str, ...]:
    """Return the names of the baselines that can be fitted to a split.

    The mean always can. The last value needs a series. The others need inputs that are
    floating-point numbers, those of several tensors side by side, and fit into memory, at most 50
    million of them in a part: tables, and series of a few columns. Trees and the Gaussian process
    take at most 2.5 million numbers in the training part, trees in up to 50,000 rows, the process
    in up to 2,000.
    """
    return tuple(name for name in BASELINES if _obstacle(name, split) is None)


def _obstacle(name: str, split: Split) -> str | None:
    """Say why a baseline cannot be fitted to a split; None if it can."""
    shape, targets = tuple(split.train.x.shape), split.train.y.shape[1]
    if name == "mean":
        return None
    if name == "last-value":
        if len(shape) == 3 and shape[2] == targets:
            return None
        return (
            "the last value needs inputs (n, window, columns) whose columns are the "
            f"{targets} target(s), got {shape}."
        )
    largest = max(math.prod(part.x.shape) for part in split.parts.values())
    if largest > LARGEST:
        return f"a part's inputs must be at most {LARGEST} numbers, got {largest}."
    if name in MOST_ROWS and shape[0] > MOST_ROWS[name]:
        return f"it must have at most {MOST_ROWS[name]} training rows, got {shape[0]}."
    if name in MOST_ROWS and math.prod(shape) > MOST_NUMBERS:
        return (
            f"the training inputs must be at most {MOST_NUMBERS} numbers, got {math.prod(shape)}."
        )
    if not is_numeric(split.train.x):
        return "the inputs must be floating-point numbers, got codes, which have no order."
    return None


def _fit(name: str, split: Split, settings: Settings) -> tuple[Fitted | None, Predict]:
    """Return what was fitted, if anything was, and what predicts a part."""
    if name == "last-value":
        return None, lambda part: _last_value(split, part)
    if name == "mean":  # whatever the inputs are: all of them may be more than the memory holds
        mean = split.train.y.double().mean(dim=0)
        columns = math.prod(split.train.x.shape[1:])
        return Fitted(Mean(mean, columns), {}), lambda part: mean.repeat(len(part), 1)
    train, validation = (Rows(_inputs(part), part.y) for part in (split.train, split.validation))
    error = _error(split, settings.metric)
    fitted = fit_predictor(name, train, validation, seed=settings.seed, error=error)
    return fitted, lambda part: fitted.predictor(_inputs(part))


def _error(split: Split, metric: str) -> Error:
    """Return the error of predictions of the validation rows, as the metric tells it."""
    target = own_targets(split, split.validation).double()
    score = METRICS[metric]

    def error(prediction: Tensor) -> float:
        values = own_units(split, prediction)
        if not bool(values.isfinite().all()):  # exp of a large number
            return math.inf
        found = score.sign * score(values, target, pooled=split.pooled).item()
        if math.isnan(found):
            raise ArgumentError(
                f"`metric` must be defined on the validation rows, got {metric!r}: their targets "
                f"are all {'zero' if metric == 'mape' else 'constant'}. Take 'rmse'."
            )
        return float(found)

    return error


def _last_value(split: Split, part: Part) -> Tensor:
    # All windows at once may be more than the memory holds.
    last = torch.cat([part.x[i : i + _CHUNK][:, -1] for i in range(0, len(part), _CHUNK)])
    if not isinstance(split, StandardizedSplit) or split.x_scaler is split.y_scaler:
        return last
    raw = last.double() if split.x_scaler is None else split.x_scaler.inverse(last.double())
    return split.y_scaler.transform(raw.log() if split.log else raw).to(part.y.dtype)


def _inputs(part: Part) -> Tensor:
    return join("x", part.x[:]).flatten(1).double()
