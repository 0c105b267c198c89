"""What every batch sampler keeps to."""

import pickle
from collections.abc import Callable, Iterator
from inspect import signature

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from regaug import _random
from regaug.exceptions import ArgumentTypeError
from regaug.samplers.base import BatchSampler
from regaug.testing.contract import Check, go_through

# Called as make(y, batch_size, seed=..., drop_last=..., rank=..., world_size=...).
MakeSampler = Callable[..., BatchSampler]
Sentences = Iterator[str]


def check_sampler(make: MakeSampler) -> None:
    """Check that a batch sampler of your own does what all of them do.

    Args:
        make: Its class, or a function of ``(y, batch_size, *, seed, drop_last, rank, world_size)``
            that makes one.

    Raises:
        ContractError: Something is missing; the message says all of it, and what to do.

    Example:
        >>> from functools import partial
        >>> from regaug import KernelPairSampler
        >>> check_sampler(partial(KernelPairSampler, bandwidth=0.3))
    """
    if not callable(make) or not isinstance(made := make(make_targets(8), 4), BatchSampler):
        came = type(make).__name__ if not callable(make) else type(made).__name__
        raise ArgumentTypeError(
            "`make` must be a class that derives from regaug.samplers.BatchSampler, or a function "
            f"that makes one of (y, batch_size), got {came}."
        )
    go_through(SAMPLER_CHECKS, make, name=type(made).__name__, word="sampler")


def uses_every_sample_once(make: MakeSampler) -> Sentences:
    """An epoch uses every index once, in batches of the size asked for.

    One that repeats samples has as many draws.
    """
    for targets in (1, 3):
        for n, size in ((50, 8), (48, 8), (5, 5), (1, 1), (7, 1)):
            for drop_last in (False, True):
                sampler = make(make_targets(n, targets), size, drop_last=drop_last)
                batches = list(_samples(sampler))
                where = f"of {n} samples and {targets} targets, batch_size={size}, {drop_last=}"
                if len(batches) != len(sampler):
                    yield f"len() must be the {len(batches)} batches, got {len(sampler)}: {where}."
                used = [index for batch in batches for index in batch]
                wanted = n - n % size if drop_last else n
                if len(used) != wanted or not (sampler.repeats or len(set(used)) == wanted):
                    yield f"An epoch must use {wanted} samples once each, and does not: {where}."
                if sum(len(batch) != size for batch in batches) > (not drop_last):
                    yield f"Only the last batch may be smaller than the others: {where}."


def is_decided_by_seed_and_epoch(make: MakeSampler) -> Sentences:
    """Seed and epoch decide the batches, and nothing else does."""
    for targets in (1, 3):
        y = make_targets(60, targets)
        one, same, other = make(y, 8, seed=1), make(y, 8, seed=1), make(y, 8, seed=2)
        first = list(one)
        with _random.seeded(5):
            if list(same) != first:
                yield "Equal seeds must give equal batches: draw from the generator of `_order`."
        if list(other) == first:
            yield "Another seed must give other batches."
        if list(one) == first:
            yield "The next epoch must have other batches: leave `__iter__` to the base class."
        one.set_epoch(0)
        if list(one) != first:
            yield "`set_epoch(0)` must bring back the first batches."


