"""FOMA and FOMA_rho: scale the small singular values of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_choice, check_range
from regaug.augment.base import Augmentation
from regaug.augment.joint import (
    Dimension,
    Known,
    as_rows,
    check_dimension,
    find_dimension,
    joint_dimension,
)
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.foma import Joint, Targets, join, scale_joint
from regaug.functional.spectral import Gradient, Scale

Weight = Literal["one", "lam", "lam2"]
_EXPONENTS: dict[Weight, int] = {"one": 0, "lam": 1, "lam2": 2}


@dataclass(frozen=True)
class FOMAParams:
    """What FOMA draws for a batch.

    Attributes:
        lam: Factor of the scaled singular values.
        k: Number of leading singular values.
        weight: Multiply the loss by it; 1 unless ``weight`` says otherwise.
    """

    lam: float
    k: int
    weight: float = 1.0
    # The decomposition that k was read from, so that transform need not repeat it.
    _known: Known[Joint] | None = field(default=None, repr=False, compare=False)


class FOMA(Augmentation[FOMAParams]):
    r"""First-Order Manifold Augmentation (Kaufman and Azencot, ICML 2024).

    The batch of joint rows :math:`[x_i, y_i]` is a matrix with singular values
    :math:`s_1 \ge s_2 \ge \dots`. Its leading :math:`k` directions stand for the tangent plane of
    the data; the others are multiplied by :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)`, one
    draw per batch. ``rho`` gives the paper's FOMA_rho, ``k="two_nn"`` its FOMA. ``p``, ``append``,
    ``anneal`` and ``generator`` are options of every :class:`Augmentation`.

    Args:
        alpha: Concentration of the Beta distribution, greater than 0.
        rho: Share of the sum of singular values that is left as it is, in [0, 1]; sets k for every
            batch. 0.9 if neither ``rho`` nor ``k`` is given.
        k: Number of leading directions: an int (clamped to the batch), ``"two_nn"`` for the
            intrinsic dimension of each batch, or ``"two_nn_data"`` for that of the training set,
            which :meth:`fit` estimates. A batch in which the dimension cannot be estimated (fewer
            than three different rows) is left as it is.
        scale: The directions that are multiplied: ``"trailing"`` (the paper's "small") or
            ``"leading"`` ("large").
        targets: ``"joint"`` uses the new targets, as the paper says; ``"keep"`` the original ones,
            as the authors' released script does.
        gradient: At a layer, ``"exact"`` differentiates through the directions (paper),
            ``"frozen"`` treats them as constants (cheaper).
        weight: What the loss of a batch is to be multiplied by (``augment.weight`` after the
            call): ``"one"``, ``"lam"`` or ``"lam2"`` for 1, :math:`\lambda` or :math:`\lambda^2`
            (an ablation of the paper), for the whole batch, appended originals included.
        center: Decompose about the mean of the batch instead of about the origin.
        lam_range: ``(low, high)``: draw :math:`\lambda` uniformly from it instead; above 1 the
            small directions grow, the noise-like case of the paper's analysis.

    Example:
        >>> x, y = torch.randn(32, 5), torch.randn(32)
        >>> augment = FOMA(alpha=1.0, rho=0.9)
        >>> new_x, new_y = augment(x, y)
        >>> new_x.shape, new_y.shape
        (torch.Size([32, 5]), torch.Size([32]))
    """

    neutral = FOMAParams(lam=1.0, k=0)
    shown = ("alpha", "rho", "k", "scale")
    _fitted_k: Tensor

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        rho: float | None = None,
        k: Dimension | None = None,
        scale: Scale = "trailing",
        targets: Targets = "joint",
        gradient: Gradient = "exact",
        weight: Weight = "one",
        p: float = 1.0,
        append: bool = False,
        center: bool = False,
        anneal: float | None = None,
        lam_range: Sequence[float] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p=p, append=append, anneal=anneal, generator=generator)
        self.alpha = check_range("alpha", alpha, 0.0, open_low=True)
        if rho is not None and k is not None:
            raise ArgumentError(
                f"`rho` and `k` both choose the cut: give one of them, got rho={rho} and k={k!r}."
            )
        self.k = None if k is None else check_dimension("k", k, 0)
        rho = 0.9 if rho is None else check_range("rho", rho, 0.0, 1.0)
        self.rho = rho if k is None else None
        self.scale: Scale = check_choice("scale", scale, ("trailing", "leading"))
        self.targets: Targets = check_choice("targets", targets, ("joint", "keep"))
        self.gradient: Gradient = check_choice("gradient", gradient, ("exact", "frozen"))
        self.weighting: Weight = check_choice("weight", weight, tuple(_EXPONENTS))
        self.center = bool(center)
        self.lam_range = None if lam_range is None else _check_lam_range(lam_range)
        self.learns, self.weighs = k == "two_nn_data", weight != "one"
        self.register_buffer("_fitted_k", torch.tensor(-1))

    def weight_of(self, params: FOMAParams) -> float:
        """Return what the loss is to be multiplied by for a draw."""
        return params.weight

    def fit(self, x: Tensor, y: Tensor) -> Self:
        """Estimate the intrinsic dimension of the joint training rows, for ``k="two_nn_data"``."""
        super().fit(x, y)
        if self.k == "two_nn_data":
            self._fitted_k.fill_(joint_dimension(x, y))
        return self

    def draw(self, x: Tensor, y: Tensor) -> FOMAParams:
        """Draw lam and find the cut of this batch."""
        known: Known[Joint] | None = None
        if self.rho is None:
            k = self._cut(x, y)
        else:
            joint = join(as_rows(x), as_rows(y), center=self.center)
            known, k = Known(joint, x, y), int(joint.spectrum.rank_at_share(self.rho))
        if k is None:
            return self.neutral
        return self._draw_at(min(k, len(x), (x.numel() + y.numel()) // len(x)), known)

    def transform(self, x: Tensor, y: Tensor, params: FOMAParams) -> tuple[Tensor, Tensor]:
        """Scale the batch's singular values by ``params.lam`` beyond ``params.k``."""
        if params.lam == 1.0:
            return x, y
        rows_x, rows_y = as_rows(x), as_rows(y)
        joint = params._known.of(x, y) if params._known else None
        if joint is None:
            joint = join(rows_x, rows_y, center=self.center)
        k = min(params.k, len(x), rows_x.shape[1] + rows_y.shape[1])
        new_x, new_y = self._scale(joint, rows_x, rows_y, params.lam, k)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    @classmethod
    def across_runs(cls, parts: Sequence[Self], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Draw for every run and transform all batches as one stack."""
        first = parts[0]
        rows_x, rows_y = x.flatten(2), y.reshape(*y.shape[:2], -1)
        joint = join(rows_x, rows_y, center=first.center)
        cuts: list[int | None]
        if first.rho is not None:
            rho = torch.tensor([part.rho for part in parts], dtype=torch.float64)
            ranks = joint.spectrum.rank_at_share(rho.to(x.device))
            cuts = list(ranks.tolist()) if isinstance(ranks, Tensor) else [ranks]
        else:
            cuts = [part._cut(*batch) for part, *batch in zip(parts, x, y, strict=True)]
        most = min(joint.rows.shape[-2:])
        for part, cut in zip(parts, cuts, strict=True):
            part.params = part.neutral if cut is None else part._draw_at(min(cut, most))
        lam = torch.tensor([part.params.lam for part in parts], dtype=torch.float64)
        k = torch.tensor([part.params.k for part in parts], device=x.device)
        new_x, new_y = first._scale(joint, rows_x, rows_y, lam, k)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        cut = "rho" if self.rho is not None else type(self.k)
        return (*super().structure, cut, self.scale, self.targets, self.gradient, self.center)

    def _cut(self, x: Tensor, y: Tensor) -> int | None:
        """Return k for a batch, unless it comes from a share; None if it cannot be estimated."""
        return find_dimension("FOMA(k='two_nn_data')", self.k, self._fitted_k, x, y)

    def _draw_at(self, k: int, known: Known[Joint] | None = None) -> FOMAParams:
        if self.lam_range is None:
            lam = _random.beta(self.alpha, self.generator)
        else:
            lam = _random.uniform(*self.lam_range, self.generator)
        return FOMAParams(lam, k, lam ** _EXPONENTS[self.weighting], known)

    def _scale(
        self, joint: Joint, x: Tensor, y: Tensor, lam: float | Tensor, k: int | Tensor
    ) -> tuple[Tensor, Tensor]:
        scale, targets, gradient = self.scale, self.targets, self.gradient
        return scale_joint(
            joint, x, y, lam=lam, k=k, scale=scale, targets=targets, gradient=gradient
        )

    def _public(self, params: FOMAParams) -> FOMAParams:
        return FOMAParams(params.lam, params.k, params.weight) if params._known else params


def _check_lam_range(lam_range: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = lam_range
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"`lam_range` must be (low, high), got {lam_range!r}.") from None
    low = check_range("lam_range[0]", low, 0.0)
    return low, check_range("lam_range[1]", high, low)
