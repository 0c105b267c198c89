"""FeatureMix: swap some columns of a row for those of another row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_choice, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.joint import as_rows
from regaug.augment.numbers import Indices, Values
from regaug.augment.whole import Blocks, KnowsBlocks, blocks_there, count_blocks
from regaug.exceptions import ArgumentError, NotFittedError
from regaug.functional.information import mutual_information
from regaug.functional.mixing import select_rows
from regaug.functional.swapping import feature_mix

Targets = Literal["share", "information", "keep"]
# Above this many training rows the information is that of an even part of them.
_MOST_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class FeatureMixParams:
    """What FeatureMix draws for a batch; None where a batch is left as it is.

    Attributes:
        partners: The row that each row has columns from, ``(n,)``.
        swapped: True where a block of a row is the partner's, ``(n, blocks)``.
    """

    partners: Tensor | None
    swapped: Tensor | None


class FeatureMix(KnowsBlocks[FeatureMixParams]):
    r"""Swap some columns of every row for those of another row of the batch.

    Feat-Mix of ExcelFormer (Chen et al., arXiv 2301.02819); with ``targets="keep"`` swap noise, as
    in SCARF (Bahri et al., ICLR 2022). Columns that belong together, such as those of a category,
    are a block and come from one row as a whole. Of :math:`B` blocks :math:`k` come from the
    partner, in every row others: :math:`k` is :math:`(1 - \lambda) B`, rounded, with one
    :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)` per batch, but at least 1 and less than
    :math:`B`. One block alone leaves nothing to swap: then a batch stays as it is.

    The target becomes :math:`y_i + \Lambda_i (y_j - y_i)`, where :math:`\Lambda_i` is the sum of
    the weights of the blocks that come from the partner: :math:`1 / B` for each, or its share of
    the mutual information of the blocks with that target, which :meth:`fit` learns from the
    training rows; if none tells anything, all weigh the same.

    At a layer every number of its output is a block of its own, and all weigh the same. ``p``,
    ``append``, ``anneal``, ``total_steps`` and ``generator`` are options of every
    :class:`Augmentation`.

    Args:
        alpha: Concentration of the Beta distribution, greater than 0; near 0 a row has nearly
            nothing of its partner, or nearly everything.
        rate: Share of the blocks that come from the partner, in (0, 1], instead of a draw: low for
            ``targets="keep"``. None draws.
        targets: ``"share"``: every block weighs the same. ``"information"``: it weighs what it
            tells about the target; needs :meth:`fit`. ``"keep"``: a row keeps its target.
        blocks: A number for every column of the inputs, equal ones for columns that belong
            together, such as ``split.blocks`` of a table. If None, what a training is told of its
            table; else every column is a block of its own.

    Example:
        >>> x, y = torch.randn(32, 4), torch.randn(32)
        >>> x[:, 2:] = torch.eye(2).repeat(16, 1)  # a category of two levels
        >>> new_x, new_y = FeatureMix(blocks=[0, 1, 2, 2])(x, y)
        >>> new_x.shape, new_x[:, 2:].sum(dim=1).unique().tolist()
        (torch.Size([32, 4]), [1.0])
    """

    neutral = FeatureMixParams(partners=None, swapped=None)
    shown = ("alpha", "rate", "targets")
    company = "partner"

    def __init__(
        self,
        alpha: float = 0.5,
        *,
        rate: float | None = None,
        targets: Targets = "share",
        blocks: Blocks | None = None,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
        self.alpha = check_range("alpha", alpha, 0.0, open_low=True)
        if rate is not None:
            rate = check_range("rate", rate, 0.0, 1.0, open_low=True)
        self.rate = rate
        self.targets: Targets = check_choice("targets", targets, ("share", "information", "keep"))
        self.learns = targets == "information"
        self.weights: Tensor  # of every block for every target; empty before `fit`
        self._keep_blocks(blocks)
        self.register_buffer("weights", torch.empty(0))
        self._has_own_blocks = blocks is not None

    def learn_blocks(self, blocks: Sequence[int]) -> None:
        """Note which columns of the inputs belong together, unless that was said before."""
        if not self._has_own_blocks:
            super().learn_blocks(blocks)

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Find what share of the information about each target is in each block."""
        if not self.learns:
            return
        step = -(-len(x) // _MOST_ROWS)
        rows_x, rows_y = as_rows(x)[::step], as_rows(y)[::step]
        blocks = self._blocks_of(rows_x.shape[1])
        told = mutual_information(rows_x, rows_y, blocks=blocks)
        total = told.sum(dim=0)
        weights = torch.where(total > 0, told / total.clamp(min=1e-300), 1.0 / len(told))
        self.weights = weights.to(self.weights.device)

    def draw(self, x: Tensor, y: Tensor) -> FeatureMixParams:
        """Draw the partners, and the blocks that come from them."""
        n, count = len(x), self._count_blocks(x[0].numel())
        if count == 1:
            return self.neutral
        rate = self.rate
        if rate is None:
            rate = 1.0 - _random.beta(self.alpha, self.generator)
        partners = _random.permutation(n, self.generator)
        uniform = _random.uniforms(n * count, self.generator).reshape(n, count).cpu().numpy()
        swapped = _choose(uniform, _number(np.array(rate), count))
        return FeatureMixParams(partners.to(x.device), swapped.to(x.device))

    def transform(self, x: Tensor, y: Tensor, params: FeatureMixParams) -> tuple[Tensor, Tensor]:
        """Take the blocks ``params.swapped`` from ``params.partners``."""
        if params.partners is None or params.swapped is None:
            return x, y
        rows_x, rows_y = as_rows(x), as_rows(y)
        new_x, new_y = feature_mix(
            rows_x,
            rows_y,
            partners=params.partners,
            swapped=params.swapped,
            blocks=self._blocks_of(rows_x.shape[1]),
            weights=self._weights_for(rows_x, rows_y),
        )
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    def transform_where(
        self, x: Tensor, y: Tensor, params: FeatureMixParams, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Swap the blocks that a row and its partner have all of; the others stay, and weigh 0."""
        if params.partners is None or params.swapped is None:
            return x, y
        is_there, blocks = as_rows(mask), self._blocks_of(x[0].numel())
        if blocks is not None:
            is_there = blocks_there(is_there, blocks.to(x.device))
        is_both = is_there & select_rows(is_there, params.partners)
        swapped = params.swapped & is_both
        return self.transform(x, y, FeatureMixParams(params.partners, swapped))

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _FeatureMixAcross(parts, ahead=ahead)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        blocks = self._blocks_of(len(self.blocks))
        count = None if blocks is None else count_blocks(blocks)
        return (*super().structure, self.targets, self.rate is None, count)

    def _count_blocks(self, columns: int) -> int:
        blocks = self._blocks_of(columns)
        return columns if blocks is None else count_blocks(blocks)

    def _weights_for(self, x: Tensor, y: Tensor) -> Tensor | None:
        """Return what the blocks of a batch of rows weigh; None if all weigh the same."""
        count = self._count_blocks(x.shape[-1])
        if self.targets == "keep":
            return torch.zeros(count, 1)
        if self.targets == "share" or self._is_at_layer:
            return None
        if not self.weights.numel():
            raise NotFittedError(
                "`FeatureMix(targets='information')` must see the training rows first: call "
                "`.fit(x, y)`."
            )
        if self.weights.shape != (count, y.shape[-1]):
            raise ArgumentError(
                "`x` and `y` must have the blocks and targets of `fit`, "
                f"{' and '.join(map(str, self.weights.shape))}, got {count} and {y.shape[-1]}. To "
                "act at a layer use `.at(model, place)`."
            )
        return self.weights


class _FeatureMixAcross(AtOnce[FeatureMix]):
    """FeatureMix of the batches of several runs as one stack."""

    def __init__(self, parts: Sequence[FeatureMix], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._alpha = np.array([part.alpha for part in parts])
        self._rate = np.array([np.nan if part.rate is None else part.rate for part in parts])
        self._draws_rate = parts[0].rate is None
        # Made at the first batch, which says what the weights are for.
        self._blocks: Tensor | None = None
        self._weights: Tensor | None = None

    def counts(self, batches: RunBatches) -> int:
        """Return how many uniform numbers a batch needs: for lam, partners and blocks."""
        n, count = batches.x.shape[1], self._count(batches)
        return 0 if count == 1 else self._draws_rate + n * (1 + count)

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Swap columns in all batches as one stack."""
        runs, (x, y) = batches.runs, batches.columns
        n, count = x.shape[1], self._count(batches)
        if count == 1:
            for _, part in self.last_batches(runs):
                part.params = part.neutral
            return batches.x, batches.y
        rate, numbers = self._rate[runs], uniform
        if self._draws_rate:
            rate, numbers = 1.0 - _random.beta_at(self._alpha[runs], uniform[:, 0]), uniform[:, 1:]
        partners = torch.from_numpy(numbers[:, :n].argsort(axis=1)).to(x.device)
        own = numbers[:, n : n * (1 + count)].reshape(-1, n, count)
        swapped = _choose(own, _number(rate, count)).to(x.device)
        for number, part in self.last_batches(runs):
            part.params = FeatureMixParams(partners[number], swapped[number])
        blocks, weights = self._of_runs(batches)
        new_x, new_y = feature_mix(
            x, y, partners=partners, swapped=swapped, blocks=blocks, weights=weights
        )
        return new_x.reshape(batches.x.shape), new_y.reshape(batches.y.shape)

    def _count(self, batches: RunBatches) -> int:
        columns = batches.x[0, 0].numel()
        return columns if batches.given is not None else self.parts[0]._count_blocks(columns)

    def _of_runs(self, batches: RunBatches) -> tuple[Tensor | None, Tensor | None]:
        """Return the blocks of columns, and their weights, of each batch."""
        x, y = batches.columns
        first, chosen = self.parts[0], torch.from_numpy(batches.runs)
        if batches.given is not None:
            with first.observing(*batches.given):
                return None, first._weights_for(x, y)
        blocks, weights = first._blocks_of(x.shape[-1]), first._weights_for(x, y)
        if blocks is not None:
            if self._blocks is None:
                self._blocks = torch.stack([part.blocks for part in self.parts])
            blocks = self._blocks[chosen]
        if first.learns and weights is not None:
            if self._weights is None:
                found = [part._weights_for(x, y) for part in self.parts]
                self._weights = torch.stack([own for own in found if own is not None])
            weights = self._weights[chosen]
        return blocks, weights


def _number(rate: Values, blocks: int) -> Indices:
    """Return how many blocks come from the partner: some, and not all of them."""
    return np.clip(np.floor(rate * blocks + 0.5), 1, blocks - 1).astype(np.int64)


def _choose(uniform: Values, number: Indices) -> Tensor:
    """Return flags of the ``number`` ``(...)`` smallest of each row of numbers ``(..., n, b)``."""
    # NumPy sorts short rows three times as fast as torch does.
    smallest, places = np.sort(uniform, axis=-1), number[..., None, None] - 1
    return torch.from_numpy(uniform <= np.take_along_axis(smallest, places, axis=-1))
