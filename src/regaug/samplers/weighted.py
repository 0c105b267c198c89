"""Batches whose members are drawn by closeness of their targets."""

import numpy as np

from regaug.samplers.base import BatchSampler, Indices, Values, group_by_key

# The line around an anchor is cut into bands; from one edge to the next the distance halves. What
# is closer than the last edge cannot be told from the anchor.
_REACH = 0.5 ** np.arange(53)


class WeightedBatchSampler(BatchSampler):
    """Batches of a random unused sample and unused partners drawn by closeness.

    Partners are drawn without replacement with probability proportional to 1 / distance between
    targets (the paper's script calls it ``knnp``); samples on the anchor come first. The draws are
    exact. With one target an epoch takes time proportional to n log n; with several, every batch
    looks at all unused samples.

    Example:
        >>> import torch
        >>> sampler = WeightedBatchSampler(torch.tensor([0.0, 9.0, 0.0, 9.0]), 2)
        >>> sorted(sorted(batch) for batch in sampler)
        [[0, 2], [1, 3]]
    """

    def _order(self, rng: np.random.Generator) -> Indices:
        if self.y.shape[1] == 1:
            ascending = np.argsort(self.y[:, 0], kind="stable")
            return ascending[_Line(self.y[ascending, 0], rng).order(self.batch_size)]

        # The smallest of exponential draws divided by their weights are a weighted draw without
        # replacement.
        def key(distance: Values) -> Values:
            return distance * rng.standard_exponential(len(distance))

        return group_by_key(self.y, self.batch_size, rng, key=key)


class _Line:
    """The samples in ascending order of their target, and which of them are unused.

    After so many ``rounds`` of proposals all unused samples are looked at instead.
    """

    def __init__(self, values: Values, rng: np.random.Generator, *, rounds: int = 20) -> None:
        self.rng, self.rounds = rng, rounds
        # Only ratios of distances count: at order one no difference is too large for a float.
        self.all_values = values / (np.abs(values).max() or 1.0)
        span = float(self.all_values[-1] - self.all_values[0])
        self.reach = _REACH * (span * (1 + 1e-9) or 1.0)  # rounding must not leave out the ends
        self.is_unused = np.ones(len(values), dtype=bool)
        self._keep_unused()

    def order(self, batch_size: int) -> Indices:
        """Return all positions, so that each run of ``batch_size`` is a batch."""
        n = len(self.all_values)
        order: list[int] = []
        for anchor in self.rng.permutation(n).tolist():
            if self.is_unused[anchor]:
                self.is_unused[anchor] = False
                order.append(anchor)
                order += self._company(self.all_values[anchor], min(batch_size - 1, n - len(order)))
                if n - len(order) < len(self.values) // 2:
                    self._keep_unused()
        return np.array(order, dtype=np.int64)

    def _keep_unused(self) -> None:
        """Forget the used samples, which would only be proposed in vain."""
        self.positions = np.flatnonzero(self.is_unused)
        self.values = self.all_values[self.positions]

    def _company(self, here: float, count: int) -> list[int]:
        """Draw ``count`` unused positions and mark them as used."""
        low = np.searchsorted(self.values, here - self.reach, side="left")
        high = np.searchsorted(self.values, here + self.reach, side="right")
        company = self._on_the_anchor(low[-1], high[-1], count)
        # Propose by the band's largest weight, accept by the sample's own, skip what is used.
        starts = np.concatenate([low[:-1], high[1:]])
        sizes = np.concatenate([np.diff(low), -np.diff(high)])
        nearest = np.tile(self.reach[1:], 2)
        masses = np.cumsum(sizes / nearest)
        for _ in range(self.rounds):
            if len(company) == count:
                return company
            choice, place, luck = self.rng.random((3, 2 * (count - len(company)) + 8))
            band = np.searchsorted(masses, choice * masses[-1], side="right")
            proposed = starts[band] + (place * sizes[band]).astype(np.int64)
            distance = np.abs(self.values[proposed] - here)
            for position in self.positions[proposed[luck * distance < nearest[band]]].tolist():
                if self.is_unused[position] and len(company) < count:
                    self.is_unused[position] = False
                    company.append(position)
        return company + self._from_all(here, count - len(company))

    def _on_the_anchor(self, low: int, high: int, count: int) -> list[int]:
        """Draw from the unused samples that cannot be told from the anchor."""
        if high - low <= 1:
            return []
        here = self.positions[low:high]
        here = here[self.is_unused[here]]
        return self._take(self.rng.choice(here, min(count, len(here)), replace=False))

    def _from_all(self, here: float, count: int) -> list[int]:
        """Draw by the weights of all unused samples, when proposals mostly hit used ones."""
        unused = np.flatnonzero(self.is_unused)
        if count == 0 or len(unused) == 0:
            return []
        keys = np.abs(self.all_values[unused] - here) * self.rng.standard_exponential(len(unused))
        return self._take(unused[np.argpartition(keys, count - 1)[:count]])

    def _take(self, positions: Indices) -> list[int]:
        self.is_unused[positions] = False
        taken: list[int] = positions.tolist()
        return taken
