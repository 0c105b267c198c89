"""What ``auto`` means: what a short study recommends, for the command, Python and scikit-learn."""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from regaug.data.base import Data
from regaug.ensemble import (
    Ensemble,
    calibration_rows,
    fit_as,
    fit_ensemble,
    leave_out,
)
from regaug.exceptions import ArgumentError
from regaug.problems import Problem
from regaug.runs.run import Run
from regaug.runs.tasks import Workforce
from regaug.studies.compare import Observer, run_plan
from regaug.studies.config import REFERENCE
from regaug.studies.plan import QUICK_SPLITS, make_plan
from regaug.training.recipe import default_recipe
from regaug.training.settings import Settings

AUTO = "auto"
FEWEST_ROWS = 50  # with fewer, differences between methods are noise


@dataclass(frozen=True)
class Choice:
    """What a quick study recommends.

    Attributes:
        run: The run to train like.
        errors: Mean test error of every method; empty if nothing was compared.
    """

    run: Run
    errors: Mapping[str, float]


def choose_run(
    problem: Problem,
    *,
    settings: Mapping[str, Settings] | None = None,
    seed: int = 0,
    jobs: int = 1,
    observer: Observer | None = None,
) -> Choice:
    """Find out what to train like: what a quick study recommends, plain training if nothing helps.

    With fewer than 50 rows nothing is compared, and it is plain training.

    ``settings`` are the only ones that are tried of every method, without a search for a
    recipe; drawn ones if None.
    """
    plan = make_plan(problem, quick=True, seed=seed, settings=settings, baselines=False)
    if plan.config.rows < FEWEST_ROWS:
        return Choice(next(run for run in plan.runs if run.method == REFERENCE), {})
    with tempfile.TemporaryDirectory() as folder:
        study = run_plan(plan, Path(folder), Workforce(jobs), observer=observer)
    rows = [row for row in study.comparison.rows if row.is_net]
    errors = {row.name: math.inf if row.mean is None else row.mean for row in rows}
    return Choice(study.best[study.verdict.recommended], errors)


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
        choice = choose_run(problem, seed=seed, jobs=jobs, observer=progress)
        return fit_as(data, choice.run, members=members, seed=seed)
    settings = replace(default_recipe(len(data)), method_settings=dict(method_settings or {}))
    return fit_ensemble(data, method=method, settings=settings, members=members, seed=seed)
