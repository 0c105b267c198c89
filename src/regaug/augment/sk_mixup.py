"""SK-Mixup: mix samples the less, the farther apart they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from regaug import _random
from regaug._checks import check_choice, check_range
from regaug.augment.across import Across, AtOnce, Pair, RunBatches
from regaug.augment.joint import as_rows
from regaug.augment.mixup import KnowsMask
from regaug.augment.numbers import Indices, Values
from regaug.augment.whole import Categories, TakesWhole, WholeColumns, own_rows, whole_shares
from regaug.functional.mixing import mix
from regaug.functional.partners import warp_shares

Distance = Literal["targets", "inputs"]
DISTANCES: tuple[Distance, ...] = ("targets", "inputs")


@dataclass(frozen=True, eq=False)
class SKMixupParams:
    """What SK-Mixup draws for a batch; None where it is left as it is.

    Attributes:
        lam: Share of each sample itself in its new inputs, float64 ``(n,)``.
        lam_y: The same in its new targets.
        partners: The row that each row is mixed with.
        swapped: True where a row has what is taken whole from its partner; None too if nothing is.
    """

    lam: Tensor | None
    lam_y: Tensor | None
    partners: Tensor | None
    swapped: Tensor | None = None


class SKMixup(KnowsMask, TakesWhole[SKMixupParams]):
    r"""Mix every sample with a random one, far ones less (Similarity Kernel Mixup).

    As in :class:`Mixup` sample :math:`i` becomes
    :math:`\lambda_i (x_i, y_i) + (1 - \lambda_i) (x_j, y_j)`, but each pair has its own
    :math:`\lambda_i`, a draw from :math:`\mathrm{Beta}(\tau_i, \tau_i)` with
    :math:`\tau_i = \alpha \exp((1 - d_i) / (2 w^2))`, where :math:`d_i` is the squared distance of
    the two divided by its mean over the batch (Bouniot et al., ICLR 2025). Far pairs stay as they
    are or change places, near ones meet in the middle. All pairs of a batch have their draw from
    one uniform number. With a large width it is :class:`Mixup`. ``p``, ``append``, ``anneal``,
    ``total_steps`` and ``generator`` are options of every :class:`Augmentation`.

    Args:
        alpha: Concentration for a pair at the mean distance, greater than 0.
        width: Width of the kernel in units of the mean distance, greater than 0.
        distance: Of what: ``"targets"``, as the paper has it for regression, or ``"inputs"``, at a
            layer what it puts out.
        alpha_y: Concentration in the warp of the targets; ``alpha`` if None.
        width_y: Width of the kernel in the warp of the targets; ``width`` if None.
        categories: ``"mix"``, or ``"whole"``: columns that belong together are taken whole from one
            of the two rows, as :class:`Mixup` does.

    Example:
        >>> x, y = torch.randn(32, 5), torch.randn(32)
        >>> augment = SKMixup(alpha=1.0, width=0.5)
        >>> new_x, new_y = augment(x, y)
        >>> new_x.shape, augment.params.lam.shape
        (torch.Size([32, 5]), torch.Size([32]))
    """

    neutral = SKMixupParams(lam=None, lam_y=None, partners=None)
    shown = ("alpha", "width", "distance", "alpha_y", "width_y")
    company = "partner"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        width: float = 1.0,
        distance: Distance = "targets",
        alpha_y: float | None = None,
        width_y: float | None = None,
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
        self.alpha = check_range("alpha", alpha, 0.0, open_low=True)
        self.width = check_range("width", width, 0.0, open_low=True)
        self.distance = check_choice("distance", distance, DISTANCES)
        if alpha_y is not None:
            alpha_y = check_range("alpha_y", alpha_y, 0.0, open_low=True)
        if width_y is not None:
            width_y = check_range("width_y", width_y, 0.0, open_low=True)
        self.alpha_y, self.width_y = alpha_y, width_y
        self._choose_categories(categories)

    @property
    def warps(self) -> tuple[float, float, float, float]:
        """Concentration and width in the warp of the inputs, then in that of the targets."""
        alpha_y = self.alpha if self.alpha_y is None else self.alpha_y
        width_y = self.width if self.width_y is None else self.width_y
        return self.alpha, self.width, alpha_y, width_y

    def draw(self, x: Tensor, y: Tensor) -> SKMixupParams:
        """Draw one number for the batch, and the partners; warp the number for each pair."""
        draw = _random.uniform(0.0, 1.0, self.generator)
        partners = _random.permutation(len(y), self.generator).to(x.device)
        is_of_inputs = self.distance == "inputs"
        rows, mask = as_rows(x if is_of_inputs else y), self.known_mask if is_of_inputs else None
        alpha, width, alpha_y, width_y = self.warps
        lam = lam_y = warp_shares(
            rows, lam=draw, partners=partners, alpha=alpha, width=width, mask=mask
        )
        if (alpha, width) != (alpha_y, width_y):
            lam_y = warp_shares(
                rows, lam=draw, partners=partners, alpha=alpha_y, width=width_y, mask=mask
            )
        swapped = None
        if self.whole_columns(x[0].numel()) is not None:
            swapped = _random.uniforms(len(y), self.generator).to(x.device) >= lam.to(x.device)
        return SKMixupParams(lam, lam_y, partners, swapped)

    def transform(self, x: Tensor, y: Tensor, params: SKMixupParams) -> tuple[Tensor, Tensor]:
        """Mix the rows with ``params.partners``."""
        return self._mix(x, y, params, None)

    def transform_where(
        self, x: Tensor, y: Tensor, params: SKMixupParams, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mix the values that a row and its partner both have; all others stay the row's own."""
        return self._mix(x, y, params, self.whole_mask(mask))

    def _mix(
        self, x: Tensor, y: Tensor, params: SKMixupParams, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        lam, partners = params.lam, params.partners
        if lam is None or partners is None:
            return x, y
        lam_y, is_whole = params.lam_y, self.whole_columns(x[0].numel())
        if is_whole is not None and params.swapped is not None:
            lam_y = lam if lam_y is None else lam_y
            lam = whole_shares(lam, params.swapped, is_whole.to(x.device))
        rows_x, rows_y = as_rows(x), as_rows(y)
        new_x, new_y = mix(rows_x, rows_y, lam=lam, partners=partners, mask=mask, lam_y=lam_y)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)

    @classmethod
    def across(cls, parts: Sequence[Self], *, ahead: bool = False) -> Across:
        """Put the augmentations of several runs together: all batches are one stack."""
        return _SKMixupAcross(parts, ahead=ahead)

    @property
    def structure(self) -> tuple[object, ...]:
        """The choices, as opposed to numbers, that runs in one stack must share."""
        return (*super().structure, self.distance)


