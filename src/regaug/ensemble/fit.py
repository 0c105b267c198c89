"""Fit an ensemble of nets: put rows aside, train the members as one stack, calibrate."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from regaug import methods
from regaug._checks import check_integer
from regaug.data.base import Data
from regaug.ensemble.component import Component
from regaug.ensemble.members import train_members
from regaug.ensemble.model import Ensemble
from regaug.ensemble.prepared import Prepared
from regaug.ensemble.rows import validation_rows
from regaug.training import Settings
from regaug.training.recipe import HIDDEN, default_recipe

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
    progress: bool = False,
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
        progress: Show a progress bar.
    """
    known = methods.get(method)  # an unknown name is an error before anything is trained
    members = check_integer("members", members, 1, MOST_MEMBERS)
    ready = Prepared.of(data, seed=seed)
    scale, folds = ready.scale(log=log), validation_rows(ready.data, ready.rest, members, seed)
    splits = ready.splits(folds, log=log)
    settings = replace(settings or default_recipe(len(ready.rest)), seed=seed)
    if suited:
        own = known.lowered(settings.method_settings, min(len(split.train) for split in splits))
        settings = replace(settings, method_settings=own)
    trained = train_members(splits, method, settings, hidden=hidden, scale=scale, progress=progress)
    nets, bounds = trained.members, ready.bounds(log=log)
    # The error that is expected is that of every member on its own validation rows.
    errors = []
    for member, number in enumerate(trained.numbers):
        part = splits[number].validation
        found = bounds.clamp(scale.inverse(nets(part.x[:])[member]))
        errors.append(scale.transform(found) - part.y)
    component = Component(method, 1.0, nets, trained.settings)
    return ready.finish(method, [component], torch.cat(errors), log=log)
