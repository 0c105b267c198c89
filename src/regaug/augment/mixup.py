"""Mixup and C-Mixup: move samples toward other samples."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_choice, check_flag, check_integer, check_range
from regaug.augment.across import Across, MixesRows, Pair, RunBatches
from regaug.augment.joint import as_rows
from regaug.augment.limits import Piece
from regaug.augment.numbers import Indices, Values
from regaug.augment.pairs import PairCheck
from regaug.augment.whole import Categories, TakesWhole, WholeColumns, own_rows, whole_shares
from regaug.exceptions import ArgumentError
from regaug.functional.mixing import kernel_probabilities, mix, stretch
from regaug.functional.partners import assigned_partners, nearest_partners

Pairs = Literal["random", "assignment", "neighbors"]
Spread = Literal["shrink", "keep"]
PAIRS: tuple[Pairs, ...] = ("random", "assignment", "neighbors")
SPREADS: tuple[Spread, ...] = ("shrink", "keep")


@dataclass(frozen=True)
class MixupParams:
    """What mixup draws for a batch.

    Attributes:
        lam: Share of a sample itself in the new sample; with ``spread="keep"`` it may lie outside
            of [0, 1].
        partners: The row that each row is mixed with; None where a batch is left as it is.
        swapped: True where a row has what is taken whole from its partner, ``(n,)``; None if
            nothing is.
    """

    lam: float
    partners: Tensor | None = field(repr=False, compare=False)
    swapped: Tensor | None = field(default=None, repr=False, compare=False)


class KnowsMask:
    """Notes which values of a batch are there, for draws that depend on distances."""

    _mask: Tensor | None = None

    @property
    def known_mask(self) -> Tensor | None:
        """True where a value is there, as rows; None if all are."""
        return None if self._mask is None else as_rows(self._mask)

    @contextmanager
    def within(self, piece: Piece, mask: Tensor | None) -> Iterator[None]:
        """Draw and transform for a part of a batch, of which this is there."""
        before, self._mask = self._mask, mask
        try:
            yield
        finally:
            self._mask = before


class Mixup(KnowsMask, TakesWhole[MixupParams]):
    r"""Mix every sample with another one of the batch (Zhang et al., ICLR 2018).

    Sample :math:`i` becomes :math:`\lambda (x_i, y_i) + (1 - \lambda) (x_j, y_j)`, with one
    :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)` per batch. At a hidden layer,
    ``Mixup().at(net, "layer")``, this is manifold mixup (Verma et al., ICML 2019). ``p``,
    ``append``, ``anneal``, ``total_steps`` and ``generator`` are options of every
    :class:`Augmentation`.

    Args:
        alpha: Concentration of the Beta distribution, greater than 0; near 0 samples stay as they
            are or change places with their partners.
        pairs: Who is mixed with whom. ``"random"``: a random permutation of the batch.
            ``"assignment"``: a random half of the batch with the other half, such that the sum of
            the pairs' squared distances is the smallest (k-Mixup, Greenewald et al., 2021; k is
            half of the batch, and the time of a batch grows with its cube). ``"neighbors"``: one of
            the nearest samples. Distances are those of what is mixed: of inputs, or at a layer of
            its outputs.
        neighbors: How many samples are near, at least 1; for ``pairs="neighbors"`` alone.
        spread: ``"shrink"``: new samples lie between old ones, so their variance is smaller.
            ``"keep"``: :math:`\lambda` is stretched about 1/2 by :math:`\sqrt{2 \alpha + 1}`, so
            that variances and covariances of inputs and targets are, on average over batches,
            those of the data (EpBeta, Lee et al., AISTATS 2025): exactly so where a sample is a
            partner as often as every other, that is for random and assigned pairs.
        paired: The batch is samples followed by their partners, half and half, as
            ``KernelPairSampler`` lists them: row i is mixed with row n / 2 + i, and n / 2 samples
            come out, also from a batch that is left untouched. Otherwise partners are found in
            the batch, by ``pairs``.
        categories: ``"mix"``: all columns are numbers. ``"whole"``: columns that belong together,
            such as those of a category, are taken whole from one of the two rows, all of them from
            the same, so that there is such a combination of levels: from the partner with
            probability :math:`1 - \lambda`. Which columns these are a training is told by its
            table, and :meth:`fit` by ``blocks``; else every column stands for itself.

    Example:
        >>> x, y = torch.randn(32, 5), torch.randn(32)
        >>> new_x, new_y = Mixup(alpha=2.0)(x, y)
        >>> new_x.shape, new_y.shape
        (torch.Size([32, 5]), torch.Size([32]))
    """

    neutral = MixupParams(lam=1.0, partners=None)
    shown: tuple[str, ...] = ("alpha", "pairs", "spread", "paired")

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        pairs: Pairs = "random",
        neighbors: int = 4,
        spread: Spread = "shrink",
        paired: bool = False,
        categories: Categories = "mix",
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
        self.pairs = check_choice("pairs", pairs, PAIRS)
        self.neighbors = check_integer("neighbors", neighbors, 1)
        self.spread = check_choice("spread", spread, SPREADS)
        self.paired = check_flag("paired", paired)
        self._choose_categories(categories)
        self.company = "pairs" if self.paired else "partner"
        if self.paired and pairs != "random":
            raise ArgumentError(
                "`pairs` must be 'random' for `paired=True`, where the batch brings the partners "
                f"along, got {pairs!r}. Leave out one of the two."
            )

    def draw(self, x: Tensor, y: Tensor) -> MixupParams:
        """Draw lam and the partners."""
        lam = _random.beta(self.alpha, self.generator)
        if self.spread == "keep":
            lam = float(stretch(lam, alpha=self.alpha))
        if self.paired:
            half = _half(x)
            partners = torch.arange(half, 2 * half, device=x.device)
        else:
            partners = self._draw_partners(x, y).to(x.device)
        return MixupParams(lam, partners, self._draw_swapped(x, lam, len(partners)))

    def _draw_swapped(self, x: Tensor, lam: float, rows: int) -> Tensor | None:
        if self.whole_columns(x[0].numel()) is None:
            return None
        return _random.uniforms(rows, self.generator).to(x.device) >= lam

    def transform(self, x: Tensor, y: Tensor, params: MixupParams) -> tuple[Tensor, Tensor]:
        """Mix the rows with ``params.partners``."""
        return self._mix(x, y, params, None)

    def transform_where(
        self, x: Tensor, y: Tensor, params: MixupParams, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mix the values that a row and its partner both have; all others stay the row's own."""
        return self._mix(x, y, params, self.whole_mask(mask))

    def _mix(
        self, x: Tensor, y: Tensor, params: MixupParams, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        lam, partners = params.lam, params.partners
        if partners is None:
            return self.originals(x, y)
        share: float | Tensor = lam
        is_whole = self.whole_columns(x[0].numel())
        if is_whole is not None and params.swapped is not None:
            share = whole_shares(lam, params.swapped, is_whole.to(x.device))
        new_x, new_y = mix(
            as_rows(x), as_rows(y), lam=share, partners=partners, mask=mask, lam_y=lam
        )
        return new_x.reshape(-1, *x.shape[1:]), new_y.reshape(-1, *y.shape[1:])

    def originals(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the samples without their partners."""
        if not self.paired:
            return x, y
        half = _half(x)
        return x[:half], y[:half]

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _MixupAcross(parts, ahead=ahead)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.paired, self.pairs)

    def _draw_partners(self, x: Tensor, y: Tensor) -> Tensor:
        if self.pairs == "neighbors":
            draws = _random.uniforms(len(y), self.generator)
            return nearest_partners(
                as_rows(x), draws=draws, neighbors=self.neighbors, mask=self.known_mask
            )
        order = _random.permutation(len(y), self.generator)
        if self.pairs == "random":
            return order
        return assigned_partners(as_rows(x), order=order, mask=self.known_mask)


class CMixup(Mixup):
    r"""Mix samples whose targets are close (Yao et al., NeurIPS 2022).

    Like :class:`Mixup`, but the partner :math:`j` of sample :math:`i` is drawn with probability
    proportional to :math:`\exp(-|y_i - y_j|^2 / (2 b^2))`; a sample may be its own partner, as in
    the authors' script. The paper draws from the whole training set: that is ``paired=True``
    together with ``KernelPairSampler(y, batch_size, bandwidth=b)``. Without it partners are drawn
    within the batch, which works with any loader. Batches that were promised to be pairs and are
    none are found, after 500 to 4,000 pairs whose targets are no closer than by chance, and a
    warning says what to do.

    Args:
        alpha: Concentration of the Beta distribution, greater than 0.
        bandwidth: Width :math:`b` of the kernel in units of the targets, greater than 0. Not used
            if ``paired``: there the sampler has drawn the partners, with its own.
        paired: The batch is samples followed by their partners; see :class:`Mixup`, as for the
            other options.

    Example:
        >>> from regaug.samplers.kernel_pairs import KernelPairSampler
        >>> x, y = torch.randn(100, 5), torch.randn(100)
        >>> augment = CMixup(alpha=2.0, paired=True)
        >>> for batch in KernelPairSampler(y, 20, bandwidth=0.1):
        ...     new_x, new_y = augment(x[batch], y[batch])
        >>> new_x.shape, new_y.shape
        (torch.Size([20, 5]), torch.Size([20]))
    """

    shown = ("bandwidth", "alpha", "paired")

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        bandwidth: float = 1.0,
        paired: bool = False,
        categories: Categories = "mix",
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            alpha,
            paired=paired,
            categories=categories,
            p=p,
            append=append,
            anneal=anneal,
            total_steps=total_steps,
            generator=generator,
        )
        self.bandwidth = check_range("bandwidth", bandwidth, 0.0, open_low=True)
        self._check = PairCheck() if self.paired else None

    def draw(self, x: Tensor, y: Tensor) -> MixupParams:
        """Draw lam and the partners."""
        params = super().draw(x, y)
        if self._check is not None and (found := self._check.look(y)) is not None:
            share, compared = found
            warnings.warn(
                "CMixup(paired=True) mixes row i with row n / 2 + i, whose targets should be "
                f"close, but in {compared:,} comparisons that partner was closer than another row "
                f"in {share:.0%} only, as by chance. Take the batches from KernelPairSampler(y, "
                "batch_size, bandwidth=...), with a bandwidth below the spread of the targets, or "
                "leave out `paired` for partners within a plain batch.",
                stacklevel=2,
            )
        return params

    def trust_pairs(self) -> None:
        """Do not look whether the batches are pairs: whoever makes them knows."""
        self._check = None

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _CMixupAcross(parts, ahead=ahead)

    def _draw_partners(self, x: Tensor, y: Tensor) -> Tensor:
        draws = _random.uniforms(len(y), self.generator).to(y.device)
        return _close_partners(y.reshape(len(y), -1), self.bandwidth, draws)


class _MixupAcross(MixesRows[Mixup]):
    """Mixup of the batches of several runs as one stack."""

    def __init__(self, parts: Sequence[Mixup], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._alpha = np.array([part.alpha for part in parts])
        self._keeps = np.array([part.spread == "keep" for part in parts])
        self._neighbors = np.array([part.neighbors for part in parts])
        self._whole = WholeColumns(parts)

    def counts(self, batches: RunBatches) -> int | Indices:
        """Return how many uniform numbers a batch needs: for lam, partners, and what is whole."""
        n, first = batches.x.shape[1], self._count_first(batches)
        flags = self._whole.of(batches)
        if flags is None:
            return first
        rows = n // 2 if self.parts[0].paired else n
        return first + rows * flags.any(dim=1).cpu().numpy().astype(np.int64)

    def _count_first(self, batches: RunBatches) -> int:
        return 1 if self.parts[0].paired else 1 + batches.x.shape[1]

    @property
    def is_blind(self) -> bool:
        """Whether shares and partners can be drawn before it is known what is to be mixed."""
        return self.parts[0].pairs == "random" and not self._whole.is_asked_for

    def mixtures(self, batches: RunBatches, uniform: Values) -> tuple[Values, Tensor]:
        """Return the share of a row itself in each batch, and the partners."""
        runs, x = batches.runs, batches.x
        alpha = self._alpha[runs]
        lam: Values = _random.beta_at(alpha, uniform[:, 0])
        lam = np.where(self._keeps[runs], stretch(lam, alpha=alpha), lam)
        if self.parts[0].paired:
            half = _half(x[0])
            partners = torch.arange(half, 2 * half, device=x.device).expand(len(x), half)
        else:
            own = uniform[:, 1 : self._count_first(batches)]
            partners = self._find_partners(runs, *batches.columns, own).to(x.device)
        for number, part in self.last_batches(runs):
            part.params = MixupParams(float(lam[number]), partners[number])
        return lam, partners

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Mix all batches as one stack."""
        runs, x, y = batches.runs, batches.x, batches.y
        lam, partners = self.mixtures(batches, uniform)
        rows_x, rows_y = batches.columns
        share = lam_y = torch.from_numpy(lam)
        if (flags := self._whole.of(batches)) is not None:
            first = self._count_first(batches)
            own = uniform[:, first : first + partners.shape[1]]
            swapped = torch.from_numpy(own >= lam[:, None]).to(x.device)
            share = whole_shares(lam_y, swapped, flags)
            for number, part in self.last_batches(runs):
                part.params = replace(part.params, swapped=own_rows(swapped, flags, number))
        new_x, new_y = mix(rows_x, rows_y, lam=share, partners=partners, lam_y=lam_y)
        shape = new_x.shape[:2]
        return new_x.reshape(*shape, *x.shape[2:]), new_y.reshape(*shape, *y.shape[2:])

    def _find_partners(self, runs: Indices, x: Tensor, y: Tensor, uniform: Values) -> Tensor:
        if self.parts[0].pairs == "neighbors":
            draws, neighbors = torch.tensor(uniform), torch.from_numpy(self._neighbors[runs])
            return nearest_partners(x, draws=draws, neighbors=neighbors)
        order = torch.from_numpy(uniform.argsort(axis=1))
        return order if self.parts[0].pairs == "random" else assigned_partners(x, order=order)


class _CMixupAcross(_MixupAcross):
    """The same with partners whose targets are close."""

    def __init__(self, parts: Sequence[CMixup], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._bandwidth = np.array([part.bandwidth for part in parts])

    def _find_partners(self, runs: Indices, x: Tensor, y: Tensor, uniform: Values) -> Tensor:
        bandwidth, draws = torch.from_numpy(self._bandwidth[runs]), torch.tensor(uniform)
        return _close_partners(y, bandwidth.to(y.device), draws.to(y.device))


def _close_partners(y: Tensor, bandwidth: float | Tensor, draws: Tensor) -> Tensor:
    """Return the partners of the rows ``(..., n, m)`` that belong to uniform draws ``(..., n)``."""
    # Not torch.multinomial: it draws a number for each of the n^2 probabilities.
    cumulative = kernel_probabilities(y, bandwidth=bandwidth).cumsum(dim=-1)
    wanted = draws[..., None] * cumulative[..., -1:]
    return torch.searchsorted(cumulative, wanted, right=True).squeeze(-1)


def _half(x: Tensor) -> int:
    """Return the number of samples in a batch of samples and partners."""
    half, rest = divmod(len(x), 2)
    if rest or not half:
        raise ArgumentError(
            "`x` and `y` must have an even number of rows for `paired=True`, samples first and "
            f"then their partners, got {len(x)}. KernelPairSampler makes such batches."
        )
    return half