class _SKMixupAcross(AtOnce[SKMixup]):
    """SK-Mixup of the batches of several runs as one stack."""

    def __init__(self, parts: Sequence[SKMixup], *, ahead: bool = False) -> None:
        super().__init__(parts, ahead=ahead)
        self._warps = np.array([part.warps for part in parts]).T  # four rows
        self._is_one = bool((self._warps[:2] == self._warps[2:]).all())
        self._whole = WholeColumns(parts)

    def counts(self, batches: RunBatches) -> int | Indices:
        """Return how many uniform numbers a batch needs: for lam, partners, and what is whole."""
        n, flags = batches.x.shape[1], self._whole.of(batches)
        if flags is None:
            return 1 + n
        return 1 + n * (1 + flags.any(dim=1).cpu().numpy().astype(np.int64))

    def transform(self, batches: RunBatches, uniform: Values) -> Pair:
        """Mix all batches as one stack."""
        runs, x, y = batches.runs, batches.x, batches.y
        rows_x, rows_y = batches.columns
        rows = rows_x if self.parts[0].distance == "inputs" else rows_y
        draws = torch.from_numpy(uniform[:, 0])
        n, flags = x.shape[1], self._whole.of(batches)
        partners = torch.from_numpy(uniform[:, 1 : 1 + n].argsort(axis=1)).to(x.device)
        alpha, width, alpha_y, width_y = torch.from_numpy(self._warps[:, runs])
        lam = lam_y = warp_shares(rows, lam=draws, partners=partners, alpha=alpha, width=width)
        if not self._is_one:
            lam_y = warp_shares(rows, lam=draws, partners=partners, alpha=alpha_y, width=width_y)
        share, swapped = lam, None
        if flags is not None:
            own = torch.from_numpy(uniform[:, 1 + n : 1 + 2 * n]).to(x.device)
            swapped = own >= lam.to(x.device)
            share = whole_shares(lam, swapped, flags)
        for number, part in self.last_batches(runs):
            drawn = lam[number], lam_y[number], partners[number]
            part.params = SKMixupParams(*drawn, own_rows(swapped, flags, number))
        new_x, new_y = mix(rows_x, rows_y, lam=share, partners=partners, lam_y=lam_y)
        return new_x.reshape(x.shape), new_y.reshape(y.shape)
