"""Batches of samples whose targets lie close together."""

import numpy as np

from regaug.samplers.base import BatchSampler, Indices, Values, group_by_key

# Up to so many samples a list that shrinks is faster than a linked one.
FEW = 2**14


class NearestBatchSampler(BatchSampler):
    """Batches of samples whose targets lie close together (the paper's "close").

    Each batch is a random unused sample and its nearest unused samples, by the Euclidean distance
    between targets; the batches come in random order. With one target an epoch takes time
    proportional to n and memory for a few lists; with several, a row of distances is computed for
    every batch.

    Example:
        >>> import torch
        >>> batches = list(NearestBatchSampler(torch.tensor([0.0, 9.0, 0.1, 9.1]), 2))
        >>> sorted(sorted(batch) for batch in batches)
        [[0, 2], [1, 3]]
    """

    def _order(self, rng: np.random.Generator) -> Indices:
        if self.y.shape[1] > 1:
            return group_by_key(self.y, self.batch_size, rng, key=lambda distance: distance)
        # Shuffling before the stable sort puts equal targets in random order.
        shuffled = rng.permutation(len(self.y))
        indices = shuffled[np.argsort(self.y[shuffled, 0], kind="stable")]
        make = _nearest_of_few if len(self.y) <= FEW else _nearest_along_a_line
        return indices[make(self.y[indices, 0], self.batch_size, rng)]


def _nearest_of_few(values: Values, batch_size: int, rng: np.random.Generator) -> Indices:
    """Order the positions of ascending values so that runs of ``batch_size`` are nearest batches.

    A batch is a window of the unused positions around its anchor, found by bisection. Taking it out
    moves all that lie behind it: nothing for a few thousand.
    """
    level, unused = values.tolist(), list(range(len(values)))
    order: list[int] = []
    for number in rng.random(len(values) // batch_size).tolist():
        left = len(unused)
        anchor = int(number * left)
        here = level[anchor]
        start, last = max(0, anchor - batch_size + 1), min(anchor, left - batch_size)
        while start < last:
            middle = (start + last) // 2
            # The first of this window, or what follows it: which is nearer?
            if here - level[middle] <= level[middle + batch_size] - here:
                last = middle
            else:
                start = middle + 1
        taken = slice(start, start + batch_size)
        order += unused[taken]
        del unused[taken], level[taken]
    return np.array(order + unused, dtype=np.int64)


def _nearest_along_a_line(values: Values, batch_size: int, rng: np.random.Generator) -> Indices:
    """Do the same for any number of values, in time proportional to it.

    The unused positions form a linked list. A batch is a run of it around its anchor, so taking it
    out needs two assignments, however long it is.
    """
    n = len(values)
    # One sentinel on each side, infinitely far away; position p of the list is value p - 1.
    level = [-np.inf, *values.tolist(), np.inf]
    before, after = list(range(-1, n + 1)), list(range(1, n + 3))
    unused = bytearray(b"\x01") * (n + 2)
    order: list[int] = []
    for anchor in (rng.permutation(n) + 1).tolist():
        if not unused[anchor]:
            continue
        here = level[anchor]
        left, right = before[anchor], after[anchor]
        unused[anchor] = 0
        order.append(anchor)
        for _ in range(min(batch_size - 1, n - len(order))):
            if here - level[left] <= level[right] - here:
                chosen, left = left, before[left]
            else:
                chosen, right = right, after[right]
            unused[chosen] = 0
            order.append(chosen)
        after[left], before[right] = right, left
    return np.array(order, dtype=np.int64) - 1
