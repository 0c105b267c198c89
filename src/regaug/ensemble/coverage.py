"""How many rows lie in their intervals, at several levels: nominal against observed."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug.data.base import Rows
from regaug.ensemble.component import combine
from regaug.ensemble.contents import Contents
from regaug.ensemble.evidence import Evidence

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
FOLDS = 5
Sizes = NDArray[np.float64]


@dataclass(frozen=True)
class Coverage:
    """How many rows lie in their intervals of a level.

    Attributes:
        level: Share of rows that should.
        rows: Rows that were looked at.
        inside: How many of them do, for each target.
    """

    level: float
    rows: int
    inside: tuple[int, ...]


def observe_coverage(model: Contents, evidence: Evidence) -> list[Coverage]:
    """Count the rows in their intervals, at every level that there are enough rows for.

    Rows that the intervals were measured on would be covered by construction. So a fifth of them at
    a time is looked at with intervals that are measured on the others: whole groups where there are
    groups, and where there are times the later half with the earlier one.
    """
    if model.calibration is None or len(evidence) < 2:
        return []
    sizes = _sizes(model, evidence)
    if not evidence.made_intervals:
        pairs = [(np.sort(model.calibration.scores.numpy(), axis=0), sizes)]
    else:
        folds = _folds(evidence)
        pairs = [(np.sort(sizes[others], axis=0), sizes[own]) for own, others in folds]
    found = [_count(pairs, level) for level in LEVELS]
    return [own for own in found if own is not None]


def _sizes(model: Contents, evidence: Evidence) -> Sizes:
    """Return every row's error as a multiple of what was expected, ``(n, m)``."""
    parts = combine(model.components, evidence.x, bounds=model.bounds, scale=model.scale)
    mean, _, spread = parts
    floor = torch.zeros(1) if model.calibration is None else model.calibration.floor
    off: Tensor = (model.scale.transform(evidence.y) - model.scale.transform(mean)).abs()
    sizes: Sizes = (off / torch.hypot(floor, spread)).numpy()
    return sizes


def _folds(evidence: Evidence) -> list[tuple[Rows, Rows]]:
    """Return pairs of rows: those that are looked at, and those that intervals are measured on."""
    n = len(evidence)
    rows = np.arange(n)
    if evidence.rule == "time":
        return [(rows[n // 2 :], rows[: n // 2])]
    unit_of_row = rows
    if evidence.groups is not None:
        unit_of_row = np.unique(evidence.groups, return_inverse=True)[1]
    units = int(unit_of_row.max()) + 1
    order = _random.numpy_generator(_random.Stream.FOLDS, 0).permutation(units)
    fold_of_row = order[unit_of_row] % FOLDS
    folds = [np.flatnonzero(fold_of_row == fold) for fold in range(min(FOLDS, units))]
    return [(own, np.setdiff1d(rows, own)) for own in folds] if units > 1 else []


def _count(pairs: list[tuple[Sizes, Sizes]], level: float) -> Coverage | None:
    total, inside = 0, 0
    for known, sizes in pairs:
        rank = math.ceil((len(known) + 1) * level - 1e-9)
        if rank > len(known):
            return None
        total += len(sizes)
        inside = inside + (sizes <= known[rank - 1]).sum(axis=0)
    if not total:
        return None
    return Coverage(level, total, tuple(int(count) for count in np.atleast_1d(inside)))
