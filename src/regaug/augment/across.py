"""The augmentations of several runs, which draw for themselves and act on all batches at once."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug.augment.numbers import DrawnAhead, FromGenerators, Indices, Numbers, Values

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class RunBatches:
    """Batches of some runs, of which a run may have several: what their augmentations act on.

    Attributes:
        runs: Whose they are, by number.
        x: Inputs, or outputs of a layer, ``(batches, n, *features)``.
        y: Targets ``(batches, n, *targets)``.
        rows: Which training rows they are, ``(batches, n)``, counted as in ``fit``; None where they
            are not, or it is not known.
        given: What the runs' models are given, as in :meth:`Augmentation.observing`, when ``x`` is
            the output of a layer; None when it is their inputs.
    """

    runs: Indices
    x: Tensor
    y: Tensor
    rows: Tensor | None = None
    given: Pair | None = None

    @property
    def columns(self) -> Pair:
        """Inputs and targets as tables, ``(batches, n, d)`` and ``(batches, n, m)``."""
        return self.x.flatten(2), self.y.reshape(*self.y.shape[:2], -1)


class OfOneRun(Protocol):
    """What is used of a run's augmentation; see :class:`regaug.augment.Augmentation`."""

    p: float
    anneal: float | None
    generator: torch.Generator
    params: Any
    weighs: bool

    @property
    def weight(self) -> float:
        """What the loss of the last batch is to be multiplied by."""

    def observing(self, x: object, y: Tensor) -> AbstractContextManager[None]:
        """Let it know what a model is given, while its layers run."""

    def draw(self, x: Tensor, y: Tensor) -> Any:
        """Draw the parameters for one batch."""

    def transform(self, x: Tensor, y: Tensor, params: Any) -> tuple[Tensor, Tensor]:
        """Apply drawn parameters to a batch."""

    def _public(self, params: Any) -> Any:
        """Return drawn parameters as they are shown."""


Part = TypeVar("Part", bound=OfOneRun)


class AcrossRuns(Generic[Part]):
    """The augmentations of several runs, one for each, alike in ``structure``.

    Every run draws from its own generator, in the order in which its augmentation would alone, so
    it does not depend on the others. This is the plain way: the runs act one after another. Where
    the arithmetic can take all batches as one stack, see :class:`AtOnce`.

    Args:
        parts: The augmentations.
        ahead: The numbers that are drawn may be drawn before they are needed, since nobody else
            uses the generators. After these are seeded anew call :meth:`restart`.

    Attributes:
        weights: What the losses of the last batches are to be multiplied by; None if by nothing.
    """

    #: Whether nothing ever happens, and so nothing needs to be drawn.
    is_idle = False

    def __init__(self, parts: Sequence[Part], *, ahead: bool = False) -> None:
        self.parts = parts
        generators = [part.generator for part in parts]
        self._ahead = DrawnAhead(generators) if ahead and isinstance(self, AtOnce) else None
        self.numbers: Numbers = self._ahead or FromGenerators(generators)
        self.weights: Values | None = None
        self._p = np.array([part.p for part in parts])
        # Infinitely slow is not at all.
        self._anneal = np.array([part.anneal or np.inf for part in parts])

    def restart(self) -> None:
        """Go on with generators that have been seeded anew."""
        if self._ahead is not None:
            self._ahead.restart()

    def choose(self, count: int, runs: Indices) -> Indices:
        """Draw a whole number below ``count`` for some runs, as ``_random.integer`` does."""
        return (self.numbers.take(1, runs)[:, 0] * count).astype(np.int64)

    def happens(self, progress: Values) -> NDArray[np.bool_]:
        """Draw whether the batches of the first runs are touched, so far into their trainings."""
        n = len(progress)
        probability = self._p[:n] * np.maximum(0.0, 1.0 - progress / self._anneal[:n])
        touched: NDArray[np.bool_] = probability >= 1.0
        if not touched.all():
            unsure = np.flatnonzero(~touched)
            touched[unsure] = self.numbers.take(1, unsure)[:, 0] < probability[unsure]
        return touched

    def act(self, batches: RunBatches) -> Pair:
        """Draw and transform for some of the runs; what was drawn is in their ``params``."""
        new, parts = [], [self.parts[run] for run in batches.runs.tolist()]
        given = batches.given
        for number, part in enumerate(parts):
            batch = batches.x[number], batches.y[number]
            with ExitStack() as observation:
                if given is not None:
                    observation.enter_context(part.observing(given[0][number], given[1][number]))
                params = part.draw(*batch)
                part.params = part._public(params)
                new.append(part.transform(*batch, params))
        if any(part.weighs for part in parts):
            self.weights = np.array([part.weight for part in parts])
        return torch.stack([one_x for one_x, _ in new]), torch.stack([one_y for _, one_y in new])


class AtOnce(AcrossRuns[Part]):
    """Augmentations of several runs whose arithmetic takes all batches as one stack.

    What is drawn for a batch is made from uniform numbers, and their count is known beforehand:
    batches of many steps can be transformed in one call.
    """

    def counts(self, batches: RunBatches) -> int | Indices:
        """Return how many uniform numbers the batches need, each or all alike."""
        raise NotImplementedError

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Transform batches with their uniform numbers.

        These are a row for each batch, as long as the longest that is needed; see :class:`Numbers`.
        What was drawn for a run's last batch is in its ``params``.
        """
        raise NotImplementedError

    def act(self, batches: RunBatches) -> Pair:
        """Draw and transform for some of the runs."""
        uniform = self.numbers.take(self.counts(batches), batches.runs)
        return self.transform(batches, uniform)

    def last_batches(self, runs: Indices) -> list[tuple[int, Part]]:
        """Return the number of the last batch of each run, and the run's augmentation."""
        last = {run: number for number, run in enumerate(runs.tolist())}
        return [(number, self.parts[run]) for run, number in last.items()]


class MixesRows(AtOnce[Part]):
    """Augmentations of several runs that mix every row with one other."""

    @property
    def is_blind(self) -> bool:
        """Whether shares and partners can be drawn before it is known what is to be mixed."""
        raise NotImplementedError

    def mixtures(self, batches: RunBatches, uniform: Values) -> tuple[Values, Tensor]:
        """Return the share of a row itself in each batch, and the partners ``(batches, k)``.

        Of ``batches.x`` nothing but the shape is looked at if they are drawn blindly. What was
        drawn for a run's last batch is in its ``params``.
        """
        raise NotImplementedError


# Whatever the augmentation draws.
Across: TypeAlias = AcrossRuns[Any]
