"""Fit an ensemble: put rows aside, train the members as one stack, calibrate."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from regaug import methods
from regaug._checks import check_integer
from regaug.data.base import Data, Part
from regaug.data.scaling import Scaler, StandardizedSplit
from regaug.data.tabular.table import Table
from regaug.ensemble.intervals import Calibration
from regaug.ensemble.members import mean_and_spread, train_members
from regaug.ensemble.model import Ensemble
from regaug.ensemble.preparation import Preparation
from regaug.ensemble.rows import calibration_rows, check_table, validation_rows
from regaug.exceptions import ArgumentError
from regaug.metrics import evaluate
from regaug.runs.run import Run
from regaug.training import Settings
from regaug.training.recipe import default_recipe

MOST_MEMBERS = 1_000
# In standard deviations of a target: errors of zero would leave nothing to divide by.
_SMALLEST_FLOOR = 1e-6


def fit_ensemble(
    data: Data,
    *,
    method: str = "erm",
    settings: Settings | None = None,
    members: int = 8,
    hidden: Sequence[int] = (128, 128),
    seed: int = 0,
    log: bool = False,
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
        progress: Show a progress bar.
    """
    methods.get(method)  # an unknown name is an error before anything is trained
    members = check_integer("members", members, 1, MOST_MEMBERS)
    data = check_table(data)
    held_out = calibration_rows(data, seed=seed)
    rest = np.setdiff1d(np.arange(len(data)), held_out)
    y = torch.from_numpy(data.y)
    if log and not bool((y > 0).all()):
        raise ArgumentError("`log` must be False for targets that are not all positive, got True.")

    preparation = Preparation.fit(data, rest)
    values = y.log() if log else y
    scaler = Scaler.fit(values[rest])
    whole = Part(preparation(data).float(), scaler.transform(values).float(), np.arange(len(data)))
    splits = []
    for rows in validation_rows(data, rest, members, seed):
        train, chosen = whole.take(np.setdiff1d(rest, rows)), whole.take(rows)
        # There are no test rows, as nobody looks at them.
        splits.append(StandardizedSplit(train, chosen, chosen, y_scaler=scaler, log=log))
    settings = replace(settings or default_recipe(len(rest)), seed=seed)
    trained = train_members(
        splits, method, settings, hidden=hidden, scaler=scaler, log=log, progress=progress
    )
    nets = trained.members
    # The error that is expected is that of every member on its own validation rows.
    stopped_on = [splits[number].validation for number in trained.numbers]
    errors = [nets(part.x[:])[member] - part.y for member, part in enumerate(stopped_on)]
    floor = torch.cat(errors).square().mean(dim=0).sqrt().clamp(min=_SMALLEST_FLOOR)
    predicted, target = nets(whole.x[held_out]), y[held_out]
    calibration = Calibration.fit(*mean_and_spread(predicted), nets.scale(target), floor=floor)
    return Ensemble(
        targets=data.targets if isinstance(data, Table) else default_names(data.y.shape[1]),
        method=method,
        settings=trained.settings,
        preparation=preparation,
        members=nets,
        calibration=calibration,
        held_out=evaluate(nets.restore(predicted).mean(dim=0), target),
    )


def fit_as(data: Data, run: Run, *, members: int = 8, seed: int = 0) -> Ensemble:
    """Fit an ensemble as the net of a run was trained: its method, its settings, its scale."""
    # Whoever chose the run has perhaps not seen all rows; their targets may have no logarithm.
    log = run.log and bool((check_table(data).y > 0).all())
    own = run.settings
    return fit_ensemble(data, method=run.method, settings=own, log=log, members=members, seed=seed)


def default_names(targets: int) -> tuple[str, ...]:
    """Return names for targets that have none."""
    return ("target",) if targets == 1 else tuple(f"target_{i}" for i in range(1, targets + 1))
