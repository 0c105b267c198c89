"""What ``auto`` means: what a short study recommends, for the command, Python and scikit-learn."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regaug.data.base import Data
from regaug.ensemble import (
    Ensemble,
    calibration_rows,
    default_settings,
    fit_as,
    fit_ensemble,
    leave_out,
)
from regaug.exceptions import ArgumentError
from regaug.problems import Problem
from regaug.runs.tasks import Workforce
from regaug.studies.compare import Observer, run_plan
from regaug.studies.plan import QUICK_METHODS, QUICK_SPLITS, make_plan
from regaug.studies.study import Study
from regaug.training.settings import Settings

AUTO = "auto"


def recommend(
    problem: Problem,
    *,
    methods: Sequence[str] = QUICK_METHODS,
    settings: Settings | None = None,
    seed: int = 0,
    jobs: int = 1,
    observer: Observer | None = None,
) -> Study:
    """Find out which method to train with: what a quick study recommends.

    ``study.verdict.recommended`` is plain training if nothing differs from it, and
    ``study.best[...]`` the run to train like.

    Args:
        problem: What is to be learned.
        methods: The methods that may be recommended.
        settings: The only settings that are tried; drawn ones if None.
        seed: Decides everything.
        jobs: Worker processes.
        observer: Told how far it has come.
    """
    plan = make_plan(problem, methods=methods, quick=True, seed=seed, settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        study = run_plan(plan, Path(folder), Workforce(jobs), observer=observer)
    return replace(study, folder=None)


def fit(
    data: Data,
    *,
    method: str = AUTO,
    members: int = 8,
    method_settings: Mapping[str, object] | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Observer | None = None,
) -> Ensemble:
    """Fit a model to all rows of a table: a stacked ensemble that says how sure it is.

    Args:
        data: A table: ``regaug.data.read_table(...)`` or ``regaug.data.load(...)``.
        method: One of ``regaug.methods.names()``; ``"auto"`` takes what a quick study recommends,
            plain training if nothing differs from it. The study does not see the rows that the
            intervals are calibrated on.
        members: Nets in the ensemble.
        method_settings: Settings of the method that differ from its defaults, such as
            ``{"rho": 0.95}``; None with ``"auto"``.
        seed: Decides everything.
        jobs: Worker processes of the study.
        progress: A function that is told how far the study has come.

    Returns:
        The model; ``model.predict(frame, interval=0.9)`` gives mean, spread and interval.

    Example:
        >>> import regaug
        >>> model = regaug.fit(regaug.data.load("synthetic-sine", n=150), method="mixup", members=2)
        >>> model.predict([[0.5]], interval=0.9).mean.shape
        torch.Size([1, 1])
    """
    if method == AUTO:
        if method_settings:
            raise ArgumentError(
                f'`method_settings` must be None with method="auto", got {method_settings!r}: each '
                "method that is compared has settings of its own. Name a method."
            )
        known = leave_out(data, calibration_rows(data, seed=seed))
        problem = Problem.from_table(known, splits=QUICK_SPLITS, seed=seed)
        study = recommend(problem, seed=seed, jobs=jobs, observer=progress)
        run = study.best[study.verdict.recommended]
        return fit_as(data, run, members=members, seed=seed)
    settings = replace(default_settings(len(data)), method=dict(method_settings or {}))
    return fit_ensemble(data, method=method, settings=settings, members=members, seed=seed)
