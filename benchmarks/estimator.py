"""AugmentedMLPRegressor against scikit-learn's net: the same layers, batches and epochs.

The budgets are for nets of the same form as scikit-learn's. The recipe's own nets have more columns
and a process that weighs them, so their lines are for information.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from benchmarks.timing import Row, interleaved
from regaug.integrations.sklearn import AugmentedMLPRegressor

ROWS, COLUMNS, BATCH, EPOCHS, REPEATS = 1_000, 20, 32, 10, 11
HIDDEN = (128, 128)
# Without what the recipe puts before the layers, and without its mean of the weights.
SAME_FORM = {"frequencies": 0, "linear": False, "relevance": False, "average": 0.0}


def measure() -> Iterator[Row]:
    cases: list[tuple[str, int, dict[str, Any], float | None]] = [
        ("erm", 1, SAME_FORM, 1.3),
        ("erm", 8, SAME_FORM, 3.0),
        ("foma-rho", 8, SAME_FORM, None),
        ("erm", 1, {}, None),
        ("erm", 8, {}, None),
    ]
    plain, *ours = interleaved([_sklearn_net(), *(_our_nets(*case) for *case, _ in cases)], REPEATS)
    for (method, members, form, budget), seconds in zip(cases, ours, strict=True):
        nets = "1 member" if members == 1 else f"{members} members"
        nets += "" if form else " of the default recipe"
        name = f"estimator, {ROWS:,} x {COLUMNS}, batch {BATCH}: {method}, {nets}"
        yield Row(name, plain, seconds, faster=False, budget=budget)


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, COLUMNS))
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.standard_normal(ROWS)


def _sklearn_net() -> Callable[[], None]:
    net = MLPRegressor(
        hidden_layer_sizes=HIDDEN,
        batch_size=BATCH,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS,  # takes all of them
        random_state=0,
    )
    x, y = _data()

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            net.fit(x, y)

    return fit


def _our_nets(method: str, members: int, form: dict[str, Any]) -> Callable[[], object]:
    nets = AugmentedMLPRegressor(
        method,
        **form,
        members=members,
        hidden_layer_sizes=HIDDEN,
        batch_size=BATCH,
        max_iter=EPOCHS,
        early_stopping=False,
        random_state=0,
    )
    x, y = _data()
    return lambda: nets.fit(x, y)
