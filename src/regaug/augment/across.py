"""The augmentations of several runs, which draw for themselves and act on all batches at once."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug.augment.numbers import DrawnAhead, FromGenerators, Indices, Numbers, Values

if TYPE_CHECKING:
    from regaug.augment.base import Augmentation

Part = TypeVar("Part", bound="Augmentation[Any]")


class AcrossRuns(Generic[Part]):
    """The augmentations of several runs, one for each, alike in ``structure``.

    Every run draws from its own generator, in the order in which its augmentation would alone, so
    it does not depend on the others. This is the plain way: the runs act one after another. Where
    the arithmetic can take all batches as one stack, an augmentation has a subclass that does so.

    Args:
        parts: The augmentations.
        ahead: The numbers that are drawn may be drawn before they are needed, since nobody else
            uses the generators. After they are seeded anew call :meth:`restart`.
    """

    #: Whether all that is drawn comes from :attr:`numbers`, and may come ahead.
    can_draw_ahead = False
    #: Whether nothing ever happens, and so nothing needs to be drawn.
    is_idle = False

    def __init__(self, parts: Sequence[Part], *, ahead: bool = False) -> None:
        self.parts = parts
        generators = [part.generator for part in parts]
        self._ahead = DrawnAhead(generators) if ahead and self.can_draw_ahead else None
        self.numbers: Numbers = self._ahead or FromGenerators(generators)
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

    def act(
        self,
        runs: Indices,
        x: Tensor,
        y: Tensor,
        *,
        rows: Tensor | None = None,
        given: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw and transform for some of the runs; what was drawn is in their ``params``.

        Args:
            runs: Their numbers.
            x: Their batches ``(runs, n, *features)``.
            y: The targets ``(runs, n, *targets)``.
            rows: Which training rows the batches are, ``(runs, n)``, counted as in ``fit``; None
                where they are not, or it is not known.
            given: What the runs' models are given, as in :meth:`Augmentation.observing`, when ``x``
                is the output of a layer; None when it is their inputs.
        """
        new = []
        with ExitStack() as observations:
            for number, run in enumerate(runs.tolist()):
                part, batch = self.parts[run], (x[number], y[number])
                if given is not None:
                    part_given = given[0][number], given[1][number]
                    observations.enter_context(part.observing(*part_given))
                params = part.draw(*batch)
                part.params = part._public(params)
                new.append(part.transform(*batch, params))
        return torch.stack([one_x for one_x, _ in new]), torch.stack([one_y for _, one_y in new])
