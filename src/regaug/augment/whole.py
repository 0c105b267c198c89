"""Columns that belong together, such as those of a category: each block of them is taken whole."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from regaug._checks import check_choice
from regaug.augment.across import RunBatches
from regaug.augment.base import Augmentation
from regaug.augment.joint import as_rows
from regaug.exceptions import ArgumentError, ArgumentTypeError

Params = TypeVar("Params")
Blocks = Sequence[int] | Tensor
Categories = Literal["mix", "whole"]
CATEGORIES: tuple[Categories, ...] = ("mix", "whole")


class KnowsBlocks(Augmentation[Params]):
    """Knows which columns of the inputs belong together; those of a layer's output do not."""

    blocks: Tensor  # of every column; empty if nothing is known of them
    _is_at_layer: bool = False

    def _keep_blocks(self, blocks: Blocks | None = None) -> None:
        """Make room for them, in the saved state too."""
        known = torch.empty(0, dtype=torch.int64) if blocks is None else code_blocks(blocks)
        self.register_buffer("blocks", known)

    def learn_blocks(self, blocks: Sequence[int]) -> None:
        """Note which columns of the inputs belong together."""
        self.blocks = code_blocks(blocks).to(self.blocks.device)

    @contextmanager
    def observing(self, x: object, y: Tensor) -> Iterator[None]:
        """Act on the output of a layer, which has no blocks, while the model's layers run."""
        before, self._is_at_layer = self._is_at_layer, True
        try:
            yield
        finally:
            self._is_at_layer = before

    def _blocks_of(self, columns: int) -> Tensor | None:
        """Return the block of each of so many columns; None if each is one of its own."""
        if self._is_at_layer or not len(self.blocks):
            return None
        if len(self.blocks) != columns:
            raise ArgumentError(
                f"`blocks` must have a number for each of the {columns} columns of `x`, got "
                f"{len(self.blocks)}. To act at a layer use `.at(model, place)`."
            )
        return self.blocks if count_blocks(self.blocks) < columns else None


class TakesWhole(KnowsBlocks[Params]):
    """Has the option ``categories``: whether blocks of several columns are taken whole.

    ``"mix"`` takes their numbers for what they are, numbers: a row may be 0.3 of a level.
    ``"whole"`` gives a new row the columns of a block as they are in one of the rows that it is
    made of. What moves a row by itself leaves them as they are: the row is the nearest real one to
    what it becomes, and no level has to be known. A true or false is a column of its own, and
    stays a number.
    """

    categories: Categories

    def _choose_categories(self, categories: Categories) -> None:
        self.categories = check_choice("categories", categories, CATEGORIES)
        if self.categories == "whole":
            self._keep_blocks()

    def learn_blocks(self, blocks: Sequence[int]) -> None:
        """Note which columns of the inputs belong together, if they are to be taken whole."""
        if self.categories == "whole":
            super().learn_blocks(blocks)

    def whole_columns(self, columns: int) -> Tensor | None:
        """Return flags of those of so many columns that are taken whole; None if none are.

        Example:
            >>> from regaug import Mixup
            >>> augment = Mixup(categories="whole")
            >>> augment.learn_blocks([0, 1, 1])
            >>> augment.whole_columns(3)
            tensor([False,  True,  True])
        """
        blocks = self._blocks_of(columns) if self.categories == "whole" else None
        return None if blocks is None else blocks.bincount()[blocks] > 1

    def keep_whole(self, x: Tensor, new_x: Tensor) -> Tensor:
        """Return new inputs with those columns as they were that are taken whole."""
        is_whole = self.whole_columns(x[0].numel())
        if is_whole is None:
            return new_x
        return torch.where(is_whole.to(x.device).reshape(x.shape[1:]), x, new_x)

    def whole_mask(self, mask: Tensor) -> Tensor:
        """Return a mask of rows in which a block is there only if all of it is."""
        is_there, columns = as_rows(mask), mask[0].numel()
        if self.whole_columns(columns) is None:
            return is_there
        blocks = self.blocks.to(mask.device)
        return blocks_there(is_there, blocks)[:, blocks]


