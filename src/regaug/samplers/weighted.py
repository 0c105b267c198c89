"""Batches whose members are drawn by closeness of their targets."""

import numpy as np

from regaug.samplers.base import BatchSampler, Indices, group_by_key


class WeightedBatchSampler(BatchSampler):
    """Batches of a random unused sample and unused partners drawn by closeness.

    Partners are drawn without replacement with probability proportional to 1 / distance between
    targets (the paper's script calls it ``knnp``); samples on the anchor come first. Every batch
    looks at all unused samples, so an epoch takes time proportional to n^2 / batch_size.

    Example:
        >>> import torch
        >>> sampler = WeightedBatchSampler(torch.tensor([0.0, 9.0, 0.0, 9.0]), 2)
        >>> sorted(sorted(batch) for batch in sampler)
        [[0, 2], [1, 3]]
    """

    def _order(self, rng: np.random.Generator) -> Indices:
        # The smallest of exponential draws divided by their weights are a weighted draw without
        # replacement; the weight is 1 / distance.
        return group_by_key(
            self.y,
            self.batch_size,
            rng,
            key=lambda distance: distance * rng.standard_exponential(len(distance)),
        )
