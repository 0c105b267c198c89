"""What the estimator of scikit-learn takes for ``auto``: the run that a quick study recommends."""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regaug.problems import Problem
from regaug.runs.run import Run
from regaug.runs.tasks import Workforce
from regaug.studies.compare import run_plan
from regaug.studies.config import REFERENCE
from regaug.studies.folders import Place
from regaug.studies.plan import make_plan
from regaug.studies.progress import Observer
from regaug.training.settings import Settings

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

    ``settings`` are the only ones that are tried of every method, drawn ones if None.
    """
    plan = make_plan(problem, quick=True, seed=seed, settings=settings, baselines=False)
    if plan.config.rows < FEWEST_ROWS:
        return Choice(next(run for run in plan.runs if run.method == REFERENCE), {})
    with tempfile.TemporaryDirectory() as folder:
        study = run_plan(plan, Place(Path(folder)), Workforce(jobs), observer=observer)
    nets = [row for row in study.comparison.rows if row.is_net]
    errors = {row.name: math.inf if row.mean is None else row.mean for row in nets}
    return Choice(study.best[study.verdict.recommended], errors)
