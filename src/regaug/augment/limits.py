"""What may be used together: rows of one group, and values that are there."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug.augment.structures import Batch
from regaug.exceptions import ArgumentError, ArgumentTypeError

# A label for every row: whole numbers, texts, whatever tells groups apart.
Labels: TypeAlias = Tensor | NDArray[Any] | Sequence[Any]
# What a new row is made of beside itself: nothing, the partner that the batch brings along, one
# other row of its batch, all rows of its batch, or training rows that are stored.
Company = Literal["none", "pairs", "partner", "batch", "stored"]


def code_labels(labels: Labels, n: int | None = None) -> Tensor:
    """Return a whole number for every label, int64 ``(n,)``: equal ones for equal labels, always.

    They do not depend on which other labels there are, so those of a batch can be compared with
    those of all training rows.

    Example:
        >>> codes = code_labels(["a", "b", "a"])
        >>> bool(codes[0] == codes[2]), bool(codes[0] == codes[1])
        (True, False)
    """
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    given = np.asarray(labels)
    if given.ndim != 1 or (n is not None and len(given) != n):
        rows = "every row" if n is None else f"each of the {n} rows"
        raise ArgumentError(
            f"`groups` must have one label for {rows}, got an array of shape {given.shape}."
        )
    if given.dtype.kind in "iub":
        return torch.from_numpy(given.astype(np.int64))
    if given.dtype.kind == "f" and np.array_equal(given, np.floor(given)):
        return torch.from_numpy(given.astype(np.int64))  # 3.0 is the label 3
    known, places = np.unique(given.astype(str), return_inverse=True)
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in known.tolist()]
    codes = np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)
    return torch.from_numpy(codes[places])


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a batch that may be used together.

    Attributes:
        rows: Their numbers, partners included; None for all of the batch.
        places: Their places among the samples that come out; None for all of them.
        code: Of their group; None if they may be of several.
    """

    rows: Tensor | None = None
    places: Tensor | None = None
    code: int | None = None

    def of(self, tensor: Tensor) -> Tensor:
        """Return these rows of a tensor."""
        return tensor if self.rows is None else tensor[self.rows]


@dataclass(frozen=True, eq=False)
class Limits:
    """What an augmentation keeps to in a batch.

    Attributes:
        groups: Code of every row's group; None if all rows may be used together.
        mask: True where a value is there, in the shape of the rows; None if all are.
    """

    groups: Tensor | None = None
    mask: Tensor | None = None

    def pieces(self, company: Company, *, paired: bool, device: torch.device) -> Iterator[Piece]:
        """Give the parts of a batch that may be used together, by ascending code."""
        if self.groups is None:
            yield Piece()
            return
        codes = self.groups
        if paired:
            codes = _check_pairs(codes)
        if company in ("none", "pairs"):  # nobody meets anybody else
            yield Piece()
            return
        labels, members = torch.unique(codes, return_inverse=True)
        for number, code in enumerate(labels.tolist()):
            places = (members == number).nonzero().squeeze(1)
            if company != "stored" and len(places) == 1 and not paired:
                continue  # nobody to be mixed with
            if len(labels) == 1:
                yield Piece(code=code)
                continue
            rows = torch.cat([places, places + len(codes)]) if paired else places
            yield Piece(rows.to(device), places.to(device), code)


def _check_pairs(codes: Tensor) -> Tensor:
    """Return the codes of the samples if their partners have the same."""
    half = len(codes) // 2
    differ = (codes[:half] != codes[half : 2 * half]).nonzero()
    if len(differ):
        raise ArgumentError(
            "`groups` must be those of samples and partners, alike for each pair, got different "
            f"ones for sample {int(differ[0])} and its partner. Draw partners within groups: "
            'KernelPairSampler(y, batch_size, groups=labels, pairs_within="group").'
        )
    return codes[:half]


def assemble(old: Tensor, made: Sequence[tuple[Tensor | None, Tensor]], append: bool) -> Tensor:
    """Return the samples of a batch with those that were made in their places, or behind them."""
    if not made:
        return old
    if append:
        return torch.cat([old, *(rows for _, rows in made)])
    places, rows = made[0]
    if places is None:  # all of the batch
        return rows
    if any(own is None or len(own) != len(rows) for own, rows in made):
        # The parts of a chain have appended to their groups: those that are alone come last.
        is_left = torch.ones(len(old), dtype=torch.bool, device=old.device)
        for own, _ in made:
            is_left[own] = False
        return torch.cat([*(rows for _, rows in made), old[is_left]])
    everywhere = torch.cat([own for own, _ in made if own is not None])
    return old.index_put((everywhere,), torch.cat([rows for _, rows in made]))


def join_masks(x: Batch, mask: Any) -> Tensor:
    """Return a mask of the inputs in the shape of their joint rows.

    Args:
        x: Inputs: a tensor, or several in a tuple, a list or a dict.
        mask: Of a tensor one that can be broadcast to it, or has its leading axes only, ``(n,)``,
            ``(n, steps)``, ...; of several tensors a mask for each in the same form, None, or a
            key left out, where all values are there.
    """
    if isinstance(x, Tensor):
        return _spread("mask", mask, x)
    return torch.cat([own.reshape(len(own), -1) for own in _each("mask", x, mask)], dim=1)


def _each(name: str, x: Any, mask: Any) -> Iterator[Tensor]:
    if isinstance(x, Tensor):
        yield _spread(name, mask, x)
    elif isinstance(x, Mapping):
        if mask is not None and (not isinstance(mask, Mapping) or mask.keys() - x.keys()):
            came = f"one with {list(mask)}" if isinstance(mask, Mapping) else type(mask).__name__
            raise ArgumentError(f"`{name}` must be a dict of masks for {list(x)}, got {came}.")
        for key, item in x.items():
            yield from _each(f"{name}[{key!r}]", item, None if mask is None else mask.get(key))
    else:
        if mask is not None and (not isinstance(mask, list | tuple) or len(mask) != len(x)):
            came = f"{len(mask)}" if isinstance(mask, list | tuple) else type(mask).__name__
            raise ArgumentError(f"`{name}` must be {len(x)} masks, one for each, got {came}.")
        for number, item in enumerate(x):
            own = None if mask is None else mask[number]
            yield from _each(f"{name}[{number}]", item, own)


def _spread(name: str, mask: Any, x: Tensor) -> Tensor:
    """Return a mask in the shape of a tensor."""
    if mask is None:
        return torch.ones(x.shape, dtype=torch.bool, device=x.device)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ArgumentTypeError(
            f"`{name}` must be a tensor of torch.bool, True where a value is there, got {came}. "
            "Convert it with mask.bool()."
        )
    full = mask
    if mask.ndim < x.ndim and mask.shape[:1] == x.shape[:1]:  # the leading axes
        full = mask.reshape(*mask.shape, *[1] * (x.ndim - mask.ndim))
    fits = full.ndim == x.ndim and all(
        own in (1, size) for own, size in zip(full.shape, x.shape, strict=True)
    )
    if not fits:
        raise ArgumentError(
            f"`{name}` must fit inputs of shape {tuple(x.shape)}: that shape, with 1 for an axis "
            f"along which it is constant, or its leading axes alone, got {tuple(mask.shape)}."
        )
    return full.to(x.device).expand(x.shape)
