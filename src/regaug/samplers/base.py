"""What every batch sampler shares: seed, epoch, and a share of the batches for every rank."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler

from regaug import _random
from regaug._checks import check_finite, check_integer
from regaug.exceptions import ArgumentError

Indices = NDArray[np.int64]
Values = NDArray[np.float64]
Targets = Tensor | NDArray[Any] | Sequence[float]


class BatchSampler(Sampler[list[int]]):
    """Batches of indices for ``DataLoader(..., batch_sampler=...)``.

    An epoch uses every index at most once. The batches of an epoch depend on ``seed`` and the
    epoch alone. In distributed training every process makes the same batches and takes its own,
    disjoint, equally large share of them; batches that do not fill a round are left out.

    Lightning and Fabric call ``set_epoch`` through :attr:`sampler`; the Trainer needs
    ``use_distributed_sampler=False``, because it would replace this sampler otherwise.

    Args:
        y: Targets of the training set, ``(n,)`` or ``(n, *targets)``: a tensor or an array.
        batch_size: Samples in a batch, from 1 to n.
        seed: Seed of the batches.
        drop_last: Leave out the last batch if it is smaller than the others.
        rank: This process; asked from ``torch.distributed`` at every epoch if None.
        world_size: Number of processes; likewise.
    """

    def __init__(
        self,
        y: Targets,
        batch_size: int,
        *,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        self.y, hint = _as_rows(y), "There are no more samples than that."
        self.batch_size = check_integer("batch_size", batch_size, 1, len(self.y), hint=hint)
        self.seed = check_integer("seed", seed, 0)
        self.drop_last = bool(drop_last)
        self.epoch = 0
        if (rank is None) != (world_size is None):
            raise ArgumentError(
                f"`rank` and `world_size` go together, got rank={rank} and world_size={world_size}."
            )
        if rank is not None and world_size is not None:
            check_integer("world_size", world_size, 1)
            check_integer("rank", rank, 0, world_size - 1)
        self.rank, self.world_size = rank, world_size

    @property
    def sampler(self) -> Self:
        """This object: where Lightning looks for ``set_epoch``."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose batches come next; without it every epoch is the same."""
        self.epoch = check_integer("epoch", epoch, 0)

    def __len__(self) -> int:
        return self._n_batches() // self._place()[1]

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.epoch_batches():
            yield batch.tolist()

    def epoch_batches(self) -> list[Indices]:
        """Return the batches of this epoch as arrays, for whoever wants them all at once."""
        (rank, world_size), n_batches = self._place(), self._n_batches()
        rng = _random.numpy_generator(_random.Stream.BATCHES, self.seed, self.epoch)
        order = self._order(rng)
        # Whole batches first, in random order, so that every rank has a share of them all.
        starts = np.arange(0, len(order), self.batch_size)[:n_batches]
        rng.shuffle(starts)
        mine = starts[: n_batches - n_batches % world_size][rank::world_size].tolist()
        return [order[start : start + self.batch_size] for start in mine]

    def _order(self, rng: np.random.Generator) -> Indices:
        """Return all indices, so that each run of ``batch_size`` is a batch."""
        raise NotImplementedError

    def _n_batches(self) -> int:
        whole, rest = divmod(len(self.y), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def _place(self) -> tuple[int, int]:
        """Return rank and world size, as they are now."""
        rank, world_size = self.rank, self.world_size
        if rank is None or world_size is None:
            # Asked late: the process group may be set up after the sampler is made.
            if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
                return 0, 1
            rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        if self._n_batches() < world_size:
            raise ArgumentError(
                f"`batch_size` must leave a batch for each of {world_size} processes, got "
                f"{self.batch_size} with {len(self.y)} samples: {self._n_batches()} batches."
            )
        return rank, world_size


def group_by_key(
    y: Values, batch_size: int, rng: np.random.Generator, *, key: Callable[[Values], Values]
) -> Indices:
    """Order the samples so that each run of ``batch_size`` is a random sample and its company.

    The company of an anchor are the unused samples with the smallest ``key(distance)``.
    """
    # The unused samples stay in random order, so the first of them is a random one.
    unused = rng.permutation(len(y))
    targets = y[unused]
    batches = []
    while len(unused) > batch_size:
        keys = key(np.linalg.norm(targets - targets[0], axis=1))
        keys[0] = -1.0  # the anchor itself, whatever lies on it
        is_taken = np.zeros(len(unused), dtype=bool)
        is_taken[np.argpartition(keys, batch_size - 1)[:batch_size]] = True
        batches.append(unused[is_taken])
        unused, targets = unused[~is_taken], targets[~is_taken]
    return np.concatenate([*batches, unused])


def _as_rows(y: Targets) -> Values:
    """Return the targets as the rows of a finite float64 array."""
    # Through NumPy, because torch would read a list of Python floats as float32.
    rows = y.detach().cpu() if isinstance(y, Tensor) else torch.from_numpy(np.array(y))
    if rows.ndim < 1 or rows.numel() == 0:
        raise ArgumentError(
            f"`y` must be (n,) or (n, *targets) and not empty, got shape {tuple(rows.shape)}."
        )
    rows = rows.double().reshape(len(rows), -1)
    check_finite(y=rows)
    return rows.numpy()
