"""Batches in which rare targets come more often."""

from itertools import accumulate
from typing import Self

import numpy as np

from regaug._checks import check_range
from regaug.augment.limits import Labels
from regaug.samplers.base import BatchSampler, Indices, PairsWithin, Targets, Values

# So many bandwidths away nothing is left of the kernel; infinity times nothing would be NaN.
_FAR = 700.0


class RareSampler(BatchSampler):
    r"""Random batches in which a sample comes the more often, the fewer targets are near its own.

    In an epoch of n draws sample i comes n :math:`r_i` times on average, with
    :math:`r_i \propto f(y_i)^{-\alpha}` and :math:`f` a kernel density of the targets: in every
    epoch as often as that number rounded down or up. So an epoch is as long as ever, common samples
    are left out of some epochs, and rare ones come several times. At ``alpha=0`` every sample comes
    once; at 1 the drawn targets are spread evenly over their range, so that a single one far from
    all others comes as often as all within a bandwidth of another place together.

    The kernel is :math:`(1 + 2 |u|) e^{-2 |u|}` of the distance in bandwidths, whose sums along a
    line of sorted targets need one pass: they are exact, and take no more memory than the targets.
    Of several targets :math:`f` is the geometric mean of the densities of each, so that a sample is
    rare by any of them.

    Ranks take disjoint shares of the batches, as with every sampler; a rare sample may be in
    several batches.

    Args:
        y: Targets of the training set; see :class:`BatchSampler`, as for what is not listed here.
        batch_size: Samples in a batch, from 1 to n.
        alpha: How much rarity counts, at least 0.
        bandwidth: Width of the kernel in units of the targets, greater than 0. None takes for each
            target the smaller of its standard deviation and its interquartile range / 1.34, times
            0.9 n^(-1/5) (Silverman's rule).
        seed: Seed of the batches.
        groups: A label for every sample: a group has as many draws as samples, and rare ones have
            more of them.

    Attributes:
        rates: How often each sample comes in an epoch, on average, ``(n,)``; their mean is 1.

    Example:
        >>> import torch
        >>> y = torch.tensor([0.0] * 8 + [1.0] * 2)
        >>> sampler = RareSampler(y, 5, alpha=1.0, bandwidth=0.1)
        >>> sampler.rates.round(3).tolist()
        [0.625, 0.625, 0.625, 0.625, 0.625, 0.625, 0.625, 0.625, 2.5, 2.5]
        >>> sum(index >= 8 for batch in sampler for index in batch)  # half of the draws
        5
    """

    repeats = True

    def __init__(
        self,
        y: Targets,
        batch_size: int,
        *,
        alpha: float = 0.5,
        bandwidth: float | None = None,
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
        self.alpha = check_range("alpha", alpha, 0.0)
        if bandwidth is not None:
            check_range("bandwidth", bandwidth, 0.0, open_low=True)
        self.bandwidth = bandwidth
        self.rates = inverse_density(self.y, self.alpha, bandwidth)

    def _only(self, rows: Indices) -> Self:
        own = super()._only(rows)
        own.rates = self.rates[rows] / self.rates[rows].mean()
        return own

    def _order(self, rng: np.random.Generator) -> Indices:
        # Steps of one along the summed rates, from a random start, in random order: a sample comes
        # as often as a step ends in its stretch, which is its rate rounded down or up.
        n = len(self.rates)
        shuffled = rng.permutation(n)
        ends = np.floor(np.cumsum(self.rates[shuffled]) + rng.random())
        ends[-1] = n  # whatever rounding has made of the sum
        times = np.diff(np.minimum(ends, n), prepend=0.0).astype(np.int64)
        return rng.permutation(np.repeat(shuffled, times))


def inverse_density(y: Values, alpha: float, bandwidth: float | None = None) -> Values:
    """Return the density of every row's targets, ``(n, m)``, to the power -alpha, with mean 1."""
    logs = np.zeros(len(y))
    for column in y.T:
        logs += np.log(kernel_sums(column, bandwidth))
    logs /= y.shape[1]
    rates: Values = np.exp(alpha * (logs.min() - logs))  # at most 1, however large alpha is
    rates /= rates.mean()
    return rates


def kernel_sums(values: Values, bandwidth: float | None = None) -> Values:
    """Return the sum of the kernel between every value and all values, itself included."""
    ascending = np.argsort(values, kind="stable")
    # Only ratios count: at order one no difference is too large for a float.
    size = np.abs(values).max() or 1.0
    line = values[ascending] / size
    width = silverman(line) if bandwidth is None else bandwidth / size
    if width == 0:  # equal values, or a bandwidth that is nothing beside them
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        return counts[place].astype(np.float64)
    with np.errstate(over="ignore"):
        apart = np.minimum(2.0 * np.diff(line) / width, _FAR)
    below, above = _sum_from_below(apart), _sum_from_below(apart[::-1])[::-1]
    sums = np.empty(len(values))
    sums[ascending] = 1.0 + below + above
    return sums


def silverman(ascending: Values) -> float:
    """Return a bandwidth for the density of ascending values; 0 if they are all equal."""
    low, high = np.quantile(ascending, [0.25, 0.75])
    spread = ascending.std() if ascending[0] < ascending[-1] else 0.0
    # Where most values are equal there is no range of the middle half.
    middle = (high - low) / 1.34 or spread
    return float(0.9 * min(spread, middle) * len(ascending) ** -0.2)


def _sum_from_below(apart: Values) -> Values:
    """Return for each of some values the kernels of all before it, from the distances between.

    With s the sum of e^-u over those before, and t that of u e^-u, a step of d makes them
    (s + 1) e^-d and (t + (s + 1) d) e^-d: only positive numbers are added, so nothing is lost.
    """

    def step(sums: tuple[float, float], move: tuple[float, float]) -> tuple[float, float]:
        (near, far), (distance, fall) = sums, move
        near += 1.0
        return near * fall, (far + near * distance) * fall

    moves = zip(apart.tolist(), np.exp(-apart).tolist(), strict=True)
    found = np.fromiter(
        (near + far for near, far in accumulate(moves, step, initial=(0.0, 0.0))),
        dtype=np.float64,
        count=len(apart) + 1,
    )
    return found
