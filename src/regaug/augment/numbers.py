"""Random numbers for several runs at once: the numbers that each run's own generator gives."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from regaug import _random

Values = NDArray[np.float64]
Indices = NDArray[np.int64]


class Numbers(Protocol):
    """Streams of uniform numbers from [0, 1), one for each run."""

    def take(self, counts: int | Indices, runs: Indices) -> Values:
        """Return the next numbers of some runs, a row for each, so many or as many as each needs.

        A run that needs fewer than another has them first in its row, and then anything.
        """


class FromGenerators:
    """The numbers are drawn when they are taken, so that others may draw in between."""

    def __init__(self, generators: Sequence[torch.Generator]) -> None:
        self._generators = generators

    def take(self, counts: int | Indices, runs: Indices) -> Values:
        """Return the next numbers of some runs; see :class:`Numbers`."""
        counts = np.broadcast_to(counts, len(runs))
        taken = np.zeros((len(runs), int(counts.max(initial=0))))
        for row, run, count in zip(taken, runs.tolist(), counts.tolist(), strict=True):
            row[:count] = _random.uniforms(count, self._generators[run]).cpu().numpy()
        return taken


class DrawnAhead:
    """The numbers of many steps are drawn at once, in one call for each run.

    They are the same ones: a generator gives uniform numbers one by one as it gives many. Nobody
    else may draw from the generators until they are seeded anew and :meth:`restart` is called.
    """

    #: Numbers of a run that are held, at most, unless a single batch needs more.
    most = 2**13

    def __init__(self, generators: Sequence[torch.Generator]) -> None:
        self._generators = generators
        self._held = np.empty((len(generators), 0))
        self._next = np.zeros(len(generators), dtype=np.int64)
        self._drawn, self._wanted = 0, 64

    def restart(self) -> None:
        """Forget what is held: the generators have been seeded anew."""
        # An epoch needs about as many as the one before.
        self._wanted = max(self._wanted, min(self._drawn, self.most))
        self._next[:] = self._held.shape[1]
        self._drawn = 0

    def take(self, counts: int | Indices, runs: Indices) -> Values:
        """Return the next numbers of some runs; see :class:`Numbers`."""
        count = int(np.max(counts, initial=0))
        first = self._next[runs]
        if first.max(initial=0) + count > self._held.shape[1]:
            self._draw(count)
            first = self._next[runs]
        self._next[runs] = first + counts
        taken: Values = self._held[runs[:, None], first[:, None] + np.arange(count)]
        return taken

    def _draw(self, count: int) -> None:
        """Hold at least ``count`` numbers of every run."""
        left = self._held.shape[1] - self._next
        size = max(count, min(max(self._wanted, 2 * self._drawn), self.most)) + int(left.max())
        held = np.empty((len(left), size))
        for run, (own, count) in enumerate(zip(held, left.tolist(), strict=True)):
            own[:count] = self._held[run, self._next[run] :]
            own[count:] = _random.uniforms(size - count, self._generators[run]).numpy()
        self._drawn += size
        self._held = held
        self._next[:] = 0
