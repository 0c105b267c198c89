"""Baselines, to stand beside every study: mean, last value, ridge, gradient boosting."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regaug._registry import lookup
from regaug.data.base import Part, Split
from regaug.data.scaling import Scaler, StandardizedSplit, Values
from regaug.exceptions import ArgumentError
from regaug.metrics import METRICS, MetricName
from regaug.training.results import RunResult, versions
from regaug.training.scores import Predict, own_targets, own_units, score_parts
from regaug.training.settings import Settings

# What predicts a part, and what was chosen on the validation rows.
Fitted = tuple[Predict, dict[str, Any]]

# Ridge and boosting need all inputs of a part in memory, in float64: at most 0.4 GB.
LARGEST = 50_000_000
PENALTIES = np.logspace(-2, 6, 17)
# Trees are added in rounds, until one is without a better validation error.
ROUND, MOST_TREES = 50, 2000
_CHUNK = 256


def fit_baseline(
    name: str, split: Split, *, seed: int = 0, metric: MetricName = "rmse"
) -> RunResult:
    """Fit one of the baselines and score it as any other method.

    - ``"mean"``: the mean of the training targets.
    - ``"last-value"``: the last row of the window; for series, where the inputs are
      ``(n, window, columns)`` and the columns are the targets.
    - ``"ridge"``: linear regression on standardized inputs, with the squared penalty (of 17, from
      0.01 to a million) that is best on the validation rows.
    - ``"boosting"``: scikit-learn's histogram gradient boosting, an ensemble per target, with the
      number of trees that is best on the validation rows.

    Test rows are predicted and scored, and decide nothing.

    Args:
        name: One of the names above; :func:`baseline_names` tells which can be used.
        split: A split without missing values, with or without a scale.
        seed: Seed of the boosting; the others draw nothing.
        metric: What is best on the validation rows.

    Returns:
        A result without history and weights; ``settings.method_settings`` holds what was chosen.

    Example:
        >>> from regaug.data.datasets.synthetic import make_manifold
        >>> split = make_manifold("line", n=100).split()
        >>> result = fit_baseline("ridge", split)
        >>> result.settings.method_settings, result.scores["test"].rmse < 1e-3
        ({'penalty': 0.01}, True)
    """
    start = time.perf_counter()
    row = lookup("baseline", name, BASELINES)
    settings = Settings(seed=seed, metric=metric)
    if (obstacle := _obstacle(name, split)) is not None:
        raise ArgumentError(f"`split` must suit {name!r}: {obstacle}")
    predict, chosen = row(split, settings)
    scores, predictions = score_parts(split, predict)
    return RunResult(
        method=name,
        settings=replace(settings, method_settings=chosen),
        scores=scores,
        predictions=predictions,
        seconds=time.perf_counter() - start,
        made_by=versions() | {"scikit-learn": version("scikit-learn")},
    )


def baseline_names(split: Split) -> tuple[str, ...]:
    """Return the names of the baselines that can be fitted to a split.

    The mean always can. The last value needs a series; ridge and boosting need inputs that fit into
    memory, at most 50 million numbers in a part: tables, and series of a few columns.
    """
    return tuple(name for name in BASELINES if _obstacle(name, split) is None)


def _obstacle(name: str, split: Split) -> str | None:
    """Say why a row cannot be fitted to a split; None if it can."""
    shape, targets = tuple(split.train.x.shape), split.train.y.shape[1]
    if name == "last-value" and (len(shape) != 3 or shape[2] != targets):
        return (
            "the last value needs inputs (n, window, columns) whose columns are the "
            f"{targets} target(s), got {shape}."
        )
    largest = max(math.prod(part.x.shape) for part in split.parts.values())
    if name in ("ridge", "boosting") and largest > LARGEST:
        return f"a part's inputs must be at most {LARGEST} numbers, got {largest}."
    return None


def _mean(split: Split, settings: Settings) -> Fitted:
    mean = split.train.y.double().mean(dim=0)
    return lambda part: mean.expand(len(part), -1).to(part.y.dtype), {}


def _last_value(split: Split, settings: Settings) -> Fitted:
    def predict(part: Part) -> Tensor:
        # All windows at once may be more than the memory holds.
        chunks = [part.x[i : i + _CHUNK][:, -1] for i in range(0, len(part), _CHUNK)]
        last = torch.cat(chunks)
        if not isinstance(split, StandardizedSplit) or split.x_scaler is split.y_scaler:
            return last
        raw = last.double() if split.x_scaler is None else split.x_scaler.inverse(last.double())
        return split.y_scaler.transform(raw).to(part.y.dtype)

    return predict, {}


def _ridge(split: Split, settings: Settings) -> Fitted:
    from sklearn.linear_model import Ridge

    scaler = Scaler.fit(_flat(split.train))

    def inputs(part: Part) -> Values:
        return scaler.transform(_flat(part)).numpy()

    x, y = inputs(split.train), split.train.y.double().numpy()
    models = [Ridge(alpha=penalty).fit(x, y) for penalty in PENALTIES]
    x = inputs(split.validation)
    errors = _errors((model.predict(x) for model in models), split, settings.metric)
    best, chosen = (values[np.argmin(errors)] for values in (models, PENALTIES))
    return lambda part: _like(best.predict(inputs(part)), part), {"penalty": float(chosen)}


def _boosting(split: Split, settings: Settings) -> Fitted:
    from sklearn.ensemble import HistGradientBoostingRegressor

    # Early stopping of its own would set other rows aside than the split's.
    options = {"early_stopping": False, "warm_start": True, "random_state": settings.seed}
    models = [HistGradientBoostingRegressor(**options) for _ in range(split.train.y.shape[1])]

    def stages(part: Part, first: int) -> Iterator[Values]:
        """Yield predictions with ``first`` + 1 trees per target, with one more, and so on."""
        x = _flat(part).numpy()
        columns = zip(*(model.staged_predict(x) for model in models), strict=True)
        return (np.column_stack(stage) for stage in islice(columns, first, None))

    x, y = _flat(split.train).numpy(), split.train.y.double().numpy()
    errors: list[float] = []
    while len(errors) < MOST_TREES:
        for model, column in zip(models, y.T, strict=True):
            model.set_params(max_iter=len(errors) + ROUND).fit(x, column)
        errors += _errors(stages(split.validation, len(errors)), split, settings.metric)
        best = int(np.argmin(errors))
        if best < len(errors) - ROUND:
            break
    return lambda part: _like(next(stages(part, best)), part), {"trees": best + 1}


def _errors(candidates: Iterable[Values], split: Split, metric: str) -> list[float]:
    """Return an error on the validation rows for each candidate's predictions of them."""
    target = own_targets(split, split.validation).double()
    score = METRICS[metric]
    errors = []
    for candidate in candidates:
        prediction = own_units(split, torch.from_numpy(candidate).reshape(target.shape))
        errors.append(score.sign * score.function(prediction, target).item())
    if any(map(math.isnan, errors)):
        raise ArgumentError(
            f"`metric` must be defined on the validation rows, got {metric!r}: their targets are "
            f"all {'zero' if metric == 'mape' else 'constant'}. Take 'rmse'."
        )
    return errors


def _flat(part: Part) -> Tensor:
    return part.x[:].flatten(1).double()


def _like(values: Values, part: Part) -> Tensor:
    return torch.from_numpy(values).reshape(part.y.shape).to(part.y.dtype)


BASELINES: dict[str, Callable[[Split, Settings], Fitted]] = {
    "mean": _mean,
    "last-value": _last_value,
    "ridge": _ridge,
    "boosting": _boosting,
}