def shares_batches_among_ranks(make: MakeSampler) -> Sentences:
    """Processes take disjoint shares of the same batches, equally many."""
    y = make_targets(101)
    for epoch in range(2):
        whole = {tuple(batch) for batch in _of_epoch(make(y, 8), epoch)}
        for world in (2, 3):
            ranks = [make(y, 8, rank=rank, world_size=world) for rank in range(world)]
            shares = [[tuple(batch) for batch in _of_epoch(rank, epoch)] for rank in ranks]
            if {len(share) for share in shares} != {len(whole) // world}:
                yield f"Each of {world} ranks must have {len(whole) // world} batches."
            together = [batch for share in shares for batch in share]
            if len(together) != len(set(together)) or not set(together) <= whole:
                yield "Ranks must share the batches of one process, none of them twice."


def goes_to_other_processes(make: MakeSampler) -> Sentences:
    """What comes out of pickle has the same batches."""
    sampler = make(make_targets(40), 8, seed=5)
    if list(pickle.loads(pickle.dumps(sampler))) != list(sampler):  # noqa: S301
        yield "What comes out of pickle must have the same batches, and has others."


def goes_on_from_a_saved_state(make: MakeSampler) -> Sentences:
    """A saved state continues with the epoch that comes next."""
    y = make_targets(40)
    sampler, other = make(y, 8), make(y, 8)
    list(sampler)
    other.load_state_dict(sampler.state_dict())
    if list(other) != list(sampler):
        yield "`load_state_dict(state_dict())` must go on with the epoch that comes next."


def feeds_a_loader(make: MakeSampler) -> Sentences:
    """A DataLoader takes it as its batch sampler."""
    y = make_targets(40)
    sampler = make(y, 8)
    seen = sum(len(batch) for (batch,) in DataLoader(TensorDataset(y), batch_sampler=sampler))
    if seen != 40 * (1 + sampler.paired):
        yield f"A loader must see 40 samples, and their partners if it is paired, got {seen}."


def takes_constant_targets(make: MakeSampler) -> Sentences:
    """Targets that are all equal are fine."""
    if len(list(make(torch.ones(40), 8))) != 5:
        yield "Of 40 equal targets there must be 5 batches of 8."


def keeps_groups_apart(make: MakeSampler) -> Sentences:
    """With groups, batches or pairs are of one group, and every sample is used."""
    known = signature(make).parameters.values()
    if not any(own.name == "groups" or own.kind is own.VAR_KEYWORD for own in known):
        return  # it may do without; a study with groups then refuses it, in words
    for targets in (1, 3):
        y, labels = make_targets(50, targets), torch.arange(50) % 7 // 2
        labels[-1] = 9  # alone
        for world in (1, 2):
            ranks = [
                make(y, 8, groups=labels, pairs_within="group", rank=rank, world_size=world)
                for rank in range(world)
            ]
            batches = [batch for rank in ranks for batch in rank]
            if any(_groups_in(labels, batch, ranks[0]) > 1 for batch in batches):
                yield 'With pairs_within="group" rows of one group only may be used together.'
            if len(batches) != sum(len(rank) for rank in ranks):
                yield f"With groups len() must be the {len(batches)} batches, and is not."
        used = [index for batch in _samples(make(y, 8, groups=labels)) for index in batch]
        sampler = make(y, 8, groups=labels, pairs_within="group")
        strictly = [index for batch in _samples(sampler) for index in batch]
        # Where samples are repeated, every group has as many draws as samples.
        own = labels.tolist() if sampler.repeats else list(range(50))
        if sorted(own[index] for index in used) != sorted(own):
            yield "With groups an epoch must use every sample once, and does not."
        if sorted(own[index] for index in strictly) != sorted(own):
            yield 'With pairs_within="group" an epoch must use every sample once, and does not.'


SAMPLER_CHECKS: tuple[Check[MakeSampler], ...] = (
    uses_every_sample_once,
    is_decided_by_seed_and_epoch,
    shares_batches_among_ranks,
    goes_to_other_processes,
    goes_on_from_a_saved_state,
    feeds_a_loader,
    takes_constant_targets,
    keeps_groups_apart,
)


def make_targets(n: int, targets: int = 1) -> Tensor:
    """Return targets ``(n,)`` or ``(n, targets)``."""
    y = torch.randn(n, targets, generator=_random.make_generator())
    return y[:, 0] if targets == 1 else y


def _samples(sampler: BatchSampler) -> Iterator[list[int]]:
    """Give the batches without the partners that a sampler of pairs adds."""
    for batch in sampler:
        yield batch[: len(batch) // 2] if sampler.paired else batch


def _groups_in(labels: Tensor, batch: list[int], sampler: BatchSampler) -> int:
    """Return how many groups the rows of a batch have that are used together."""
    own = labels[batch]
    if sampler.paired:  # a sample and its partner are
        half = len(own) // 2
        return 1 + int((own[:half] != own[half:]).any())
    return len(torch.unique(own))


def _of_epoch(sampler: BatchSampler, epoch: int) -> list[list[int]]:
    sampler.set_epoch(epoch)
    return list(sampler)
