"""Stored training rows, and the nearest of them to the rows of a batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import torch
from torch import Tensor

from regaug._checks import check_finite
from regaug.augment.joint import Known, joint_rows
from regaug.augment.limits import Piece
from regaug.augment.sheets import StoredSheets
from regaug.augment.whole import TakesWhole
from regaug.dimension import TREE_COLUMNS, TREE_POINTS
from regaug.exceptions import ArgumentError, NotFittedError

if TYPE_CHECKING:
    from scipy.spatial import KDTree

Params = TypeVar("Params")


@dataclass(eq=False)
class _Group:
    """The stored rows of a group, and what has been found out about them."""

    stored: Tensor
    tree: "Known[KDTree] | None" = None
    sheets: Known[StoredSheets] | None = None


class KnowsNeighbors(TakesWhole[Params]):
    """Has the option ``neighbors``: how many of the stored rows, or the rows of the batch."""

    neighbors: int | Literal["batch"]
    _stored: Tensor
    _stored_groups: Tensor
    #: Distances to stored rows held in memory at a time (32 MB).
    block = 2**22
    #: From how many stored rows on a tree finds the neighbors.
    tree_points = TREE_POINTS

    def _make_room(self) -> None:
        """Make room for the rows, in the saved state too."""
        self.register_buffer("_stored", torch.empty(0, 0))
        self.register_buffer("_stored_groups", torch.empty(0, dtype=torch.int64))
        # Made when they are first needed.
        self._tree: Known[KDTree] | None = None
        self._sheets: Known[StoredSheets] | None = None
        self._groups: Known[dict[int, _Group]] | None = None
        self._is_within = False

    def _store(self, x: Tensor, y: Tensor) -> None:
        check_finite(x=x, y=y)
        self._stored = joint_rows(x, y, torch.float64).to(self._stored.device)
        self._stored_groups = self._stored_groups.new_empty(0)

    def learn_groups(self, codes: Tensor) -> None:
        """Note the groups of the stored rows."""
        if self.neighbors != "batch":
            self._stored_groups = codes.to(self._stored.device)

    @contextmanager
    def within(self, piece: Piece, mask: Tensor | None) -> Iterator[None]:
        """Look for neighbors among the stored rows of one group only."""
        if self.neighbors == "batch" or piece.code is None:
            yield
            return
        group = self._find_group(piece.code)
        before = self._stored, self._tree, self._sheets, self._is_within
        self._stored, self._tree, self._sheets = group.stored, group.tree, group.sheets
        self._is_within = True
        try:
            yield
        finally:
            group.tree, group.sheets = self._tree, self._sheets
            self._stored, self._tree, self._sheets, self._is_within = before

    def _find_group(self, code: int) -> "_Group":
        stored, codes = self._stored, self._stored_groups
        if len(codes) != len(stored):
            raise NotFittedError(
                f"`{type(self).__name__}(neighbors={self.neighbors})` must know the groups of the "
                "training rows, to look for neighbors in them: call `.fit(x, y, groups=labels)`."
            )
        groups = None if self._groups is None else self._groups.of(stored, codes)
        if groups is None:
            groups = {}
            self._groups = Known(groups, stored, codes)
        if code not in groups:
            groups[code] = _Group(stored[codes == code])
        return groups[code]

    def _check_stored(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the joint rows of a batch if they are like the stored ones."""
        stored, rows = self._stored, joint_rows(x, y, torch.float64)
        if not len(stored):
            raise NotFittedError(
                f"`{type(self).__name__}(neighbors={self.neighbors})` must see the training rows "
                "first: call `.fit(x, y)`."
            )
        if rows.shape[1] != stored.shape[1]:
            raise ArgumentError(
                f"`x` and `y` must have {stored.shape[1]} columns together, as in `fit`, got "
                f"{rows.shape[1]}. At a layer, or to do without `fit`, use neighbors='batch'."
            )
        return rows

    def _neighborhoods(self, rows: Tensor) -> Tensor:
        """Return the stored rows nearest to each of these, ``(n, q, columns)``."""
        return self._stored.to(rows)[self._nearest(rows)]

    def _nearest(self, rows: Tensor) -> Tensor:
        """Return the indices of the stored rows nearest to each of these, ``(n, q)``."""
        stored = self._stored
        n, columns = stored.shape
        count = min(int(self.neighbors), n)
        if columns <= TREE_COLUMNS and n > self.tree_points:
            found = self._make_tree().query(rows.cpu().numpy(), k=count)[1]
            return torch.from_numpy(found).to(rows.device)
        center = rows.mean(dim=0)  # products of numbers far from the origin would lose digits
        stored = stored.to(rows) - center
        blocks = torch.split(rows - center, max(self.block // n, 1))
        found = [torch.cdist(block, stored).topk(count, largest=False).indices for block in blocks]
        return torch.cat(found)

    def _make_tree(self) -> "KDTree":
        """Return a tree of the stored rows; a new one only if they have changed."""
        stored = self._stored
        tree = None if self._tree is None else self._tree.of(stored)
        if tree is None:
            from scipy.spatial import KDTree

            tree = KDTree(stored.double().cpu().numpy(), balanced_tree=False)
            self._tree = Known(tree, stored)
        return tree
