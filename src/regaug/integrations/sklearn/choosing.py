"""Choose a method by its error on rows that it was not trained on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regaug import _random
from regaug.data.base import Part
from regaug.integrations.sklearn.rows import StoppingRule
from regaug.training import RunResult, Settings, fit_many

AUTO, PLAIN = "auto", "erm"
# Where this estimator starts from other settings than the method does. Beside annealing, batches of
# nearest targets gained nothing on the average of small tables, and they take longer to make.
STARTS: Mapping[str, Mapping[str, Any]] = {
    "foma": {"sampler": "random"},
    "foma-rho": {"sampler": "random"},
}
CANDIDATES = (PLAIN, "mixup", "c-mixup", "foma-rho")
FEWEST_ROWS = 50  # with fewer than ten rows in a fold, differences between methods are noise


def compare_methods(
    whole: Part, stopping: StoppingRule, settings: Settings, *, hidden: Sequence[int]
) -> dict[str, float]:
    """Return the inner error of every candidate, in standard deviations of the targets.

    Each candidate trains a net, with the method's usual settings, on each of the same five inner
    splits, and is scored on the fifth of the rows that is left out, which neither training nor
    stopping has seen. Where there are too few rows nothing is compared.

    Args:
        whole: All rows, standardized.
        stopping: How nets are stopped.
        settings: Settings of every net; their seed decides the splits.
        hidden: Widths of the hidden layers.

    Returns:
        The mean over the splits of the root mean squared error, by method; infinite for one that
        diverged. Empty if nothing was compared.
    """
    if len(whole) < FEWEST_ROWS:
        return {}
    splits = stopping.inner_splits(whole, settings.seed)
    errors = {}
    for name in CANDIDATES:
        own = [
            replace(
                settings,
                seed=_random.derive(_random.Stream.INNER_RUNS, settings.seed, number),
                method=STARTS.get(name, {}),
            )
            for number in range(len(splits))
        ]
        errors[name] = _mean_error(fit_many(splits, name, own, hidden=hidden, record=()))
    return errors


def best_method(errors: dict[str, float]) -> str:
    """Return the method with the lowest error; of equal ones the first, plain training if none.

    Example:
        >>> best_method({"erm": 0.5, "mixup": 0.4, "foma-rho": 0.4}), best_method({})
        ('mixup', 'erm')
    """
    return min(errors, key=lambda name: errors[name], default=PLAIN)


def _mean_error(results: Sequence[RunResult]) -> float:
    if any(result.best_epoch == 0 for result in results):
        return math.inf
    return float(np.mean([result.scores["test"].rmse for result in results]))
