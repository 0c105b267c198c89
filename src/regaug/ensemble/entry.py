"""The one call that fits a model to a table, whatever it is made of."""

import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regaug import _random, methods
from regaug._checks import check_integer, check_range
from regaug._registry import lookup
from regaug.data.base import Data
from regaug.data.tabular.table import open_table
from regaug.ensemble.blend import BASELINES, fit_blend
from regaug.ensemble.candidates import FitProgress, Observer
from regaug.ensemble.contents import AUTO, NETS
from regaug.ensemble.fit import fit_ensemble
from regaug.ensemble.model import Ensemble
from regaug.ensemble.rows import check_table, some_rows
from regaug.exceptions import ArgumentError
from regaug.training.bar import bar_from_first_call
from regaug.training.deadline import Deadline, Until
from regaug.training.recipe import HIDDEN, default_recipe
from regaug.training.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

# What is fitted fold by fold; the mean is there for a study that finds nothing better.
BLENDS = (AUTO, NETS, *BASELINES, "mean")
# A quick fit of more rows than that looks at so many of them, and so does a quick study.
QUICK_ROWS = 2_000


@_random.plain_defaults()
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
    settings: Settings | None = None,
    log: bool = False,
    hidden: Sequence[int] = HIDDEN,
    seed: int = 0,
    quick: bool = False,
    jobs: int = 1,
    max_minutes: float | None = None,
    stop: str | Path | None = None,
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
            ``regaug.methods.names()`` is an ensemble of nets trained with it, without a search;
            ``study.model(data)`` trains it with what a study has found.
        members: Nets in the ensemble of a method that is named. The other models have as many as
            their folds and shares ask for.
        method_settings: Settings of the method that differ from its defaults, such as
            ``{"rho": 0.95}``; None if no method is named.
        settings: All settings of the nets of a method that is named, as a study has found them; a
            sensible recipe and the method's defaults if None.
        log: Fit the logarithm of the targets, which must be positive, with a method that is named.
        hidden: Widths of the hidden layers of the nets.
        seed: Decides everything.
        quick: Try less for a blend: three folds, and plain training alone. Of a table with more
            than 2,000 rows, so many are looked at.
        jobs: Worker processes; the model does not depend on it. A named method needs one only.
        max_minutes: Begin nothing new after so many minutes, and use what is finished: a blend of
            the candidates that there are, one at least, or the nets as far as they have learned.
            ``model.notes`` says what was left out.
        stop: A file: the same as soon as there is one.
        progress: True for a progress bar, or a function that is told how far it has come
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
    jobs, start = check_integer("jobs", jobs, 1), clock.time()
    if max_minutes is not None:
        check_range("max_minutes", max_minutes, 0.0, open_low=True)
    late = None if max_minutes is None else start + 60 * max_minutes
    until: Until | None = late if stop is None else Deadline(Path(stop).absolute(), late)
    check_method(method)
    given = {"method_settings": method_settings, "settings": settings, "log": log}
    _check_settings(method, given)
    table = open_table(data, target=target, group=group, time=time, drop=drop)
    if quick:
        table = some_rows(check_table(table), QUICK_ROWS, seed=seed)
    with _observer(progress, late) as observer:
        if method in BLENDS:
            return fit_blend(
                table,
                method=method,
                hidden=hidden,
                seed=seed,
                quick=quick,
                jobs=jobs,
                until=until,
                observer=observer,
            )
        own = default_recipe(len(check_table(table)))
        return fit_ensemble(
            table,
            method=method,
            settings=settings or replace(own, method_settings=dict(method_settings or {})),
            suited=settings is not None,
            members=members,
            hidden=hidden,
            seed=seed,
            log=log,
            until=until,
            observer=observer,
        )


def _check_settings(method: str, given: Mapping[str, object]) -> None:
    """Refuse settings of what has none, and those that are given twice."""
    if method in BLENDS and (named := [name for name, value in given.items() if value]):
        raise ArgumentError(
            f"`{named[0]}` must be left out with method={method!r}, got {given[named[0]]!r}: it "
            "has no settings, or each of its methods has settings of its own. Name a method."
        )
    if given["settings"] is not None and given["method_settings"]:
        raise ArgumentError(
            "`method_settings` must be None with `settings`, which hold those of the method, got "
            f"{given['method_settings']!r}. Put them there."
        )


def check_method(method: str) -> str:
    """Return a name that :func:`fit` knows; of another one the nearest is told."""
    return lookup("method", method, {name: name for name in (*methods.names(), *BLENDS)})


@contextmanager
def _observer(progress: bool | Observer | None, late: float | None) -> Iterator[Observer | None]:
    """Give what is told how far a fit has come; a progress bar if only that is asked for.

    No more time is left than until ``late``, in seconds since 1970, if that is given.
    """
    if not progress:
        yield None
        return
    with ExitStack() as stack:
        tell = progress
        if not callable(tell):
            show = stack.enter_context(bar_from_first_call("run"))

            def tell(event: FitProgress) -> None:
                show(event.done, event.total, event.words, event.unit)

        def observe(event: FitProgress) -> None:
            if late is not None:
                left = min(event.seconds_left, max(0.0, late - clock.time()))
                event = replace(event, seconds_left=left)
            tell(event)

        yield observe
