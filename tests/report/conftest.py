"""A study without a training: runs made of random numbers."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regaug.runs.store import Store, StoredRun
from regaug.studies.study import Study
from regaug.training.settings import Settings

EFFECTS = {"erm": 1.0, "c-mixup": 0.93, "foma-rho": 1.0, "mixup": 1.12}
BASELINES = {"mean": 1.6, "ridge": 1.04, "boosting": 1.02}


def _scores(error: float, groups: Sequence[str]) -> dict[str, Any]:
    own = {"n": 60, "rmse": error, "mae": 0.8 * error, "mape": None, "n_zero": 0}
    own |= {"r2": 1 - error / 100, "pearson": 1 - error / 120, "groups": {}}
    factors = np.linspace(0.8, 1.5, len(groups))
    by_group = {
        name: own | {"rmse": factor * error} for name, factor in zip(groups, factors, strict=True)
    }
    return own | {"groups": by_group}


def _result(
    rng: np.random.Generator, error: float, groups: Sequence[str], *, is_net: bool
) -> dict[str, Any]:
    true = rng.normal(150.0, 70.0, 80)
    result: dict[str, Any] = {
        "scores": {part: _scores(error, groups) for part in ("validation", "test")},
        "best_epoch": 0,
        "ending": "finished",
        "seconds": 0.2 * float(rng.uniform(0.8, 1.2)),
        "made_by": {"regaug": "0.1.0", "torch": "2.13.0"},
        "sample": {
            "true": [[float(v)] for v in true],
            "predicted": [[float(v)] for v in true + error * rng.normal(size=80)],
        },
    }
    if is_net:
        epochs = int(rng.integers(30, 90))
        steps = np.arange(epochs)
        train = error * (0.65 + 1.3 * np.exp(-steps / 6) - 0.002 * steps)
        test = error * (1.0 + 1.1 * np.exp(-steps / 5) + 0.0015 * steps)
        result["best_epoch"] = epochs - 20
        result["history"] = {
            "loss": (train / 50).tolist(),
            "train": train.tolist(),
            "validation": test.tolist(),
            "test": test.tolist(),
        }
    return result


def _plan(
    *,
    methods: Sequence[str] = tuple(EFFECTS),
    splits: int = 6,
    trials: int = 3,
    finished: int | None = None,
    name: str = "houses",
    groups: Sequence[str] = (),
    metric: str = "rmse",
    change: Callable[[StoredRun], StoredRun] = lambda run: run,
) -> tuple[dict[str, Any], list[StoredRun]]:
    rng = np.random.default_rng(0)
    hardness = rng.uniform(50.0, 60.0, splits)
    configuration = {
        "data": {"name": name, "rows": 500, "columns": 10, "targets": 1, "checksum": "0"},
        "methods": list(methods),
        "baselines": list(BASELINES),
        "reference": "erm",
        "trials": trials,
        "splits": splits,
        "metric": metric,
        "seed": 0,
        "epochs": 200,
        "patience": 20,
        "hidden": [128, 128],
        "independent": False,
        "test_share": 1 / 3,
    }
    plan: list[tuple[str, int | None]]
    plan = [(name, trial) for name in methods for trial in range(finished or trials)]
    plan += [(name, None) for name in BASELINES]
    runs = []
    for (method, trial), split in product(plan, range(splits)):
        effect = EFFECTS.get(method) or BASELINES.get(method, 1.02)
        error = float(hardness[split] * effect * rng.uniform(0.99, 1.01))
        run: dict[str, Any] = {"method": method, "split": split, "seed": 0}
        if trial is not None:
            settings = Settings(epochs=200, patience=20, learning_rate=0.00123456789 * (trial + 1))
            run |= {"trial": trial, "log": False, "settings": settings.to_dict()}
        result = _result(rng, error, groups, is_net=trial is not None)
        runs.append(change(StoredRun(f"{method} {trial} {split}", run, result)))
    return configuration, runs


@pytest.fixture
def make_study() -> Callable[..., Study]:
    """A function that makes a study; its arguments change the methods, the data and the runs."""
    return lambda **changes: Study.read(*_plan(**changes))


@pytest.fixture
def write_study() -> Callable[..., None]:
    """A function that writes the runs of such a study into a folder."""

    def write(folder: Path, **changes: Any) -> None:
        configuration, runs = _plan(**changes)
        store = Store(folder, configuration)
        for run in runs:
            store.add(run.key, run.run, run.result)

    return write
