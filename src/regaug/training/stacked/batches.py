"""The batches of all runs of a stack, many steps at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regaug.augment.numbers import Values
from regaug.training.stacked.rows import StackedRows
from regaug.training.stacked.training import Training

# Numbers in the inputs of the steps that are made at once: they fit into the cache.
_MOST = 2**18


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of some steps.

    Attributes:
        x: Inputs, ``(steps, runs, n, d)``.
        y: Targets, ``(steps, runs, n, m)``.
        rows: Which training rows of each run's split they are, ``(steps, runs, n)``.
        progress: Share of its training that each run has done, ``(steps, runs)``.
        active: How many runs, the first ones, take part in each step.
    """

    x: Tensor
    y: Tensor
    rows: Tensor | None
    progress: Values
    active: Sequence[int]


def epoch_batches(
    runs: Sequence[Training], splits: Sequence[int], table: StackedRows, epoch: int
) -> Iterator[Batches]:
    """Give the batches of an epoch, for runs on these splits of the table.

    Runs with more steps in an epoch come first.
    """
    own = []
    for run in runs:
        run.sampler.set_epoch(epoch)
        own.append(run.sampler.epoch_batches())
    counts = np.array([len(batches) for batches in own])
    rows = np.zeros((counts[0], len(runs), len(own[0][0])), dtype=np.int64)
    for number, batches in enumerate(own):
        rows[: len(batches), number] = np.concatenate(batches).reshape(len(batches), -1)
    steps = np.arange(counts[0])[:, None]
    progress = (epoch + steps / counts) / np.array([run.settings.epochs for run in runs])
    active: list[int] = (counts > steps).sum(axis=1).tolist()
    firsts = torch.tensor([table.first_row[split] for split in splits])[:, None]
    size = max(1, _MOST // (rows[0].size * table.x.shape[1]))
    for start in range(0, len(rows), size):
        some = slice(start, start + size)
        numbers = torch.from_numpy(rows[some])
        places = numbers + firsts
        yield Batches(table.x[places], table.y[places], numbers, progress[some], active[some])
