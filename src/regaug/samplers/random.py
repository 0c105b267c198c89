"""Batches at random."""

import numpy as np

from regaug.samplers.base import BatchSampler, Indices


class RandomBatchSampler(BatchSampler):
    """Batches of samples that share nothing: a permutation, cut.

    Example:
        >>> import torch
        >>> batches = list(RandomBatchSampler(torch.randn(10), 4))
        >>> [len(batch) for batch in sorted(batches, key=len)]
        [2, 4, 4]
    """

    def _order(self, rng: np.random.Generator) -> Indices:
        return rng.permutation(len(self.y))
