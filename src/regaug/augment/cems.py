"""CEMS: draw new samples from curved sheets fitted to the neighborhoods of a batch's rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_finite, check_integer, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.joint import (
    Dimension,
    Known,
    as_rows,
    batch_dimension,
    check_dimension,
    dimensions_of_each,
    fixed_dimension,
)
from regaug.augment.layer import AtLayer, check_is_input
from regaug.augment.neighbors import KnowsNeighbors
from regaug.augment.numbers import Indices, Values
from regaug.augment.sheets import SheetTable, StoredSheets
from regaug.augment.whole import Categories, WholeColumns
from regaug.exceptions import ArgumentError
from regaug.functional.curvature import SMALLEST_RIDGE, add_offsets, cems, fit_sheets
from regaug.functional.precision import working_dtype
from regaug.functional.quadratic import FAR

# With a smaller ridge the factors of the sheets are too large for float32.
_FLOAT32_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class CEMSParams:
    """What CEMS draws for a batch.

    Attributes:
        eta: Step of each row in its tangent plane, ``(n, d)``; None leaves the batch as it is.
    """

    eta: Tensor | None


class CEMS(KnowsNeighbors[CEMSParams]):
    r"""Curvature-Enhanced Manifold Sampling (Kaufman and Azencot, ICML 2025).

    Around every joint row :math:`[x_i, y_i]` the data are taken for a sheet of dimension d, the
    graph of a quadratic function f over the tangent plane of the row's neighborhood. The new row
    is :math:`[x_i, y_i] + B\,[\eta;\, f(\eta)]` with :math:`\eta \sim N(0, \sigma^2 I_d)`, one
    draw per row; see :func:`regaug.functional.curvature.cems`. At a layer the gradient takes the
    step for a constant. ``p``, ``append``, ``anneal``, ``total_steps`` and ``generator`` are
    options of every :class:`Augmentation`.

    Args:
        sigma: Standard deviation of the step in every tangent direction, at least 0, in the units
            of the joint rows, as in the paper: standardize the columns first. Keep it below the
            radius of a neighborhood; beyond that the quadratic function is extrapolated. A step of
            more than 3 times its size is one of its size: new rows do not leave the data,
            whatever their units are.
        d: Dimension of the sheet: an int (clamped to the batch), ``"two_nn"`` for the intrinsic
            dimension of each batch, or ``"two_nn_data"`` for that of the training set, which
            :meth:`fit` estimates. A batch in which the dimension cannot be estimated (fewer than
            three different rows) is left as it is; that of such a training set counts as 1.
        neighbors: ``"batch"``: the batch is the neighborhood of all its rows, which is right for
            batches whose rows lie together. An int: every row has this many nearest training rows
            (by joint Euclidean distance, itself included if it is one), which :meth:`fit` stores;
            after ``fit(x, y, groups=labels)`` they are of the row's own group. Not for layers.
            Much more than d (d + 3) / 2 of them average out noise.
        ridge: Strength of the ridge in the fit of f, relative to the size of the neighborhood; at
            least 1e-9. More makes f flatter and steadier on noisy data.
        categories: ``"mix"``: all columns are numbers. ``"whole"``: columns that belong together,
            such as those of a category, stay as they are in the row itself, the nearest real one.
            Which these are a training is told by its table, and :meth:`fit` by ``blocks``; else
            every column stands for itself.

    Example:
        >>> x, y = torch.randn(200, 5), torch.randn(200)
        >>> augment = CEMS(sigma=0.1, neighbors=20).fit(x, y)
        >>> new_x, new_y = augment(x[:32], y[:32])
        >>> new_x.shape, new_y.shape
        (torch.Size([32, 5]), torch.Size([32]))
    """

    _fitted_d: Tensor
    neutral = CEMSParams(eta=None)
    shown = ("sigma", "d", "neighbors", "ridge")
    #: Numbers in the sheets of all stored rows, at most (64 MB); or a batch finds its own.
    most_known = 2**23

    def __init__(
        self,
        sigma: float = 0.1,
        *,
        d: Dimension = "two_nn",
        neighbors: int | Literal["batch"] = "batch",
        ridge: float = 1e-3,
        categories: Categories = "mix",
        p: float = 1.0,
        append: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
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
        self._choose_categories(categories)
        self.learns = d == "two_nn_data" or neighbors != "batch"
        self.register_buffer("_fitted_d", torch.tensor(-1))
        self._make_room()
        self.company = "batch" if neighbors == "batch" else "stored"

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Store the joint training rows for ``neighbors``, their dimension for ``d``, if asked."""
        if self.d == "two_nn_data":
            self._fitted_d.fill_(batch_dimension(x, y) or 1)
        if self.neighbors != "batch":
            self._store(x, y)

    def draw(self, x: Tensor, y: Tensor) -> CEMSParams:
        """Draw a step for every row."""
        if self._is_within and len(self._stored) < 2:
            return self.neutral  # there is nobody else in the group
        if len(self._stored_groups) and not self._is_within:
            raise ArgumentError(
                "`groups` must be given, as in `fit`: `augment(x, y, groups=labels)`, got None."
            )
        d = batch_dimension(x, y) if self.d == "two_nn" else self._fixed_d()
        if d is None:
            return self.neutral
        n, d = len(x), min(d, (x.numel() + y.numel()) // len(x))
        # One direction after another, so that runs of other dimensions can be drawn at once.
        eta = _random.normals(n * d, self.generator).mul_(self.sigma).reshape(d, n).T
        return CEMSParams(eta.to(x.device))

    def transform(self, x: Tensor, y: Tensor, params: CEMSParams) -> tuple[Tensor, Tensor]:
        """Move every row by its step ``params.eta`` along the sheet through it."""
        eta = params.eta
        if eta is None:
            return x, y
        rows_x, rows_y, near = as_rows(x), as_rows(y), None
        if not isinstance(self.neighbors, str):
            rows = self._check_stored(x, y)
            known = self._find_sheets(eta.shape[1])
            if known is not None and (sheets := known.find(rows)) is not None:
                offsets = sheets.offsets(eta.to(rows), FAR)
                new_x, new_y = add_offsets(rows_x, rows_y, offsets)
                return self.keep_whole(x, new_x.reshape(x.shape)), new_y.reshape(y.shape)
            check_finite(x=x, y=y)
            near = self._neighborhoods(rows)
        new_x, new_y = cems(
            rows_x, rows_y, eta=eta, ridge=self.ridge, neighborhoods=near, reach=FAR
        )
        return self.keep_whole(x, new_x.reshape(x.shape)), new_y.reshape(y.shape)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: what they know is one table."""
        return _CEMSAcross(parts, ahead=ahead)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.neighbors == "batch", self.d == "two_nn")

    def at(
        self, model: nn.Module, place: str | Sequence[str], *, output: int | str | None = None
    ) -> AtLayer[CEMSParams]:
        """Act on the output of a layer of ``model``; see :meth:`Augmentation.at`."""
        if self.neighbors != "batch":
            why = (
                f"CEMS(neighbors={self.neighbors}) knows neighbors among the training rows, not "
                "among the outputs of"
            )
            check_is_input(place, why, "Use neighbors='batch' there.")
        return super().at(model, place, output=output)

    def _fixed_d(self) -> int:
        return fixed_dimension("CEMS(d='two_nn_data')", self.d, self._fitted_d)

    def _find_sheets(self, d: int) -> StoredSheets | None:
        """Return what is known of all stored rows, found once; None if it would be too much."""
        stored = self._stored
        n, columns = stored.shape
        size = n * (d * columns + int(self.neighbors) * (d + columns))
        # With the dimension of each batch the sheets would change from batch to batch.
        if self.d == "two_nn" or size > self.most_known:
            return None
        known = None if self._sheets is None else self._sheets.of(stored)
        if known is None or known.d != d:
            sheets = fit_sheets(stored, self._neighborhoods(stored), d, self.ridge)
            known = StoredSheets(d, stored, sheets)
            self._sheets = Known(known, stored)
        return known

    def _share_sheets(self, others: Sequence["CEMS"]) -> StoredSheets | None:
        """Return the same, taken from one of some others that has stored the same rows."""
        d, stored = min(self._fixed_d(), self._stored.shape[1]), self._stored
        for other in others:
            known = None if other._sheets is None else other._sheets.of(other._stored)
            same = (other.neighbors, other.ridge) == (self.neighbors, self.ridge)
            if known is not None and same and known.d == d and torch.equal(other._stored, stored):
                self._sheets = Known(known, stored)
                break
        return self._find_sheets(d)


class _CEMSAcross(AtOnce[CEMS]):
    """CEMS on the batches of several runs."""

    def __init__(self, parts: Sequence[CEMS], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._sigma = torch.tensor([part.sigma for part in parts], dtype=torch.float64)
        self._d: Indices | None = None
        if parts[0].d != "two_nn":
            self._d = np.array([part._fixed_d() for part in parts])
        self._tables: list[tuple[Tensor, SheetTable]] | None = None
        self._whole = WholeColumns(parts)

    def counts(self, batches: RunBatches) -> Indices:
        """Return how many uniform numbers the batches need: for every row one along each axis."""
        return batches.x.shape[1] * self._find_dimensions(batches).clip(min=0)

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Where all runs know their sheets, move the rows of all batches at once."""
        runs, x, y, rows = batches.runs, batches.x, batches.y, batches.rows
        d = self._find_dimensions(batches)
        eta = self._find_steps(runs, d, x.shape[1], uniform).to(x.device)
        params = [
            CEMS.neutral if count < 0 else CEMSParams(own[:, :count])
            for own, count in zip(eta, d.tolist(), strict=True)
        ]
        for number, part in self.last_batches(runs):
            part.params = params[number]
        if rows is not None and (tables := self._find_tables(working_dtype(x, y))):
            offsets = self._gather_offsets(tables, runs, rows, eta)
            new_x, new_y = add_offsets(*batches.columns, offsets)
            new_x = self._whole.keep(batches, new_x)
            return new_x.reshape(x.shape), new_y.reshape(y.shape)
        moved = [
            self.parts[run].transform(one_x, one_y, own)
            for run, one_x, one_y, own in zip(runs.tolist(), x, y, params, strict=True)
        ]
        new_x, new_y = (torch.stack(values) for values in zip(*moved, strict=True))
        return new_x, new_y

    def _find_dimensions(self, batches: RunBatches) -> Indices:
        """Return d for every batch; -1 where it cannot be estimated."""
        columns = batches.columns
        if self._d is None:  # one of them, and so all of them, take the dimension of each batch
            check_finite(x=batches.x, y=batches.y)
            return dimensions_of_each(torch.cat([part.double() for part in columns], dim=2))
        width = sum(part.shape[2] for part in columns)
        found: Indices = np.minimum(self._d[batches.runs], width)
        return found

    def _find_steps(self, runs: Indices, d: Indices, n: int, uniform: Values) -> Tensor:
        """Return the steps of all rows, ``(runs, n, d)``, zero in directions that a run has not."""
        most = max(int(d.max()), 0)
        steps = _random.normals_at(torch.from_numpy(uniform))
        steps.mul_(self._sigma[torch.from_numpy(runs), None])
        steps = steps.reshape(len(runs), most, n)
        if (d < most).any():
            steps.masked_fill_((torch.arange(most) >= torch.from_numpy(d)[:, None])[..., None], 0.0)
        return steps.mT

    def _find_tables(self, dtype: torch.dtype) -> list[tuple[Tensor, SheetTable]]:
        """Return the tables of all runs' sheets, each with where every run's rows begin in it.

        That is -1 for a run whose sheets are in another. There are no tables if they are too much
        for one of the runs, or change from batch to batch.
        """
        if self._tables is not None:
            return self._tables
        self._tables, found = [], []
        for number, part in enumerate(self.parts):
            if part.neighbors == "batch" or part.d == "two_nn":
                return self._tables
            if (known := part._share_sheets(self.parts[:number])) is None:
                return self._tables
            found.append(known)
        if min(part.ridge for part in self.parts) < _FLOAT32_RIDGE:
            dtype = torch.float64
        for form in dict.fromkeys(known.form for known in found):
            alike = list({id(known): known for known in found if known.form == form}.values())
            table = SheetTable(alike, dtype)
            places = {id(known): first for known, first in zip(alike, table.firsts, strict=True)}
            firsts = torch.tensor([places.get(id(known), -1) for known in found])
            self._tables.append((firsts, table))
        return self._tables

    def _gather_offsets(
        self, tables: list[tuple[Tensor, SheetTable]], runs: Indices, rows: Tensor, eta: Tensor
    ) -> Tensor:
        """Return how far all rows move, ``(runs, n, columns)``."""
        if len(tables) == 1:
            return _offsets_in(*tables[0], torch.from_numpy(runs), rows, eta)
        offsets = torch.empty(0)
        for firsts, table in tables:
            own = (firsts[runs] >= 0).nonzero().squeeze(1)
            if len(own):
                some = _offsets_in(firsts, table, torch.from_numpy(runs)[own], rows[own], eta[own])
                if not len(offsets):
                    offsets = some.new_empty(*rows.shape, some.shape[-1])
                offsets[own] = some
        return offsets


def _offsets_in(
    firsts: Tensor, table: SheetTable, runs: Tensor, rows: Tensor, eta: Tensor
) -> Tensor:
    places = (firsts[runs, None] + rows).flatten()
    steps = eta[..., : table.d].reshape(len(places), -1)
    steps = F.pad(steps, (0, table.d - steps.shape[1]))
    return table.offsets(places, steps).reshape(*rows.shape, -1)
