"""New rows where targets are rare: who is rare, who is near whom, and what is drawn."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random
from regaug._checks import check_choice, check_integer, check_range
from regaug.exceptions import ArgumentError, DataError
from regaug.formatting import count
from regaug.functional.smogn import relevance, smogn
from regaug.metrics import FOCUSES, Focus

Floats = NDArray[np.float64]
RareFocus = Focus | Literal["column"]
# A focus: what is rare is said by a column of the table.
COLUMN = "column"
# A target is rare from this relevance on, as in the papers.
_RARE = 0.8
# With a focus, the share of the rows at an end that are rare: those that tail-rmse is of.
_TAIL = 0.1


@dataclass(frozen=True, eq=False)
class RareRows:
    """The rare rows of a table, and their neighbors among the rare ones of the same end.

    Attributes:
        x: Inputs of all rows, ``(n, d)``, standardized.
        y: Targets, ``(n, m)``, standardized, or what is learned instead of them.
        rare: Which rows are rare, ``(r,)``.
        near: The neighbors of each, the nearest first, ``(r, k)``; a row that is alone at its end
            is its own.
        reach: How far a neighbor may be from a rare row to be interpolated with: half of the median
            of the distances to its neighbors, ``(r,)``; infinite for a row that is alone.
    """

    x: Tensor
    y: Tensor
    rare: Tensor
    near: Tensor
    reach: Tensor

    @classmethod
    def of(
        cls,
        x: Tensor,
        y: Tensor,
        *,
        neighbors: int = 5,
        focus: RareFocus | None = None,
        relevances: Floats | None = None,
    ) -> Self:
        """Find them.

        Args:
            x: Inputs ``(n, d)``, standardized, float64.
            y: Targets ``(n, m)``, standardized, float64.
            neighbors: How many of the nearest rows a partner is drawn from, at least 1.
            focus: Which targets are rare: the tenth of the rows with the highest ones, the lowest,
                or both; or ``"column"``: those with a relevance of 0.8 and more. None goes by the
                box plot, and by both where that finds less than two.
            relevances: Of every row, ``(n,)``, for the focus ``"column"``; no other looks at them.
        """
        # More than there are take turns.
        neighbors = min(check_integer("neighbors", neighbors, 1), max(1, len(y)))
        ends = _given_ends(y, relevances) if focus == COLUMN else _find_ends(y, focus)
        rare = (ends >= 0).nonzero().squeeze(1)
        near, reach = rare[:, None].repeat(1, neighbors), torch.full((len(rare),), torch.inf).to(x)
        for end in sorted({*ends[rare].tolist()}):
            places = (ends[rare] == end).nonzero().squeeze(1)
            count = min(neighbors, len(places) - 1)
            if count:
                found, apart = _neighbors(x[rare[places]], count)
                # Where there are fewer, they take turns.
                turns = torch.arange(neighbors) % count
                near[places] = rare[places][found[:, turns]]
                reach[places] = apart.median(dim=1).values / 2
        return cls(x, y, rare, near, reach)

    def draw(self, rows: int, seed: int) -> "Drawn":
        """Draw what so many new rows are made from: every rare row as often, give or take one."""
        rng = _random.numpy_generator(_random.Stream.GENERATION, seed)
        times = -(-rows // len(self.rare))
        starts = np.concatenate([rng.permutation(len(self.rare)) for _ in range(times)])[:rows]
        choice = rng.integers(self.near.shape[1], size=rows)
        shapes = [(rows,), (rows, self.x.shape[1]), (rows, self.y.shape[1])]
        u = rng.random(shapes[0])
        noise = [rng.standard_normal(shape) for shape in shapes[1:]]
        numbers = (starts, choice, u, *noise)
        return Drawn(*(torch.from_numpy(own) for own in numbers))

    def draw_at(self, uniform: Tensor) -> "Drawn":
        """Return what belongs to uniform numbers from [0, 1), a row of :attr:`width` for each."""
        first, d = uniform[:, :3], self.x.shape[1]
        start, choice = (
            (first[:, at] * count).long()
            for at, count in enumerate((len(self.rare), self.near.shape[1]))
        )
        noise = _random.normals_at(uniform[:, 3:])
        return Drawn(start, choice, first[:, 2], noise[:, :d], noise[:, d:])

    @property
    def width(self) -> int:
        """How many uniform numbers a new row needs: row, neighbor, share of the way, noise."""
        return 3 + self.x.shape[1] + self.y.shape[1]

    def make(self, drawn: "Drawn", *, sigma: float) -> tuple[Tensor, Tensor]:
        """Return new inputs and targets, standardized."""
        reach = torch.zeros(len(self.x)).to(self.x)
        reach[self.rare] = self.reach
        return smogn(
            self.x,
            self.y,
            source=self.rare[drawn.start],
            partner=self.near[drawn.start, drawn.choice],
            reach=reach,
            u=drawn.u,
            noise=(drawn.noise_x, drawn.noise_y),
            sigma=check_range("sigma", sigma, 0.0),
        )


@dataclass(frozen=True, eq=False)
class Drawn:
    """What new rows are made from: the rare row and its neighbor, by their places, and numbers."""

    start: Tensor
    choice: Tensor
    u: Tensor
    noise_x: Tensor
    noise_y: Tensor


def _given_ends(y: Tensor, relevances: Floats | None) -> Tensor:
    """Do the same for rows whose relevance is given: each is at the nearer end of its target.

    Rows of both ends have nothing between them that would be rare.
    """
    if relevances is None:
        raise ArgumentError(
            "`focus` must be None, 'high', 'low' or 'both' for rows without a relevance, got "
            f"{COLUMN!r}. Name the column: read_table(..., relevance=...)."
        )
    is_rare = torch.tensor(relevances >= _RARE)
    if int(is_rare.sum()) < 2:
        raise DataError(
            f"The relevance must be {_RARE} or more in at least 2 rows to make others between "
            f"them, got {count(int(is_rare.sum()), 'such row')}."
        )
    above = y - y.median(dim=0).values
    ends = torch.cat([-above, above], dim=1).argmax(dim=1)
    return ends.masked_fill(~is_rare, -1)


def _find_ends(y: Tensor, focus: RareFocus | None) -> Tensor:
    """Return a number for every row that tells at which end of which target it is rare, or -1."""
    check_choice("focus", focus, (None, *FOCUSES))
    scores = torch.cat(relevance(y), dim=1) if focus is None else _tails(y, focus)
    found, ends = scores.max(dim=1)
    ends = ends.masked_fill(found < _RARE, -1)
    if focus is None and int((ends >= 0).sum()) < 2:
        return _find_ends(y, "both")
    return ends


def _tails(y: Tensor, focus: RareFocus) -> Tensor:
    """Return 1 for the tenth of the rows at an end of a target, and 0 for the others."""
    size = -(-len(y) // round(1 / _TAIL))
    ends = []
    for name, side in (("low", -y), ("high", y)):
        last = side.sort(dim=0, descending=True).values[size - 1]
        is_rare = (side >= last) & (focus in (name, "both"))
        # Of several targets the one counts in which a row is farthest out.
        ends.append(torch.where(is_rare, 1.0 + (side - side.amin(dim=0)), 0.0))
    return torch.cat(ends, dim=1)


def _neighbors(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the places of the nearest other rows, and how far they are, ``(n, count)`` each."""
    from sklearn.neighbors import NearestNeighbors

    known = NearestNeighbors(n_neighbors=count).fit(x.numpy())
    apart, found = known.kneighbors()  # of the rows themselves, each without itself
    return torch.from_numpy(found), torch.from_numpy(apart)
