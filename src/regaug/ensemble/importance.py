"""Which columns a model rests on: how much its error grows when one of them is shuffled."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from torch import Tensor

from regaug import _random
from regaug._random import Stream
from regaug.ensemble.component import combine
from regaug.ensemble.contents import Contents
from regaug.ensemble.evidence import Evidence
from regaug.metrics import METRICS

REPEATS, FEWEST_REPEATS = 5, 2
# Predictions of a row by the whole model, for all columns and repeats: some seconds of work.
MOST_PREDICTIONS = 10_000
FEWEST_ROWS = 20


@dataclass(frozen=True)
class Importance:
    """How much a model rests on a column of the user's table.

    Attributes:
        column: Name of the column.
        mean: Growth of the error, RMSE, when the column's values are shuffled among the rows; mean
            over the repeats. In the target's own units; of several targets as their RMSE is told
            (:class:`regaug.metrics.Metric`).
        spread: Standard deviation of it over the repeats.
    """

    column: str
    mean: float
    spread: float


@dataclass(frozen=True)
class Importances:
    """The importance of every column, the largest first.

    Attributes:
        columns: Of every column; empty if there are too many of them.
        rows: Rows that were shuffled.
        repeats: How often.
    """

    columns: tuple[Importance, ...]
    rows: int
    repeats: int


def find_importances(model: Contents, evidence: Evidence, *, seed: int = 0) -> Importances:
    """Shuffle every column of the table among rows that the model has not learned.

    A column that is encoded as several numbers (a category, a date) is shuffled as one, which is
    the same as shuffling it before it is encoded. Where two columns say the same, each of them
    seems to matter little: the model has the other one.
    """
    spans = column_spans(model)
    repeats = max(FEWEST_REPEATS, min(REPEATS, MOST_PREDICTIONS // (len(spans) * FEWEST_ROWS)))
    rows = MOST_PREDICTIONS // (len(spans) * repeats)
    if rows < min(FEWEST_ROWS, len(evidence)) or len(evidence) < 2:
        return Importances((), 0, 0)
    some = evidence.some(rows)
    base = _errors(model, some.x, some)[0]
    found = []
    for number, (name, span) in enumerate(spans):
        rng = _random.numpy_generator(Stream.IMPORTANCE, seed, number)
        orders = np.concatenate([rng.permutation(len(some)) for _ in range(repeats)])
        shuffled = some.x.repeat(repeats, 1)
        shuffled[:, span] = some.x[orders][:, span]
        growth = _errors(model, shuffled, some) - base
        found.append(Importance(name, growth.mean().item(), growth.std(correction=0).item()))
    found.sort(key=lambda own: -own.mean)
    return Importances(tuple(found), len(some), repeats)


def column_spans(model: Contents) -> list[tuple[str, slice]]:
    """Return the columns that a model takes, and where each is among its inputs."""
    encoder = model.preparation.encoder
    if encoder is None:
        count = len(model.preparation.scaler.mean)
        return [(f"x{place + 1}", slice(place, place + 1)) for place in range(count)]
    ends = accumulate((len(column.features) for column in encoder.columns), initial=0)
    names: Sequence[str] = [column.name for column in encoder.columns]
    return [(name, slice(*ends)) for name, ends in zip(names, pairwise(ends), strict=True)]


def _errors(model: Contents, x: Tensor, some: Evidence) -> Tensor:
    """Return the error of each of several copies of the rows, one below the other."""
    mean, _, _ = combine(model.components, x, bounds=model.bounds, scale=model.scale)
    copies = mean.reshape(-1, *some.y.shape)
    return METRICS["rmse"](copies, some.y.expand_as(copies))
