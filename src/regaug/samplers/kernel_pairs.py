"""Batches of samples, each with a partner drawn by closeness of targets (C-Mixup)."""

from typing import Self

import numpy as np

from regaug import _random
from regaug._checks import check_range
from regaug.augment.limits import Labels
from regaug.samplers.base import Indices, PairsWithin, Targets, Values
from regaug.samplers.random import RandomBatchSampler

# The line around a sample is cut into bands. From one edge to the next the kernel falls by the same
# factor, exp(-_FALL), out to 6 bandwidths, where it is 1.5e-8; two last bands hold the rest of the
# line, so that nothing is left out. _CEILINGS is the largest value of the kernel in each band.
_FALL = 3.0
_REACH = np.sqrt(2.0 * _FALL * np.arange(1, 7))
_CEILINGS = np.exp(-_FALL * np.abs(np.arange(-6, 7)))
_CHUNK = 8192  # samples worked on at a time: their bands fit into the cache
_KEPT = 2048  # samples whose bands are kept from epoch to epoch (0.4 MB)
_FEW = 512  # samples so few that the kernel of all pairs is kept (2 MB), and bands are not needed


class KernelPairSampler(RandomBatchSampler):
    r"""Random batches in which every sample brings a partner with a similar target (C-Mixup).

    The partner :math:`j` of sample :math:`i` is drawn from the whole training set with probability
    proportional to :math:`\exp(-|y_i - y_j|^2 / (2 b^2))`; a sample may be its own partner, as in
    the script of the C-Mixup paper (Yao et al., 2022). A batch lists the samples and then their
    partners in the same order, ``2 * batch_size`` indices in all: what ``CMixup(paired=True)``
    takes. An epoch uses an index at most once as a sample, and any number of times as a partner.

    The draws are exact, and beyond 512 samples no n x n matrix is made. With one target an epoch
    takes time proportional to n log n; with several, at worst that of all n^2 distances.

    Args:
        y: Targets of the training set; see :class:`BatchSampler`, as for what is not listed here.
        batch_size: Samples in a batch, without their partners, from 1 to n.
        bandwidth: Width :math:`b` of the kernel in units of the targets, greater than 0.
        seed: Seed of batches and partners.
        groups: A label for every sample: partners are of the sample's own group, with or without
            ``pairs_within="group"``; one that is alone in it is its own partner.

    Example:
        >>> import torch
        >>> y = torch.tensor([0.0, 0.0, 50.0, 50.0])
        >>> [batch] = KernelPairSampler(y, 4)
        >>> samples, partners = batch[:4], batch[4:]
        >>> bool((y[samples] == y[partners]).all())  # 50 bandwidths are never bridged
        True
    """

    paired = True
    #: Distances held in memory at a time (32 MB), where there are several targets.
    block = 2**22

    def __init__(
        self,
        y: Targets,
        batch_size: int,
        *,
        bandwidth: float = 1.0,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        groups: Labels | None = None,
        pairs_within: PairsWithin | None = None,
    ) -> None:
        super().__init__(
            y,
            batch_size,
            seed=seed,
            drop_last=drop_last,
            rank=rank,
            world_size=world_size,
            groups=groups,
            pairs_within=pairs_within,
        )
        self.bandwidth = check_range("bandwidth", bandwidth, 0.0, open_low=True)
        self._sort()

    def _sort(self) -> None:
        # Sorted along the target that tells samples apart best.
        with np.errstate(over="ignore", invalid="ignore"):
            axis = int(self.y.std(axis=0).argmax())
        self._ascending = np.argsort(self.y[:, axis], kind="stable")
        self._targets = self.y[self._ascending]
        self._line = np.ascontiguousarray(self._targets[:, axis])
        self._known: _Bands | None = None
        self._shares: Values | None = None

    def _only(self, rows: Indices) -> Self:
        own = super()._only(rows)
        own._sort()
        return own

    def epoch_batches(self) -> list[Indices]:
        """Return the batches of this epoch: samples, then their partners."""
        # All partners of the epoch are drawn by every rank, so that the ranks agree on them.
        rng = _random.numpy_generator(_random.Stream.PARTNERS, self.seed, self.epoch)
        partners = self._draw_partners(rng)
        return [np.concatenate([batch, partners[batch]]) for batch in super().epoch_batches()]

    @np.errstate(over="ignore")  # infinitely many bandwidths apart is a fine answer
    def _draw_partners(self, rng: np.random.Generator) -> Indices:
        """Return the partner of every sample."""
        partners = np.empty(len(self.y), dtype=np.int64)
        if self.groups is not None:
            for rows, own in self._groups_of():
                partners[rows] = rows[own._draw_partners(rng)]
            return partners
        if len(self.y) <= _FEW:
            partners[self._ascending] = self._ascending[self._draw_by_shares(rng)]
            return partners
        for start in range(0, len(self.y), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            found = self._draw_positions(self._targets[chunk], self._find_bands(chunk), rng)
            partners[self._ascending[chunk]] = self._ascending[found]
        return partners

    def _draw_by_shares(self, rng: np.random.Generator) -> Indices:
        """Draw a partner for every target, as its place in the ascending order, from all shares."""
        n = len(self.y)
        place = np.arange(n)
        if self._shares is None:
            masses = self._add_up(self._targets)
            # One ascending line: sample after sample, a unit for the partners of each.
            self._shares = (masses / masses[:, -1:] + place[:, None]).ravel()
        line = np.searchsorted(self._shares, rng.random(n) + place, side="right")
        found: Indices = np.minimum(line - n * place, n - 1)  # just below 1 may be rounded to it
        return found

    def _find_bands(self, chunk: slice) -> "_Bands":
        """Return the bands around some samples; all epochs have those of a small set."""
        if self._known is not None:
            return self._known
        bands = _Bands(self._line[chunk], self._line, self.bandwidth)
        if len(self.y) <= _KEPT:
            self._known = bands
        return bands

    def _draw_positions(self, here: Values, bands: "_Bands", rng: np.random.Generator) -> Indices:
        """Draw a partner for each of some targets, as its place in the ascending order.

        Propose a band by its size times its ceiling, then any sample in it, and accept it with
        the probability kernel / ceiling, else propose anew.
        """
        found = np.empty(len(here), dtype=np.int64)
        left, masses = np.arange(len(here)), bands.masses
        # A proposal costs as much as some ten distances: stop while all of them are still cheaper
        # than looking at every sample.
        for _ in range(10 + len(self.y) // 50):
            choice, place, luck = rng.random((3, len(left)))
            band = (masses <= choice * masses[-1]).sum(axis=0)
            low, high = bands.edges[band, left], bands.edges[band + 1, left]
            position = low + (place * (high - low)).astype(np.int64)
            apart = (self._targets[position] - here[left]) / self.bandwidth
            kernel = np.exp(-0.5 * np.square(apart).sum(axis=1))
            is_accepted = luck * _CEILINGS[band] < kernel
            found[left[is_accepted]] = position[is_accepted]
            rest = np.flatnonzero(~is_accepted)
            left, masses = left[rest], masses.take(rest, axis=1)
            if not len(left):
                return found
        found[left] = self._draw_from_all(here[left], rng)
        return found

    def _draw_from_all(self, here: Values, rng: np.random.Generator) -> Indices:
        """Do the same by computing the probabilities of all samples."""
        found = np.empty(len(here), dtype=np.int64)
        rows = max(self.block // len(self.y), 1)
        for start in range(0, len(here), rows):
            masses = self._add_up(here[start : start + rows])
            choice = rng.random((len(masses), 1)) * masses[:, -1:]
            found[start : start + rows] = (masses <= choice).sum(axis=1)
        return found

    def _add_up(self, here: Values) -> Values:
        """Return the sums of the kernel between some targets and all, up to each of these."""
        from scipy.spatial.distance import cdist

        apart = cdist(here, self._targets) / self.bandwidth
        masses: Values = np.cumsum(np.exp(-0.5 * np.square(apart)), axis=1)
        return masses


class _Bands:
    """The bands around some values in the ascending ``line``.

    Attributes:
        edges: Where they begin and end, ``(bands + 1, values)``. Rounding keeps the order of
            numbers, so no value lies above the ceiling of its band.
        masses: Sums of sizes times ceilings up to each of them, ``(bands, values)``.
    """

    def __init__(self, here: Values, line: Values, bandwidth: float) -> None:
        n_bands, n_reach = len(_CEILINGS), len(_REACH)
        self.edges = np.empty((n_bands + 1, len(here)), dtype=np.int64)
        self.edges[0], self.edges[-1] = 0, len(line)
        for k, reach in enumerate(_REACH * bandwidth):
            self.edges[n_reach - k] = np.searchsorted(line, here - reach, side="left")
            self.edges[n_reach + 1 + k] = np.searchsorted(line, here + reach, side="right")
        self.masses = np.cumsum(np.diff(self.edges, axis=0) * _CEILINGS[:, None], axis=0)
