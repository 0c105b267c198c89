"""CEMS: draw new samples from curved sheets fitted to the neighborhoods of a batch's rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from regaug._checks import check_finite, check_integer, check_range
from regaug.augment.base import Augmentation
from regaug.augment.joint import (
    Dimension,
    Known,
    as_rows,
    check_dimension,
    find_dimension,
    joint_dimension,
    joint_rows,
)
from regaug.augment.layer import INPUT, AtLayer
from regaug.dimension import TREE_COLUMNS, TREE_POINTS
from regaug.exceptions import ArgumentError, NotFittedError, PlaceError
from regaug.functional.curvature import SMALLEST_RIDGE, cems, tangent_planes

if TYPE_CHECKING:
    from scipy.spatial import KDTree

# The neighbors of every row and their tangent planes, as far as they are needed and known.
_Surroundings = tuple[Tensor | None, Tensor | None]


@dataclass(frozen=True, eq=False)
class CEMSParams:
    """What CEMS draws for a batch.

    Attributes:
        eta: Step of each row in its tangent plane, ``(n, d)``; None leaves the batch as it is.
    """

    eta: Tensor | None


class CEMS(Augmentation[CEMSParams]):
    r"""Curvature-Enhanced Manifold Sampling (Kaufman and Azencot, ICML 2025).

    Around every joint row :math:`[x_i, y_i]` the data are taken for a sheet of dimension d, the
    graph of a quadratic function f over the tangent plane of the row's neighborhood. The new row
    is :math:`[x_i, y_i] + B\,[\eta;\, f(\eta)]` with :math:`\eta \sim N(0, \sigma^2 I_d)`, one
    draw per row; see :func:`regaug.functional.curvature.cems`. At a layer the gradient takes the
    step for a constant. ``p``, ``append``, ``anneal`` and ``generator`` are options of every
    :class:`Augmentation`.

    Args:
        sigma: Standard deviation of the step in every tangent direction, at least 0, in the units
            of the joint rows: standardize the columns first. Keep it below the radius of a
            neighborhood; beyond that the quadratic function is extrapolated.
        d: Dimension of the sheet: an int (clamped to the batch), ``"two_nn"`` for the intrinsic
            dimension of each batch, or ``"two_nn_data"`` for that of the training set, which
            :meth:`fit` estimates. A batch in which the dimension cannot be estimated (fewer than
            three different rows) is left as it is.
        neighbors: ``"batch"``: the batch is the neighborhood of all its rows, which is right for
            batches whose rows lie together. An int: every row has this many nearest training rows
            (by joint Euclidean distance, itself included if it is one), which :meth:`fit` stores;
            not for layers. Much more than d (d + 3) / 2 of them average out noise.
        ridge: Strength of the ridge in the fit of f, relative to the size of the neighborhood; at
            least 1e-9. More makes f flatter and steadier on noisy data.

    Example:
        >>> x, y = torch.randn(200, 5), torch.randn(200)
        >>> augment = CEMS(sigma=0.1, neighbors=20).fit(x, y)
        >>> new_x, new_y = augment(x[:32], y[:32])
        >>> new_x.shape, new_y.shape
        (torch.Size([32, 5]), torch.Size([32]))
    """

    _fitted_d: Tensor
    _stored: Tensor
    neutral = CEMSParams(eta=None)
    shown = ("sigma", "d", "neighbors", "ridge")
    #: Distances to stored rows held in memory at a time (32 MB).
    block = 2**22
    #: Numbers in the tangent planes of all stored rows, at most (64 MB); or a batch finds its own.
    most_known = 2**23
    #: From how many stored rows on a tree finds the neighbors.
    tree_points = TREE_POINTS

    def __init__(
        self,
        sigma: float = 0.1,
        *,
        d: Dimension = "two_nn",
        neighbors: int | Literal["batch"] = "batch",
        ridge: float = 1e-3,
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p=p, append=append, anneal=anneal, generator=generator)
        self.sigma = check_range("sigma", sigma, 0.0)
        self.d = check_dimension("d", d, 1)
        if isinstance(neighbors, str):
            if neighbors != "batch":
                raise ArgumentError(
                    f"`neighbors` must be 'batch' or a whole number, got {neighbors!r}."
                )
        else:
            neighbors = check_integer("neighbors", neighbors, 2)
        self.neighbors = neighbors
        self.ridge = check_range("ridge", ridge, SMALLEST_RIDGE)
        self.learns = d == "two_nn_data" or neighbors != "batch"
        self.register_buffer("_fitted_d", torch.tensor(-1))
        self.register_buffer("_stored", torch.empty(0, 0))
        # Made when they are first needed.
        self._tree: Known[KDTree] | None = None
        self._planes: Known[_Planes] | None = None

    def fit(self, x: Tensor, y: Tensor) -> Self:
        """Store the joint training rows for ``neighbors``, their dimension for ``d``, if asked."""
        super().fit(x, y)
        if self.d == "two_nn_data":
            self._fitted_d.fill_(joint_dimension(x, y))
        if self.neighbors != "batch":
            check_finite(x=x, y=y)
            self._stored = joint_rows(x, y, torch.float64).to(self._stored.device)
        return self

    def draw(self, x: Tensor, y: Tensor) -> CEMSParams:
        """Draw a step for every row."""
        d = find_dimension("CEMS(d='two_nn_data')", self.d, self._fitted_d, x, y)
        if d is None:
            return self.neutral
        shape, source = (len(x), min(d, (x.numel() + y.numel()) // len(x))), self.generator
        eta = torch.randn(shape, generator=source, device=source.device, dtype=torch.float64)
        return CEMSParams(eta.mul_(self.sigma).to(x.device))

    def transform(self, x: Tensor, y: Tensor, params: CEMSParams) -> tuple[Tensor, Tensor]:
        """Move every row by its step ``params.eta`` along the sheet through it."""
        return self._move(x, y, params.eta, self._surroundings(x, y, params.eta))

    @classmethod
    def across_runs(cls, parts: Sequence[Self], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Draw for every run and, where all know their tangent planes, move all rows at once."""
        around = []
        for part, one_x, one_y in zip(parts, x, y, strict=True):
            part.params = part.draw(one_x, one_y)
            around.append(part._surroundings(one_x, one_y, part.params.eta))
        steps = [part.params.eta for part in parts if part.params.eta is not None]
        planes = [tangents for _, tangents in around if tangents is not None]
        if len(steps) < len(parts) or len(planes) < len(parts):
            new = [
                part._move(one_x, one_y, part.params.eta, own)
                for part, one_x, one_y, own in zip(parts, x, y, around, strict=True)
            ]
            new_x, new_y = (torch.stack(values) for values in zip(*new, strict=True))
            return new_x, new_y
        # Runs may differ in dimension: a direction of zeros, and a step of zero along it, is none.
        d = max(eta.shape[1] for eta in steps)
        new_x, new_y = cems(
            x.flatten(2),
            y.reshape(*y.shape[:2], -1),
            eta=torch.stack([F.pad(eta, (0, d - eta.shape[1])) for eta in steps]),
            ridge=parts[0].ridge,
            neighborhoods=torch.stack([rows for rows, _ in around if rows is not None]),
            tangents=torch.stack([F.pad(t, (0, 0, 0, d - t.shape[-2])) for t in planes]),
        )
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.neighbors, self.ridge)

    def at(
        self, model: nn.Module, place: str | Sequence[str], *, output: int | None = None
    ) -> AtLayer[CEMSParams]:
        """Act on the output of a layer of ``model``; see :meth:`Augmentation.at`."""
        places = [place] if isinstance(place, str) else list(place)
        if self.neighbors != "batch" and places != [INPUT]:
            raise PlaceError(
                f"CEMS(neighbors={self.neighbors}) knows neighbors among the training rows, not "
                f"among the outputs of {', '.join(map(repr, places))}. Use neighbors='batch' there."
            )
        return super().at(model, place, output=output)

    def _move(
        self, x: Tensor, y: Tensor, eta: Tensor | None, around: _Surroundings
    ) -> tuple[Tensor, Tensor]:
        if eta is None:
            return x, y
        near, planes = around
        new_x, new_y = cems(
            as_rows(x), as_rows(y), eta=eta, ridge=self.ridge, neighborhoods=near, tangents=planes
        )
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    def _surroundings(self, x: Tensor, y: Tensor, eta: Tensor | None) -> _Surroundings:
        """Return the nearest stored rows of every row, ``(n, q, columns)``, and their planes.

        The planes ``(n, d, columns)`` are known if all rows are stored ones, as in training; else
        they are None. Both are None if the batch is its own neighborhood, or does not move.
        """
        if eta is None or isinstance(self.neighbors, str):
            return None, None
        stored, rows = self._stored, joint_rows(x, y, torch.float64)
        if not len(stored):
            raise NotFittedError(
                f"`CEMS(neighbors={self.neighbors})` must see the training rows first: call "
                "`.fit(x, y)`."
            )
        if rows.shape[1] != stored.shape[1]:
            raise ArgumentError(
                f"`x` and `y` must have {stored.shape[1]} columns together, as in `fit`, got "
                f"{rows.shape[1]}. At a layer, or to do without `fit`, use neighbors='batch'."
            )
        known = self._find_planes(eta.shape[1])
        places = None if known is None else known.find(rows)
        if known is not None and places is not None:
            near, planes = known.nearest[places], known.tangents[places]
            return stored[near].to(rows), planes.to(rows)
        check_finite(x=x, y=y)
        return stored.to(rows)[self._nearest(rows)], None

    def _find_planes(self, d: int) -> "_Planes | None":
        """Return what is known of all stored rows, found once; None if it would be too much."""
        stored = self._stored
        # With the dimension of each batch the planes would change from batch to batch.
        if self.d == "two_nn" or len(stored) * d * stored.shape[1] > self.most_known:
            return None
        planes = None if self._planes is None else self._planes.of(stored)
        if planes is None or planes.d != d:
            nearest = self._nearest(stored)
            places = {key: place for place, key in enumerate(_keys(stored))}
            planes = _Planes(d, places, nearest, tangent_planes(stored[nearest], d))
            self._planes = Known(planes, stored)
        return planes

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


@dataclass(frozen=True, eq=False)
class _Planes:
    """What is known of all stored rows."""

    d: int  # dimension of the planes
    places: dict[bytes, int]  # place of each row by its bytes
    nearest: Tensor  # places of its neighbors, (n, q)
    tangents: Tensor  # its tangent plane, (n, d, columns)

    def find(self, rows: Tensor) -> Tensor | None:
        """Return the places of some rows; None if one of them is not stored."""
        found = [self.places.get(key) for key in _keys(rows)]
        return None if None in found else torch.tensor(found)


def _keys(rows: Tensor) -> list[bytes]:
    values = rows.detach().cpu().contiguous().numpy()
    keys: list[bytes] = values.view(f"V{values.shape[1] * values.itemsize}").ravel().tolist()
    return keys
