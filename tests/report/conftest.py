"""A study without a training: runs made of random numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from regaug.metrics import MetricName, Scores
from regaug.runs.record import Curve, RunRecord, Sample
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.details import Details
from regaug.studies.facts import Facts
from regaug.studies.statistics import analyze
from regaug.studies.steps import Steps
from regaug.studies.study import Study
from regaug.studies.verdict import make_verdict
from regaug.training.settings import Settings

EFFECTS = {"erm": 1.0, "c-mixup": 0.93, "foma-rho": 1.0, "mixup": 1.12}
BASELINES = {"mean": 1.6, "ridge": 1.04, "boosting": 1.02}
Change = Callable[[RunRecord], RunRecord]


def _scores(error: float, groups: Sequence[str]) -> Scores:
    def own(error: float, **more: dict[str, Scores]) -> Scores:
        agreement = {"r2": 1 - error / 100, "pearson": 1 - error / 120}
        return Scores(n=60, rmse=error, mae=0.8 * error, mape=None, n_zero=0, **agreement, **more)

    factors = np.linspace(0.8, 1.5, len(groups))
    by_group = {name: own(float(f) * error) for name, f in zip(groups, factors, strict=True)}
    return own(error, groups=by_group)


def _curves(rng: np.random.Generator, error: float) -> dict[Curve, list[float]]:
    steps = np.arange(int(rng.integers(30, 90)))
    train = error * (0.65 + 1.3 * np.exp(-steps / 6) - 0.002 * steps)
    test = error * (1.0 + 1.1 * np.exp(-steps / 5) + 0.0015 * steps)
    return {
        "loss": (train / 50).tolist(),
        "train": train.tolist(),
        "validation": test.tolist(),
        "test": test.tolist(),
    }


def _record(rng: np.random.Generator, run: Run, error: float, groups: Sequence[str]) -> RunRecord:
    true = rng.normal(150.0, 70.0, 80)
    predicted = true + error * rng.normal(size=80)
    curves = {} if run.is_baseline else _curves(rng, error)
    epochs = len(curves.get("test", ()))
    return RunRecord(
        run=run,
        scores={part: _scores(error, groups) for part in ("validation", "test")},
        ending="finished",
        best_epoch=max(0, epochs - 20),
        epochs=epochs,
        seconds=0.2 * float(rng.uniform(0.8, 1.2)),
        sizes=(300, 100, 100),
        made_by={"regaug": "0.1.0", "torch": "2.13.0"},
        curves=curves,
        sample=Sample(true[:, None].tolist(), predicted[:, None].tolist()),
    )


def make(
    *,
    methods: Sequence[str] = tuple(EFFECTS),
    splits: int = 6,
    trials: int = 3,
    finished: int | None = None,
    name: str = "houses",
    groups: Sequence[str] = (),
    metric: MetricName = "rmse",
    hidden: tuple[int, ...] = (128, 128),
    facts: Facts | None = None,
    combined: bool = False,
    change: Change = lambda record: record,
) -> Study:
    """Make a study; the arguments change the methods, the data and the records."""
    rng = np.random.default_rng(0)
    hardness = rng.uniform(50.0, 60.0, splits)
    config = StudyConfig(
        problem=name,
        methods=tuple(methods),
        baselines=tuple(BASELINES),
        trials=trials,
        splits=splits,
        metric=metric,
        test_share=1 / 3,
        hidden=hidden,
        rows=500,
        columns=10,
    )
    plan: list[tuple[str, int | None]]
    plan = [(name, trial) for name in methods for trial in range(finished or trials)]
    plan += [(name, None) for name in BASELINES]
    records = []
    for (method, trial), split in product(plan, range(splits)):
        effect = EFFECTS.get(method) or BASELINES.get(method, 1.02)
        error = float(hardness[split] * effect * rng.uniform(0.99, 1.01))
        settings = None
        if trial is not None:
            settings = Settings(epochs=200, patience=20, learning_rate=0.00123456789 * (trial + 1))
        run = Run(name, method, split, 0, settings, trial)
        records.append(change(_record(rng, run, error, groups)))
    study = Study.read(config, records, facts=facts)
    return _combine(study) if combined else study


def _combine(study: Study) -> Study:
    """Add an ensemble of all nets and a blend, which no run stands for."""
    comparison = study.comparison
    best = np.min([row.errors for row in comparison.rows if row.is_net], axis=0)
    errors = {row.name: row.errors for row in comparison.rows}
    errors |= {"nets": tuple(0.98 * best), "auto": tuple(0.95 * best)}
    found = analyze(
        errors,
        baselines=tuple(BASELINES),
        combined=("nets", "auto"),
        test_share=comparison.test_share,
    )
    steps = Steps("rmse", ("single net", "ensemble", "augmentation", "blend"), (-0.1, 0.02, -0.05))
    details = {**study.details, "auto": Details({"mae": 40.0}, 12.3, 4e-6)}
    return replace(
        study, comparison=found, verdict=make_verdict(found), steps=steps, details=details
    )


@pytest.fixture
def make_study() -> Callable[..., Study]:
    """A function that makes a study; see :func:`make`."""
    return make
