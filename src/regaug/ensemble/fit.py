"""Fit an ensemble of nets: put rows aside, train the members as one stack, calibrate."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import torch

from regaug import methods
from regaug._checks import check_integer
from regaug.data.base import Data, Split
from regaug.ensemble.candidates import FitProgress, Observer
from regaug.ensemble.component import Component
from regaug.ensemble.members import Trained, train_members
from regaug.ensemble.model import Ensemble
from regaug.ensemble.prepared import Prepared
from regaug.ensemble.rows import validation_rows
from regaug.metrics import METRICS, MetricName
from regaug.problems import Cost, Problem
from regaug.runs.run import Run
from regaug.runs.tasks import estimate_seconds
from regaug.training import Settings
from regaug.training.deadline import Until
from regaug.training.recipe import HIDDEN, default_recipe
from regaug.training.scores import own_targets
from regaug.training.stacked import most_runs

MOST_MEMBERS = 1_000


def fit_ensemble(
    data: Data,
    *,
    method: str = "erm",
    settings: Settings | None = None,
    members: int = 8,
    hidden: Sequence[int] = HIDDEN,
    seed: int = 0,
    log: bool = False,
    suited: bool = False,
    until: Until | None = None,
    observer: Observer | None = None,
) -> Ensemble:
    """Fit an ensemble of table nets to all rows of a table.

    Some rows are put aside first and used for nothing but the intervals
    (:func:`regaug.ensemble.calibration_rows`). Columns and scales are learned on the others, once.
    Each member has its own seed and stops on its own eighth of the other rows.

    Args:
        data: A table of your own, or a named data set of that kind.
        method: One of ``regaug.methods.names()``.
        settings: Settings of every member, but for the seed; those of
            :func:`regaug.training.recipe.default_recipe` if None.
        members: Number of nets, from 1 to 1,000.
        hidden: Widths of the hidden layers.
        seed: Decides which rows are put aside, and everything about the members.
        log: Fit the logarithm of the targets, which must be positive.
        suited: Lower settings that ask for more training rows than there are; otherwise they are an
            error.
        until: When to stop, in seconds since 1970, with what was learned by then; None for never.
        observer: Told how far it has come, after every epoch.
    """
    known = methods.get(method)  # an unknown name is an error before anything is trained
    members = check_integer("members", members, 1, MOST_MEMBERS)
    ready = Prepared.of(data, seed=seed)
    scale, folds = ready.scale(log=log), validation_rows(ready.data, ready.rest, members, seed)
    splits = ready.splits(folds, log=log)
    settings = replace(settings or default_recipe(len(ready.rest)), seed=seed)
    settings = replace(settings, metric=_stopping_metric(settings.metric, splits))
    if suited:
        own = known.lowered(settings.method_settings, min(len(split.train) for split in splits))
        settings = replace(settings, method_settings=own)
    with _told(observer, method, splits[0], settings, members) as tell:
        trained = train_members(
            splits, method, settings, hidden=hidden, scale=scale, until=until, tell=tell
        )
    nets, bounds = trained.members, ready.bounds(log=log)
    # The error that is expected is that of every member on its own validation rows.
    errors = []
    for member, number in enumerate(trained.numbers):
        part = splits[number].validation
        found = bounds.clamp(scale.inverse(nets(part.x[:])[member]))
        errors.append(scale.transform(found) - part.y)
    component = Component(method, 1.0, nets, trained.settings)
    notes = _left_out(trained, members)
    return ready.finish(method, [component], torch.cat(errors), log=log, notes=notes)


def _stopping_metric(metric: MetricName, splits: Sequence[Split]) -> MetricName:
    """Return the metric that chooses epochs: RMSE where another one is undefined on a fold."""
    folds = (own_targets(split, split.validation) for split in splits if len(split.validation))
    are_defined = all(bool(METRICS[metric](y, y).isfinite()) for y in folds)
    return metric if are_defined else "rmse"


def _left_out(trained: Trained, members: int) -> list[str]:
    """Say what is missing because the time was up."""
    stopped = [len(own.history) for own in trained.results if own.ending == "stopped"]
    if not stopped:
        return []
    few = "" if len(trained.results) == members else f" {len(trained.results)} of {members} nets,"
    most = trained.settings.epochs
    return [
        f"The time was up before the nets were trained to the end:{few} {max(stopped)} of at most "
        f"{most} epochs."
    ]


@contextmanager
def _told(
    observer: Observer | None, method: str, split: Split, settings: Settings, members: int
) -> Iterator[Callable[[], None] | None]:
    """Give what is called after every epoch, and tells an observer how far it has come."""
    if observer is None:
        yield None
        return
    start, done = time.monotonic(), count(1)
    total = settings.epochs * -(-members // most_runs(settings.batch_size))

    def tell(epochs: int, seconds: float) -> None:
        observer(FitProgress(epochs, total, seconds, method if epochs else "", unit="epoch"))

    first = start

    def next_epoch() -> None:
        nonlocal first
        epochs, now = min(next(done), total), time.monotonic()
        # What is done before the first epoch, once, takes minutes on millions of rows.
        pace = (now - start) if epochs == 1 else (now - first) / (epochs - 1)
        first = now if epochs == 1 else first
        tell(epochs, pace * (total - epochs))

    runs = [Run(method, method, 0, settings.seed, settings)] * members
    cost = Cost.of_table(split.train.x.shape[1], split.train.y.shape[1])
    problem = Problem([split], is_scaled=True, name=method, cost=cost)
    tell(0, estimate_seconds(runs, {method: problem}))
    yield next_epoch
