"""Studies of a regressor: methods make new training rows for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regaug import methods
from regaug.augment.rare_rows import COLUMN
from regaug.exceptions import ArgumentError
from regaug.methods import MAKERS, NO_ROWS, REPEATS, ROWS, SMOGN
from regaug.metrics import focus_of
from regaug.problems import Cost, Problem
from regaug.runs.threads import one_thread
from regaug.studies.config import REFERENCE, StudyConfig
from regaug.studies.search import draw_settings
from regaug.training.estimators import check_estimator
from regaug.training.settings import Settings

# New rows for every training row in a usual run.
USUAL_SHARE = 0.5


def leave_out_by_rows(problem: Problem, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods that make rows, and a sentence for those that do not.

    What they are compared with is no new rows. Training rows once more always stand beside: what
    helps as little as these helps by its number. So do rows from elsewhere, if there are any.
    """
    if ROWS in names and not problem.rows:
        raise ArgumentError(
            "`methods` must not have 'rows' without such rows, got none. Give them as `rows`."
        )
    others = [name for name in names if name not in (REFERENCE, NO_ROWS, REPEATS, ROWS)]
    lacking = [
        name for name in others if name not in MAKERS and methods.get(name).as_maker() is None
    ]
    makers = [name for name in others if name not in lacking]
    if lacking and not makers and not problem.rows:
        raise ArgumentError(
            f"`methods` must make new rows for a regressor, got {', '.join(lacking)}, which can "
            "make none. Choose others, such as 'mixup' or 'cems'."
        )
    wanted = (NO_ROWS, *makers, REPEATS, *([ROWS] if problem.rows else []))
    said = f"Left out, as no rows of a table can be made that way: {', '.join(lacking)}."
    return wanted, [said] if lacking else []


def with_cost(problem: Problem) -> Problem:
    """Check a regressor on some rows; return the problem with what a run takes."""
    first = problem.splits[0]
    with one_thread():  # as every run
        seconds = check_estimator(problem.make_regressor(first, 0), first)
    return replace(problem, cost=Cost(0.0, (1.0 + USUAL_SHARE) * seconds))


def draw_makers(config: StudyConfig, problem: Problem) -> dict[str, list[Settings]]:
    """Return what is tried of the methods that make rows."""
    # An epoch stands for a fit.
    plain = Settings(epochs=1, metric=config.metric)
    options: dict[str, Any] = {"seed": config.seed, "rows": config.train_rows, "kind": config.kind}
    options["beside"] = config.beside
    options["reach"] = config.reach
    tried = {name: draw_settings(name, config.trials, **options) for name in config.methods}
    # What matters most is said once: by a column of the table, or by the metric.
    is_given = problem.splits[0].train.relevances is not None
    for own in tried.get(SMOGN, ()):
        own["focus"] = COLUMN if is_given else focus_of(config.metric)
    return {
        name: [replace(plain, method_settings=own) for own in settings]
        for name, settings in tried.items()
    }
