"""FOMA and FOMA_rho: scale the small singular values of a batch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_choice, check_flag, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.joint import (
    Dimension,
    Known,
    as_rows,
    batch_dimension,
    check_dimension,
    dimensions_of_each,
    fixed_dimension,
    joint_dimension,
)
from regaug.augment.numbers import Indices, Values
from regaug.augment.whole import Categories, TakesWhole, WholeColumns
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.functional.foma import Joint, Targets, join, scale_joint
from regaug.functional.spectral import Gradient, Scale

Weight = Literal["one", "lam", "lam2"]
# How often a batch of so many singular values at most had a cut k; -1 if it could not be estimated.
Cuts = Counter[tuple[int, int]]
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


class FOMA(TakesWhole[FOMAParams]):
    r"""First-Order Manifold Augmentation (Kaufman and Azencot, ICML 2024).

    The batch of joint rows :math:`[x_i, y_i]` is a matrix with singular values
    :math:`s_1 \ge s_2 \ge \dots`. Its leading :math:`k` directions stand for the tangent plane of
    the data; the others are multiplied by :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)`, one
    draw per batch. ``rho`` gives the paper's FOMA_rho, ``k="two_nn"`` its FOMA. ``p``, ``append``,
    ``anneal``, ``total_steps`` and ``generator`` are options of every :class:`Augmentation`.

    Args:
        alpha: Concentration of the Beta distribution, greater than 0.
        rho: Share of the sum of singular values that is left as it is, in [0, 1]; sets k for every
            batch. 0.9 if neither ``rho`` nor ``k`` is given.
        k: Number of leading directions: an int (clamped to the batch), ``"two_nn"`` for the
            intrinsic dimension of each batch, or ``"two_nn_data"`` for that of the training set,
            which :meth:`fit` estimates; at a layer, whose outputs change as the model learns, that
            is the dimension of each batch again. A batch in which the dimension cannot be estimated
            (fewer than three different rows) is left as it is.
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
        categories: ``"mix"``: all columns are numbers. ``"whole"``: columns that belong together,
            such as those of a category, stay as they are in the row itself, the nearest real one.
            Which these are a training is told by its table, and :meth:`fit` by ``blocks``; else
            every column stands for itself.

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
        categories: Categories = "mix",
        p: float = 1.0,
        append: bool = False,
        center: bool = False,
        anneal: float | None = None,
        total_steps: int | None = None,
        lam_range: Sequence[float] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(
            p=p, append=append, anneal=anneal, total_steps=total_steps, generator=generator
        )
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
        self.center = check_flag("center", center)
        self._choose_categories(categories)
        self.lam_range = None if lam_range is None else _check_lam_range(lam_range)
        self.learns, self.weighs = k == "two_nn_data", weight != "one"
        self.register_buffer("_fitted_k", torch.tensor(-1))
        self.cuts: Cuts | None = None  # none are counted; see count_cuts
        self._is_at_layer = False

    def weight_of(self, params: FOMAParams) -> float:
        """Return what the loss is to be multiplied by for a draw."""
        return params.weight

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Estimate the intrinsic dimension of the joint training rows, for ``k="two_nn_data"``."""
        if self.k == "two_nn_data":
            self._fitted_k.fill_(joint_dimension(x, y))

    def draw(self, x: Tensor, y: Tensor) -> FOMAParams:
        """Draw lam and find the cut of this batch."""
        known: Known[Joint] | None = None
        lam = self._draw_lam()
        if self.rho is None:
            k = self._cut(x, y)
        else:
            joint = join(as_rows(x), as_rows(y), center=self.center)
            known, k = Known(joint, x, y), int(joint.spectrum.rank_at_share(self.rho))
        most = min(len(x), (x.numel() + y.numel()) // len(x))
        k = None if k is None else min(k, most)
        if self.cuts is not None:
            self.cuts[-1 if k is None else k, most] += 1
        if k is None:
            return self.neutral
        return FOMAParams(lam, k, lam ** _EXPONENTS[self.weighting], known)

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
        return self.keep_whole(x, new_x.reshape(x.shape)), new_y.reshape(y.shape)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _FOMAAcross(parts, ahead=ahead)

    @contextmanager
    def observing(self, x: object, y: Tensor) -> Iterator[None]:
        """Take the dimension of each batch, not that of the data, while a model's layers run."""
        before, self._is_at_layer = self._is_at_layer, True
        try:
            with super().observing(x, y):
                yield
        finally:
            self._is_at_layer = before

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.scale, self.targets, self.gradient, self.center)

    def _cut(self, x: Tensor, y: Tensor) -> int | None:
        """Return k for a batch, unless it comes from a share; None if it cannot be estimated."""
        of_batch = self.k == "two_nn" or (self.k == "two_nn_data" and self._is_at_layer)
        return batch_dimension(x, y) if of_batch else self._fixed_cut()

    def _fixed_cut(self) -> int:
        return fixed_dimension("FOMA(k='two_nn_data')", self.k, self._fitted_k)

    def _draw_lam(self) -> float:
        if self.lam_range is None:
            return _random.beta(self.alpha, self.generator)
        return _random.uniform(*self.lam_range, self.generator)

    def _scale(
        self, joint: Joint, x: Tensor, y: Tensor, lam: float | Tensor, k: int | Tensor
    ) -> tuple[Tensor, Tensor]:
        scale, targets, gradient = self.scale, self.targets, self.gradient
        return scale_joint(
            joint, x, y, lam=lam, k=k, scale=scale, targets=targets, gradient=gradient
        )

    def _public(self, params: FOMAParams) -> FOMAParams:
        return FOMAParams(params.lam, params.k, params.weight) if params._known else params


class _FOMAAcross(AtOnce[FOMA]):
    """FOMA on the batches of several runs as one stack of matrices."""

    def __init__(self, parts: Sequence[FOMA], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._alpha = np.array([part.alpha for part in parts])
        self._is_range = np.array([part.lam_range is not None for part in parts])
        self._range = np.array([part.lam_range or (0.0, 0.0) for part in parts])
        self._exponent = np.array([_EXPONENTS[part.weighting] for part in parts])
        self._rho = np.array([np.nan if part.rho is None else part.rho for part in parts])
        self._whole = WholeColumns(parts)
        self._of_batch = np.array([part.k == "two_nn" for part in parts])
        self._of_data = np.array([part.k == "two_nn_data" for part in parts])
        # The cuts that are known beforehand.
        self._k = np.zeros(len(parts), dtype=np.int64)
        for number, part in enumerate(parts):
            if part.rho is None and part.k != "two_nn":
                self._k[number] = part.k if isinstance(part.k, int) else int(part._fitted_k)

    def counts(self, batches: RunBatches) -> int:
        """Return how many uniform numbers a batch needs: one for lam."""
        return 1

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Transform all batches as one stack."""
        runs, x, y = batches.runs, batches.x, batches.y
        lam, first = self._find_lam(runs, uniform[:, 0]), self.parts[0]
        rows_x, rows_y = batches.columns
        joint = join(rows_x, rows_y, center=first.center)
        k = self._find_cuts(runs, joint, at_layer=batches.given is not None)
        self._count(runs, k, min(joint.rows.shape[-2:]))
        is_known = k >= 0
        lam, k = np.where(is_known, lam, 1.0), np.where(is_known, k, 0)
        weights = lam ** self._exponent[runs]
        self.weights = weights if self._exponent.any() else None
        for number, part in self.last_batches(runs):
            own = float(lam[number]), int(k[number]), float(weights[number])
            part.params = FOMAParams(*own) if is_known[number] else FOMA.neutral
        new_x, new_y = first._scale(
            joint, rows_x, rows_y, torch.from_numpy(lam), torch.from_numpy(k).to(x.device)
        )
        new_x = self._whole.keep(batches, new_x)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    def _find_lam(self, runs: Indices, uniform: Values) -> Values:
        is_range = self._is_range[runs]
        lam = _random.beta_at(self._alpha[runs], uniform)
        if is_range.any():
            low, high = self._range[runs].T
            lam = np.where(is_range, low + (high - low) * uniform, lam)
        return lam

    def _count(self, runs: Indices, cuts: Indices, most: int) -> None:
        for run, k in zip(runs.tolist(), cuts.tolist(), strict=True):
            if (counted := self.parts[run].cuts) is not None:
                counted[k, most] += 1

    def _find_cuts(self, runs: Indices, joint: Joint, *, at_layer: bool) -> Indices:
        """Return k for every batch; -1 where it cannot be estimated."""
        cuts, rho, of_batch = self._k[runs], self._rho[runs], self._of_batch[runs]
        of_data = self._of_data[runs]
        if at_layer:
            of_batch = of_batch | of_data
        elif (unfitted := runs[of_data & (cuts < 0)]).size:
            self.parts[unfitted[0]]._fixed_cut()  # says so
        by_share = ~np.isnan(rho)
        if by_share.any():
            share = torch.from_numpy(np.where(by_share, rho, 0.0)).to(joint.rows.device)
            ranks = torch.as_tensor(joint.spectrum.rank_at_share(share)).cpu().numpy()
            cuts = np.where(by_share, ranks, cuts)
        if of_batch.any():
            points = joint.rows if of_batch.all() else joint.rows[torch.from_numpy(of_batch)]
            cuts[of_batch] = dimensions_of_each(points)
        return np.minimum(cuts, min(joint.rows.shape[-2:]))


def count_cuts(augmentation: nn.Module) -> None:
    """Let FOMA, and every FOMA in a chain, count the cuts of its batches from now on."""
    for part in augmentation.modules():
        if isinstance(part, FOMA):
            part.cuts = Counter()


def list_cuts(augmentation: nn.Module) -> tuple[tuple[int, int, int], ...]:
    """Return what was counted as ``(k, values, batches)``, of all FOMA in a chain together."""
    parts = [part for part in augmentation.modules() if isinstance(part, FOMA)]
    total = sum((part.cuts for part in parts if part.cuts is not None), Cuts())
    return tuple((k, most, count) for (k, most), count in sorted(total.items()))


def go_on_counting(augmentation: nn.Module, cuts: Sequence[tuple[int, int, int]]) -> None:
    """Begin with what was counted before, in the first FOMA of a chain."""
    for part in augmentation.modules():
        if isinstance(part, FOMA):
            part.cuts = Cuts({(k, most): count for k, most, count in cuts})
            break


def _check_lam_range(lam_range: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = lam_range
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"`lam_range` must be (low, high), got {lam_range!r}.") from None
    low = check_range("lam_range[0]", low, 0.0)
    return low, check_range("lam_range[1]", high, low)
