"""SMOGN in a training: rows of a batch become new ones where targets are rare."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_choice, check_finite, check_integer, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.base import Augmentation
from regaug.augment.joint import Known, as_rows
from regaug.augment.layer import AtLayer, check_is_input
from regaug.augment.limits import Piece
from regaug.augment.numbers import Values
from regaug.augment.rare_rows import Drawn, RareRows
from regaug.exceptions import ArgumentError, NotFittedError
from regaug.functional.precision import cast
from regaug.metrics import FOCUSES, Focus


@dataclass(frozen=True, eq=False)
class SMOGNParams:
    """What SMOGN draws for a batch.

    Attributes:
        is_new: Which rows become new ones, ``(n,)``; None leaves the batch as it is.
        drawn: What a new row in the place of each would be made from.
    """

    is_new: Tensor | None
    drawn: Drawn | None = None


class SMOGN(Augmentation[SMOGNParams]):
    r"""Let some rows of a batch become new ones where targets are rare (Branco et al., 2017).

    :meth:`fit` finds the rare rows of the training set and their nearest neighbors among those of
    the same end. With :math:`z = (x, y)`, a new row is :math:`z_i + u (z_j - z_i)` for a rare row
    :math:`i` and one of its neighbors :math:`j` if that is near, and
    :math:`z_i + \min(\text{reach}, \sigma) \epsilon` otherwise: see
    :func:`regaug.functional.smogn`. So rare targets come up more often, and not only as the same
    few rows. It gives up some of the error on common targets: judge it by ``tail-rmse`` or
    ``balanced-rmse``.

    Not for layers: rare rows are known by their inputs. To make rows for a table once, not in every
    step, see :class:`regaug.integrations.sklearn.AugmentingSampler` and ``regaug augment``. ``p``,
    ``append``, ``anneal``, ``total_steps`` and ``generator`` are options of every
    :class:`Augmentation`.

    Args:
        neighbors: How many of the nearest rare rows a partner is drawn from, at least 1.
        sigma: Standard deviation of the noise, at least 0, in units of the data: scale inputs and
            targets to order one first.
        focus: Which targets are rare: the tenth of the rows with the ``"high"`` ones, the ``"low"``
            ones or ``"both"``. None goes by the box plot, and by both where it finds less than two.
        rate: Share of the rows that become new ones, in (0, 1].

    Example:
        >>> x = torch.linspace(0.0, 2.0, 100)[:, None]
        >>> augment = SMOGN(focus="high", rate=1.0).fit(x, x.exp())
        >>> new_x, new_y = augment(x[:32], x[:32].exp())
        >>> bool(x[:32].max() < 1.0), bool(new_x.min() > 1.5)
        (True, True)
    """

    neutral = SMOGNParams(is_new=None)
    shown = ("neighbors", "sigma", "focus", "rate")
    company = "stored"
    learns = True
    teaches = True

    def __init__(
        self,
        *,
        neighbors: int = 5,
        sigma: float = 0.1,
        focus: Focus | None = None,
        rate: float = 0.5,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
        self.neighbors = check_integer("neighbors", neighbors, 1)
        self.sigma = check_range("sigma", sigma, 0.0)
        self.focus = check_choice("focus", focus, (None, *FOCUSES))
        self.rate = check_range("rate", rate, 0.0, 1.0, open_low=True)
        self._inputs: Tensor
        self._targets: Tensor
        self._learned: Tensor
        self._codes: Tensor
        self.register_buffer("_inputs", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("_targets", torch.empty(0, 0, dtype=torch.float64))
        # What a training learns instead of the targets; these say who is rare.
        self.register_buffer("_learned", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("_codes", torch.empty(0, dtype=torch.int64))
        self._known: Known[dict[int | None, RareRows]] | None = None
        self._code: int | None = None  # of the group whose rows are made

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Store the training rows."""
        check_finite(x=x, y=y)
        device = self._inputs.device
        self._inputs, self._targets = (
            as_rows(part).detach().to(device, torch.float64) for part in (x, y)
        )
        self._learned = self._targets
        self._codes = self._codes.new_empty(0)

    def learn_groups(self, codes: Tensor) -> None:
        """Note the groups of the training rows: each has rare rows of its own."""
        self._codes = codes.to(self._inputs.device)

    def restate(self, learned: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Let new targets be between what a training learns instead of the old ones."""
        self._learned = learned(self._inputs, self._targets).to(self._targets)

    @contextmanager
    def within(self, piece: Piece, mask: Tensor | None) -> Iterator[None]:
        """Make rows from those of one group only."""
        self._code = piece.code
        try:
            yield
        finally:
            self._code = None

    def draw(self, x: Tensor, y: Tensor) -> SMOGNParams:
        """Draw which rows become new ones, and what from."""
        known = self._find_rare(x, y)
        n, width = len(x), known.width + 1
        return self._params_at(known, _random.uniforms(n * width, self.generator).reshape(n, width))

    def transform(self, x: Tensor, y: Tensor, params: SMOGNParams) -> tuple[Tensor, Tensor]:
        """Put new rows in the place of those that ``params.is_new`` says."""
        if params.is_new is None or params.drawn is None:
            return x, y
        rows_x, rows_y = as_rows(x), as_rows(y)
        made = self._find_rare(x, y).make(params.drawn, sigma=self.sigma)
        is_new = params.is_new[:, None].to(x.device)
        new_x, new_y = (
            torch.where(is_new, cast(new.to(rows.device), rows.dtype), rows)
            for new, rows in zip(made, (rows_x, rows_y), strict=True)
        )
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: each makes rows from its own."""
        return _SMOGNAcross(parts, ahead=ahead)

    def at(
        self, model: nn.Module, place: str | Sequence[str], *, output: int | str | None = None
    ) -> AtLayer[SMOGNParams]:
        """Act on the inputs of ``model``, the only place; see :meth:`Augmentation.at`."""
        why = "SMOGN makes new inputs from training rows, and cannot act on the outputs of"
        check_is_input(place, why, "Use place='input'.")
        return super().at(model, place, output=output)

    def _params_at(self, known: RareRows, uniform: Tensor) -> SMOGNParams:
        """Return the parameters that belong to uniform numbers, a row for each row of a batch."""
        return SMOGNParams(uniform[:, 0] < self.rate, known.draw_at(uniform[:, 1:]))

    def _find_rare(self, x: Tensor, y: Tensor) -> RareRows:
        """Return the rare rows of the training set, or of one group of it."""
        inputs, targets, learned, codes = self._inputs, self._targets, self._learned, self._codes
        if not len(inputs):
            raise NotFittedError("`SMOGN` must see the training rows first: call `.fit(x, y)`.")
        columns = as_rows(x).shape[1], as_rows(y).shape[1]
        if columns != (inputs.shape[1], targets.shape[1]):
            raise ArgumentError(
                f"`x` and `y` must have {inputs.shape[1]} and {targets.shape[1]} columns, as in "
                f"`fit`, got {columns[0]} and {columns[1]}."
            )
        known = None if self._known is None else self._known.of(inputs, targets, learned, codes)
        if known is None:
            known = {}
            self._known = Known(known, inputs, targets, learned, codes)
        if self._code not in known:
            known[self._code] = self._look_for_rare(self._own_rows())
        return known[self._code]

    def _own_rows(self) -> Tensor:
        """Return the numbers of the training rows that may be used."""
        if self._code is None and not len(self._codes):
            return torch.arange(len(self._inputs), device=self._inputs.device)
        if len(self._codes) != len(self._inputs):
            raise NotFittedError(
                "`SMOGN` must know the groups of the training rows, to make rows within them: "
                "call `.fit(x, y, groups=labels)`."
            )
        if self._code is None:
            raise ArgumentError(
                "`groups` must be given, as in `fit`: `augment(x, y, groups=labels)`, got None."
            )
        own = (self._codes == self._code).nonzero().squeeze(1)
        if not len(own):
            raise ArgumentError(
                "`groups` must be those of training rows, got one that `fit` has not seen."
            )
        return own

    def _look_for_rare(self, own: Tensor) -> RareRows:
        x, y, learned = (
            part[own].cpu().double() for part in (self._inputs, self._targets, self._learned)
        )
        return replace(RareRows.of(x, y, neighbors=self.neighbors, focus=self.focus), y=learned)


class _SMOGNAcross(AtOnce[SMOGN]):
    """SMOGN on the batches of several runs."""

    def counts(self, batches: RunBatches) -> int:
        """Return how many uniform numbers a batch needs."""
        x, y = batches.columns
        return x.shape[1] * (self.parts[0]._find_rare(x[0], y[0]).width + 1)

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Make the rows of all batches, run by run."""
        x, y = batches.columns
        n, new_x, new_y = x.shape[1], x.clone(), y.clone()
        for run in np.unique(batches.runs).tolist():
            part, own = self.parts[run], np.flatnonzero(batches.runs == run)
            numbers = torch.from_numpy(uniform[own]).reshape(len(own) * n, -1)
            flat_x, flat_y = x[own].flatten(0, 1), y[own].flatten(0, 1)
            params = part._params_at(part._find_rare(flat_x, flat_y), numbers)
            made = part.transform(flat_x, flat_y, params)
            new_x[own], new_y[own] = (new.reshape(len(own), n, -1) for new in made)
            part.params = part._params_at(part._find_rare(flat_x, flat_y), numbers[-n:])
        return new_x.reshape(batches.x.shape), new_y.reshape(batches.y.shape)
