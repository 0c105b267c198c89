"""How some rows lie in space: their singular values and their intrinsic dimension."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_range
from regaug.data.scaling import Scaler
from regaug.dimension import two_nn
from regaug.exceptions import TooFewPointsError
from regaug.functional.decomposition import rank_at_share

# What a page can show of the singular values and of the TwoNN fit.
MOST_VALUES, MOST_POINTS = 60, 200
# A slope of so many times the columns is no dimension.
MOST_TIMES = 10
RHO = 0.9
_WHOLE = ("columns", "targets", "n_used", "n_values", "k")


@dataclass(frozen=True)
class TwoNNFit:
    """The intrinsic dimension of the training rows, and the line it is the slope of.

    Attributes:
        dimension: The slope; None if no finite one fits, as for points on a grid.
        n_dropped: Rows left out because another one lies exactly on them.
        log_mu: First coordinate of the points of the fit, ascending.
        neg_log_survival: Second coordinate of the same points.
    """

    dimension: float | None
    n_dropped: int
    log_mu: tuple[float, ...]
    neg_log_survival: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """How rows of inputs, or of what a layer puts out, lie together with their targets.

    Attributes:
        columns: Numbers that a row has beside its targets.
        targets: Number of targets.
        n_used: Training rows that the singular values and the fit were computed from; 0 if they
            were not.
        singular_values: The largest ones of the standardized rows [x, y], in descending order.
        n_values: How many there are in all.
        rho: Share of their sum that FOMA_rho keeps.
        k: How many of them make up at most that share.
        share: The share that these make up.
        two_nn: The TwoNN fit; None if there are too few different rows.
    """

    columns: int
    targets: int
    n_used: int = 0
    singular_values: tuple[float, ...] = ()
    n_values: int = 0
    rho: float = RHO
    k: int = 0
    share: float = 0.0
    two_nn: TwoNNFit | None = None

    @classmethod
    def of(cls, x: Tensor, y: Tensor, rho: float = RHO) -> "Geometry":
        """Look at rows ``(n, d)`` with their targets ``(n, m)``."""
        joint = torch.cat([x, y], dim=1).double()
        points = Scaler.fit(joint).transform(joint)
        values = _singular_values(points)
        k, total = int(rank_at_share(values, rho)), float(values.sum())
        return Geometry(
            columns=x.shape[1],
            targets=y.shape[1],
            n_used=len(points),
            singular_values=_short(values[:MOST_VALUES].numpy()),
            n_values=len(values),
            rho=rho,
            k=k,
            share=min(1.0, float(values[:k].sum()) / total) if total > 0 else 0.0,
            two_nn=_fit_two_nn(points),
        )

    @classmethod
    def read(cls, values: Mapping[str, Any], **more: Any) -> Self:
        """Return what a JSON file says of it, every number checked."""
        fit = values["two_nn"]
        return cls(
            singular_values=_numbers(values["singular_values"]),
            rho=check_range("rho", values["rho"], 0.0, 1.0),
            share=check_range("share", values["share"], 0.0, 1.0),
            two_nn=None if fit is None else _read_fit(**fit),
            **{name: int(values[name]) for name in _WHOLE},
            **more,
        )


def _singular_values(points: Tensor) -> Tensor:
    n, d = points.shape
    if d <= 4 * n:
        values: Tensor = torch.linalg.svdvals(points)
        return values
    # Of few long rows the small matrix of their products has the same ones, squared.
    squares: Tensor = torch.linalg.eigvalsh(points @ points.T)
    return squares.clamp(min=0.0).sqrt().flip(0)


def _fit_two_nn(points: Tensor) -> TwoNNFit | None:
    try:
        fit = two_nn(points)
    except TooFewPointsError:
        return None
    shown = np.unique(np.linspace(0, len(fit.log_mu) - 1, MOST_POINTS).astype(np.int64))
    # On a grid mu is 1, or by rounding a little more, and the slope has no meaning.
    is_one = fit.dimension <= MOST_TIMES * points.shape[1]
    return TwoNNFit(
        dimension=float(fit.dimension) if is_one else None,
        n_dropped=int(fit.n_dropped),
        log_mu=_short(fit.log_mu[shown]),
        neg_log_survival=_short(fit.neg_log_survival[shown]),
    )


def _read_fit(
    dimension: float | None,
    n_dropped: int,
    log_mu: Sequence[float],
    neg_log_survival: Sequence[float],
) -> TwoNNFit:
    if len(log_mu) != len(neg_log_survival):
        raise ValueError("the points of the TwoNN fit have unequally many coordinates")
    slope = None if dimension is None else check_range("dimension", dimension)
    return TwoNNFit(slope, int(n_dropped), _numbers(log_mu), _numbers(neg_log_survival))


def _numbers(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(check_range("values", value) for value in values)


def _short(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{value:.5g}") for value in values)