class WholeColumns:
    """What the runs of a stack take whole: flags of the columns of each.

    Attributes:
        is_asked_for: Whether there is a run that would, if its table has such columns.
    """

    def __init__(self, parts: Sequence[TakesWhole[Params]]) -> None:
        self._parts = parts
        self.is_asked_for = any(part.categories == "whole" for part in parts)
        self._flags: Tensor | None = None  # (runs, d), found at the first batch

    def of(self, batches: RunBatches) -> Tensor | None:
        """Return the flags of every batch, ``(batches, d)``; None if none is set."""
        if not self.is_asked_for or batches.given is not None:
            return None
        if self._flags is None:
            columns = batches.x[0, 0].numel()
            none = torch.zeros(columns, dtype=torch.bool)
            found = [part.whole_columns(columns) for part in self._parts]
            self._flags = torch.stack([none if own is None else own.cpu() for own in found])
        flags = self._flags[torch.from_numpy(batches.runs)]
        return flags.to(batches.x.device) if flags.any() else None

    def keep(self, batches: RunBatches, new_x: Tensor) -> Tensor:
        """Return new inputs ``(batches, n, d)`` with those columns as they were, as rows."""
        flags = self.of(batches)
        return new_x if flags is None else torch.where(flags[:, None], batches.columns[0], new_x)


def whole_shares(lam: float | Tensor, swapped: Tensor, is_whole: Tensor) -> Tensor:
    """Return the share of a row itself in each of its values, ``(..., n, d)``.

    It is 0 or 1 in the columns that are taken whole, and ``lam`` in the others.

    Args:
        lam: A number, one for every batch ``(...)``, or for every row ``(..., n)``.
        swapped: True where a row has these columns from its partner, ``(..., n)``.
        is_whole: The columns, ``(d,)`` or ``(..., d)``.

    Example:
        >>> swapped, is_whole = torch.tensor([True, False]), torch.tensor([False, True])
        >>> whole_shares(0.75, swapped, is_whole)
        tensor([[0.7500, 0.0000],
                [0.7500, 1.0000]], dtype=torch.float64)
    """
    share = torch.as_tensor(lam, dtype=torch.float64, device=swapped.device)
    share = share[..., None] if share.ndim == swapped.ndim else share[..., None, None]
    return torch.where(is_whole[..., None, :], (~swapped).double()[..., None], share)


def own_rows(swapped: Tensor | None, flags: Tensor | None, number: int) -> Tensor | None:
    """Return what was drawn for a batch of a stack; None if it has nothing that is taken whole."""
    if swapped is None or flags is None or not flags[number].any():
        return None
    return swapped[number]


def blocks_there(is_there: Tensor, blocks: Tensor) -> Tensor:
    """Return whether all values of each block are there, ``(n, blocks)``."""
    missing = torch.zeros(
        len(is_there), count_blocks(blocks), dtype=torch.int64, device=is_there.device
    )
    missing.index_add_(1, blocks, (~is_there).long())
    return missing == 0


def count_blocks(blocks: Tensor) -> int:
    """Return how many different blocks there are."""
    return int(blocks.max()) + 1


def code_blocks(blocks: Blocks) -> Tensor:
    """Return a number for the block of every column, all numbers from 0 on."""
    given = np.asarray(blocks.detach().cpu() if isinstance(blocks, Tensor) else blocks)
    if given.ndim != 1 or not len(given):
        raise ArgumentError(
            f"`blocks` must be one number for every column, got an array of shape {given.shape}."
        )
    if given.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"`blocks` must be whole numbers, one for every column, got {given.dtype}."
        )
    return torch.from_numpy(np.unique(given, return_inverse=True)[1].astype(np.int64))
