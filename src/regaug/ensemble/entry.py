"""The one call that fits a model to a table, whatever it is made of."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regaug import methods
from regaug._checks import check_integer
from regaug._registry import lookup
from regaug.data.base import Data
from regaug.data.tabular.table import open_table
from regaug.ensemble.blend import BASELINES, fit_blend
from regaug.ensemble.candidates import Observer
from regaug.ensemble.contents import AUTO, NETS
from regaug.ensemble.fit import fit_ensemble
from regaug.ensemble.model import Ensemble
from regaug.ensemble.rows import check_table
from regaug.exceptions import ArgumentError
from regaug.training.bar import bar_from_first_call
from regaug.training.recipe import default_recipe

if TYPE_CHECKING:
    import pandas as pd

# What is fitted fold by fold.
BLENDS = (AUTO, NETS, *BASELINES)


def fit(
    data: "Data | str | Path | pd.DataFrame",
    *,
    target: str | Sequence[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: str | Sequence[str] = (),
    method: str = AUTO,
    members: int = 8,
    method_settings: Mapping[str, object] | None = None,
    seed: int = 0,
    quick: bool = False,
    jobs: int = 1,
    progress: bool | Observer | None = None,
) -> Ensemble:
    """Fit a model to all rows of a table: one that says how sure it is.

    Args:
        data: A table: ``regaug.data.read_table(...)`` or ``regaug.data.load(...)``; or a path or a
            frame with ``target=``.
        target: The column to predict, or several, of a path or a frame.
        group: Its column whose groups stay whole, if any.
        time: Its column of times, if any.
        drop: Its columns to leave out.
        method: ``"auto"`` is the best model there is: a blend of nets and baselines, whose shares
            are chosen on rows that they have not learned. ``"nets"`` leaves the baselines out;
            ``"ridge"``, ``"boosting"``, ``"trees"`` and ``"gp"`` are one of them alone. One of
            ``regaug.methods.names()`` is an ensemble of nets trained with it, without a search.
        members: Nets in the ensemble of a method that is named. The other models have as many as
            their folds and shares ask for.
        method_settings: Settings of the method that differ from its defaults, such as
            ``{"rho": 0.95}``; None if no method is named.
        seed: Decides everything.
        quick: Try less for a blend: fewer folds and recipes, and plain training alone.
        jobs: Worker processes; the model does not depend on it. A named method needs one only.
        progress: True for a progress bar, or a function that is told how far a blend has come
            (:class:`regaug.ensemble.FitProgress`).

    Returns:
        The model; ``model.predict(frame, interval=0.9)`` gives mean, spread and interval, and
        ``print(model)`` the share of everything that it is made of.

    Example:
        >>> import regaug
        >>> model = regaug.fit(regaug.data.load("synthetic-sine", n=150), method="ridge")
        >>> model.predict([[0.5]], interval=0.9).mean.shape
        torch.Size([1, 1])
        >>> print(model)
        ridge: 8 models
    """
    jobs = check_integer("jobs", jobs, 1)
    data = open_table(data, target=target, group=group, time=time, drop=drop)
    if method in BLENDS:
        if method_settings:
            raise ArgumentError(
                f"`method_settings` must be None with method={method!r}, got {method_settings!r}: "
                "it has no settings, or each of its methods has settings of its own. Name a method."
            )
        with _observer(progress) as observer:
            return fit_blend(
                data, method=method, seed=seed, quick=quick, jobs=jobs, observer=observer
            )
    check_method(method)
    own = default_recipe(len(check_table(data)))
    return fit_ensemble(
        data,
        method=method,
        settings=replace(own, method_settings=dict(method_settings or {})),
        members=members,
        seed=seed,
        progress=progress is True,
    )


def check_method(method: str) -> str:
    """Return a name that :func:`fit` knows; of another one the nearest is told."""
    return lookup("method", method, {name: name for name in (*methods.names(), *BLENDS)})


@contextmanager
def _observer(progress: bool | Observer | None) -> Iterator[Observer | None]:
    """Give what is told how far a fit has come; a progress bar if only that is asked for."""
    if progress is not True:
        yield progress or None
        return
    with bar_from_first_call("run") as show:
        yield lambda event: show(event.done, event.total, event.method)
