"""What every batch sampler shares: seed, epoch, and a share of the batches for every rank."""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler

from regaug import _random
from regaug._checks import as_numbers, check_choice, check_finite, check_flag, check_integer
from regaug.augment.limits import Labels, code_labels
from regaug.exceptions import ArgumentError, ArgumentTypeError

Indices = NDArray[np.int64]
Values = NDArray[np.float64]
PairsWithin = Literal["group"]
Targets = Tensor | NDArray[Any] | Sequence[float]


class BatchSampler(Sampler[list[int]]):
    """Batches of indices for ``DataLoader(..., batch_sampler=...)``.

    An epoch uses every index at most once, unless the sampler :attr:`repeats` some. The batches of
    an epoch depend on ``seed`` and the epoch alone. Every iteration to the end is followed by the
    next epoch, with other batches; one that is abandoned, such as a look at the first batch, does
    not count. :meth:`set_epoch` chooses the epoch, :meth:`state_dict` is for a training that goes
    on later.

    In distributed training every process makes the same batches and takes its own, disjoint,
    equally large share of them; batches that do not fill a round are left out. Lightning and Fabric
    call ``set_epoch`` through :attr:`sampler`; the Trainer needs ``use_distributed_sampler=False``,
    because it would replace this sampler otherwise.

    Args:
        y: Targets of the training set, ``(n,)`` or ``(n, *targets)``: a tensor or an array.
        batch_size: Samples in a batch, from 1 to n.
        seed: Seed of the batches.
        drop_last: Leave out the last batch if it is smaller than the others.
        groups: A label for every sample. Those of one group come side by side: batches are as
            large as ever and hold as few groups as that allows, for
            ``augment(x[batch], y[batch], groups=labels[batch])``. A sampler of pairs draws partners
            from the sample's own group, and its batches stay as they are.
        pairs_within: ``"group"``: a batch holds samples of one group only, whatever is done with
            it. Batches are smaller where groups end; with ``drop_last`` that is left out of groups
            that fill a batch, so that none is left out as a whole. None sets no such limit.
        rank: This process; asked from ``torch.distributed`` at every epoch if None.
        world_size: Number of processes; likewise.

    Attributes:
        epoch: The epoch whose batches come next, counted from 0.
    """

    #: Whether a batch is samples followed by their partners, twice ``batch_size`` in all.
    paired = False
    #: Whether an epoch may use an index several times, and others not at all.
    repeats = False

    def __init__(
        self,
        y: Targets,
        batch_size: int,
        *,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        groups: Labels | None = None,
        pairs_within: PairsWithin | None = None,
    ) -> None:
        self.y, hint = _as_rows(y), "There are no more samples than that."
        self.batch_size = check_integer("batch_size", batch_size, 1, len(self.y), hint=hint)
        self.seed = check_integer("seed", seed, 0)
        self.drop_last = check_flag("drop_last", drop_last)
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
        self.groups = None if groups is None else code_labels(groups, len(self.y)).numpy()
        self.pairs_within = check_pairs_within(pairs_within, has_groups=groups is not None)
        self._sizes: Indices = np.unique(self._codes(), return_counts=True)[1]  # of the groups
        self._members: list[tuple[Indices, Self]] | None = None  # made when they are needed

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
        order = self._order_groups(rng) if self._keeps_groups else self._order(rng)
        # Whole batches first, in random order, so that every rank has a share of them all.
        starts, ends = self._cuts()
        numbers = np.arange(n_batches)
        rng.shuffle(numbers)
        mine = numbers[: n_batches - n_batches % world_size][rank::world_size]
        slices = zip(starts[mine].tolist(), ends[mine].tolist(), strict=True)
        return [order[start:end] for start, end in slices]

    def _order(self, rng: np.random.Generator) -> Indices:
        """Return all indices, so that each run of ``batch_size`` is a batch."""
        raise NotImplementedError

    @property
    def _keeps_groups(self) -> bool:
        """Whether samples of a group share batches; where they bring partners, they need not."""
        return self.groups is not None and not self.paired

    def _codes(self) -> Indices:
        """Return a number for every sample that tells its group, one for all without groups."""
        return np.zeros(len(self.y), np.int64) if self.groups is None else self.groups

    def _groups_of(self) -> "list[tuple[Indices, Self]]":
        """Return the samples of each group, and a sampler of them alone."""
        if self._members is None:
            codes = self._codes()
            order = np.argsort(codes, kind="stable")
            borders = np.flatnonzero(np.diff(codes[order])) + 1
            self._members = [(rows, self._only(rows)) for rows in np.split(order, borders)]
        return self._members

    def _only(self, rows: Indices) -> Self:
        """Return a sampler like this one for some of the samples."""
        own = copy.copy(self)
        own.y, own.groups, own._members = self.y[rows], None, None
        own.batch_size = min(self.batch_size, len(rows))
        return own

    def _order_groups(self, rng: np.random.Generator) -> Indices:
        """Return all indices by group: whole batches of each, then what is left, if that may mix.

        Where a batch must not have two groups, they follow each other as in :meth:`_cuts`.
        """
        ordered, n_left_out = [], len(self.y) % self.batch_size
        if self.pairs_within is not None or not self.drop_last:
            n_left_out = 0
        # Any sample may be left out, or those of small groups would always be.
        left_out = rng.permutation(len(self.y))[:n_left_out]
        is_kept = np.ones(len(self.y), dtype=bool)
        is_kept[left_out] = False
        for rows, own in self._groups_of():
            if not is_kept[rows].all():
                rows = rows[is_kept[rows]]
                if not len(rows):
                    continue
                own = self._only(rows)
            found = own._order(rng)
            if len(found) != len(rows):
                raise ArgumentError(
                    f"`groups` must be None for {type(self).__name__}, whose `_order` does not go "
                    "by `self.y` alone, got some."
                )
            ordered.append(rows[found])
        if self.pairs_within is not None:
            return np.concatenate(ordered)
        cuts = [len(rows) - len(rows) % self.batch_size for rows in ordered]
        whole = [rows[:cut] for rows, cut in zip(ordered, cuts, strict=True)]
        rests = [rows[cut:] for rows, cut in zip(ordered, cuts, strict=True)]
        rests = [rests[number] for number in rng.permutation(len(rests))]
        return np.concatenate([*whole, *rests, left_out])

    def _cuts(self) -> tuple[Indices, Indices]:
        """Return where each batch begins and ends in the order."""
        size = self.batch_size
        if self.pairs_within is None or self.paired:
            starts = np.arange(0, len(self.y), size)[: self._n_batches()]
            return starts, np.minimum(starts + size, len(self.y))
        pairs, begin = [], 0
        for count, batches in zip(self._sizes.tolist(), self._batches_of(), strict=True):
            end = begin + count
            lows = range(begin, begin + batches * size, size)
            pairs += [(low, min(low + size, end)) for low in lows]
            begin = end
        found = np.array(pairs, dtype=np.int64)
        return found[:, 0], found[:, 1]

    def _batches_of(self) -> Indices:
        """Return the number of batches of every group, one at least."""
        size = self.batch_size
        return np.maximum(self._sizes // size, 1) if self.drop_last else -(-self._sizes // size)

    def _n_batches(self) -> int:
        if self.pairs_within is not None and not self.paired:
            return int(self._batches_of().sum())
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


def check_pairs_within(pairs_within: PairsWithin | None, *, has_groups: bool) -> PairsWithin | None:
    """Return what samples must share to be mixed, if there is such a thing."""
    check_choice("pairs_within", pairs_within, (None, "group"))
    if pairs_within is not None and not has_groups:
        raise ArgumentError(
            "`groups` must be given for pairs_within='group', a label for every sample, got None."
        )
    return pairs_within


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
    if isinstance(y, Sampler):  # a trainer makes its own sampler, and a batch sampler of it
        raise ArgumentTypeError(
            f"`y` must be the targets, got {type(y).__name__}. It seems that Lightning wants to "
            "share the samples out among processes, which this sampler does by itself: set "
            "Trainer(use_distributed_sampler=False), or with Fabric "
            "fabric.setup_dataloaders(loader, use_distributed_sampler=False)."
        )
    rows = as_numbers("y", y).cpu()
    if rows.ndim < 1 or rows.numel() == 0:
        raise ArgumentError(
            f"`y` must be (n,) or (n, *targets) and not empty, got shape {tuple(rows.shape)}."
        )
    rows = rows.double().reshape(len(rows), -1)
    check_finite(y=rows)
    return rows.numpy()
