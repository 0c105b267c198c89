"""What every batch sampler shares: seed, epoch, and a share of the batches for every rank."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    epoch alone. Every iteration to the end is followed by the next epoch, with other batches; one
    that is abandoned, such as a look at the first batch, does not count. :meth:`set_epoch` chooses
    the epoch, :meth:`state_dict` is for a training that goes on later.

    In distributed training every process makes the same batches and takes its own, disjoint,
    equally large share of them; batches that do not fill a round are left out. Lightning and Fabric
    call ``set_epoch`` through :attr:`sampler`; the Trainer needs ``use_distributed_sampler=False``,
    because it would replace this sampler otherwise.

    Args:
        y: Targets of the training set, ``(n,)`` or ``(n, *targets)``: a tensor or an array.
        batch_size: Samples in a batch, from 1 to n.
        seed: Seed of the batches.
        drop_last: Leave out the last batch if it is smaller than the others.
        rank: This process; asked from ``torch.distributed`` at every epoch if None.
        world_size: Number of processes; likewise.

    Attributes:
        epoch: The epoch whose batches come next, counted from 0.
    """

    #: Whether a batch is samples followed by their partners, twice ``batch_size`` in all.
    paired = False

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
        self._turn = 0  # counts the changes of the epoch
        self._abandoned = 0  # iterations of this epoch that have begun, and not come to an end
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
        """Choose the epoch whose batches come next; from there it goes on by itself.

        An iteration that is under way keeps its batches, and does not count when it ends.
        """
        self.epoch = check_integer("epoch", epoch, 0)
        self._turn += 1
        self._abandoned = 0

    def state_dict(self) -> dict[str, int]:
        """Return where to go on later: the epoch that is under way, or that comes next."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go on with the epoch of :meth:`state_dict`, from its first batch."""
        if "epoch" not in state_dict:
            raise ArgumentError(
                "`state_dict` must be what state_dict() of a batch sampler returns, with an "
                f"'epoch', got {dict(state_dict)!r}."
            )
        self.set_epoch(state_dict["epoch"])

    def __len__(self) -> int:
        return self._n_batches() // self._place()[1]

    def __iter__(self) -> Iterator[list[int]]:
        batches, turn = self.epoch_batches(), self._turn
        self._warn_of_repetition()
        for number, batch in enumerate(batches, 1):
            # With its last batch, not after it: whoever counts the batches never asks for more.
            if turn == self._turn and number == len(batches):
                self.set_epoch(self.epoch + 1)
            elif turn == self._turn and number == 2:  # one batch is but a look
                self._abandoned += 1
            yield batch.tolist()

    def _warn_of_repetition(self) -> None:
        if self._abandoned == 2:
            self._abandoned += 1  # once is enough
            warnings.warn(
                f"{type(self).__name__} begins epoch {self.epoch} for the third time, with the "
                "same batches: an iteration that is abandoned does not count. If every epoch is "
                "to be that short, call sampler.set_epoch(epoch) before each.",
                stacklevel=3,
            )

    def epoch_batches(self) -> list[Indices]:
        """Return the batches of this epoch as arrays, all at once; that is no iteration."""
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
