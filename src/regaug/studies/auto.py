"""The model a user gets: an ensemble trained with the method that a short study recommends."""

from collections.abc import Callable

from regaug.data.base import Data
from regaug.ensemble import Ensemble, calibration_rows, fit_ensemble, leave_out
from regaug.ensemble.rows import check_table
from regaug.runs.worker import Outcome
from regaug.studies.compare import compare
from regaug.studies.study import Study
from regaug.training.settings import Settings

AUTO = "auto"


def fit(
    data: Data,
    *,
    method: str = AUTO,
    members: int = 8,
    seed: int = 0,
    jobs: int = 1,
    watch: Callable[[Outcome], None] | None = None,
) -> Ensemble:
    """Fit a model to all rows of a table: a stacked ensemble that says how sure it is.

    Args:
        data: A table: ``regaug.data.read_table(...)`` or ``regaug.data.load(...)``.
        method: One of ``regaug.methods.names()``; ``"auto"`` takes what a quick study recommends,
            plain training if nothing differs from it. The study does not see the rows that the
            intervals are calibrated on.
        members: Nets in the ensemble.
        seed: Decides everything.
        jobs: Worker processes of the study.
        watch: Called with what every finished piece of the study's work has made.

    Returns:
        The model; ``model.predict(frame, interval=0.9)`` gives mean, spread and interval.

    Example:
        >>> import regaug
        >>> model = regaug.fit(regaug.data.load("synthetic-sine", n=150), method="mixup", members=2)
        >>> model.predict([[0.5]], interval=0.9).mean.shape
        torch.Size([1, 1])
    """
    if method != AUTO:
        return fit_ensemble(data, method=method, members=members, seed=seed)
    known = leave_out(data, calibration_rows(data, seed=seed))
    study = compare(known, quick=True, seed=seed, jobs=jobs, watch=watch)
    return fit_recommended(data, study, members=members, seed=seed)


def fit_recommended(data: Data, study: Study, *, members: int = 8, seed: int = 0) -> Ensemble:
    """Fit an ensemble with the method and the settings that a study recommends."""
    method = study.verdict.recommended
    chosen = study.settings[method]
    # The study has not seen the rows to calibrate on; their targets may have no logarithm.
    is_positive = bool((check_table(data).y > 0).all())
    return fit_ensemble(
        data,
        method=method,
        settings=Settings(**chosen["settings"]),
        log=chosen["log"] and is_positive,
        members=members,
        seed=seed,
    )
