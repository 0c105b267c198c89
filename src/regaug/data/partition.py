"""Splits of data sets of the user's own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from regaug._checks import check_integer
from regaug.augment.structures import Batch, list_tensors
from regaug.data.base import THREE, Part, Rows, Split, check_groups
from regaug.data.duplicates import as_bits, find_equal
from regaug.data.lazy import Inputs, Subset
from regaug.data.samples import MOST_BYTES, Get, Samples, row_digests
from regaug.data.several import Several, take_inputs
from regaug.data.splits import SHARES, Shares, group_split, random_split
from regaug.exceptions import ArgumentError
from regaug.formatting import count


def split_dataset(
    dataset: Any,
    *,
    seeds: int | Iterable[int] = 5,
    groups: ArrayLike | None = None,
    shares: Shares = SHARES,
    inputs: Get | None = None,
    targets: Get | None = None,
) -> list[Split]:
    """Split a data set of your own at random, several times.

    Every sample is read once and checked (:meth:`regaug.data.Part.of` says how, and what a data set
    may be). Samples with equal inputs stay on one side of a split.

    Args:
        dataset: A map-style data set of ``(x, y)``, or the pair of all ``x`` and all ``y``.
        seeds: How many splits, or a seed for each.
        groups: Group of every sample, ``(n,)``: whole groups are then held out.
        shares: Shares of training, validation and test.
        inputs: From a sample to ``x``, if samples are not ``(x, y)``.
        targets: From a sample to ``y`` likewise.

    Example:
        >>> import torch
        >>> images, angles = torch.randn(50, 1, 8, 8), torch.rand(50)
        >>> splits = split_dataset((images, angles), seeds=3)
        >>> len(splits), splits[0].train.x.shape, splits[0].test.y.shape
        (3, torch.Size([30, 1, 8, 8]), torch.Size([10, 1]))
    """
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    check_integer("seeds", len(numbers), 1)
    whole = Part.of(dataset, inputs=inputs, targets=targets)
    n = len(whole)
    if n < 3:
        raise ArgumentError(f"`dataset` must have at least 3 samples, one for each part, got {n}.")
    labels = check_groups(groups, n)
    if labels is None:
        columns = [as_bits(column) for column in whole.y.double().numpy().T]
        units = find_equal([row_digests(whole.x).astype(np.uint64)], columns, n).units
        cuts = [random_split(n, shares=shares, units=units, seed=seed) for seed in numbers]
    else:
        cuts = [group_split(labels, shares=shares, seed=seed) for seed in numbers]
    take: Callable[[Rows], Tensor | Inputs] = partial(take_inputs, whole.x)
    if _memory(whole.x) * len(cuts) > MOST_BYTES:  # then all splits look at the same inputs
        take = partial(Subset, Several(whole.x) if isinstance(whole.x, Tensor) else whole.x)

    def part(rows: Rows) -> Part:
        return Part(take(rows), whole.y[rows], rows, None if labels is None else labels[rows])

    return [Split(part(train), part(valid), part(test)) for train, valid, test in cuts]


def read_splits(
    splits: Sequence[Split], *, inputs: Get | None = None, targets: Get | None = None
) -> list[Split]:
    """Make parts of all that is a data set of the user's own in some splits.

    One that is in several places is read once. Either the inputs of all of them are put into
    memory or none are: parts must not differ in how they are scaled.
    """
    found: dict[int, Samples] = {}
    for number, split in enumerate(splits):
        for name, part in split.parts.items():
            if not isinstance(part, Part) and id(part) not in found:
                called = f"splits[{number}].{name}"
                found[id(part)] = Samples(part, name=called, inputs=inputs, targets=targets)
    lazily = sum(samples.size for samples in found.values()) > MOST_BYTES
    read: dict[int, Part] = {}
    for key, samples in found.items():
        x, y = samples.read(lazily=lazily)
        read[key] = Part(x, y, np.arange(len(y)))
    return [_with_parts(split, read) for split in splits]


def _with_parts(split: Split, read: Mapping[int, Part]) -> Split:
    new = {name: read.get(id(part), part) for name, part in split.parts.items()}
    if all(new[name] is part for name, part in split.parts.items()):
        return split
    train, validation, test = (new.pop(name) for name in THREE)
    _check_alike(train, validation, test, *new.values())
    return replace(split, train=train, validation=validation, test=test, more=new)


def _check_alike(*parts: Part) -> None:
    """Refuse parts whose samples differ in form: they come from several data sets."""
    forms = {
        (_describe(part.x[:1]), part.y.shape[1] if part.y.ndim > 1 else 1): None for part in parts
    }
    if len(forms) > 1:
        (one, targets), (other, more) = list(forms)[:2]
        raise ArgumentError(
            "`splits` must have samples of one form in all parts of a split, got inputs "
            f"{one} with {count(targets, 'target')} and {other} with {count(more, 'target')}."
        )


def _describe(x: Batch) -> str:
    shapes = [(path, tuple(own.shape[1:])) for path, own in list_tensors("x", x)]
    if isinstance(x, Tensor):
        return str(shapes[0][1])
    return ", ".join(f"{path} {shape}" for path, shape in shapes)


def _memory(x: Tensor | Inputs) -> int:
    """Return the bytes that inputs take in memory; 0 for those that are read."""
    if not isinstance(x, Tensor | Several):
        return 0
    tensors = list_tensors("x", x if isinstance(x, Tensor) else x.form)
    return sum(tensor.numel() * tensor.element_size() for _, tensor in tensors)
