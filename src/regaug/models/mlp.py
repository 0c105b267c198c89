"""The net for tables: fully connected layers, behind periodic features and beside a linear part."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_flag, check_integer, check_list, check_range
from regaug._files import JSON
from regaug.exceptions import ArgumentError

# Values that the periodic features of a column are condensed to.
CONDENSED = 4
# Beyond this torch has no size, and nobody the memory.
_WIDEST = 2**31 - 1


@dataclass(frozen=True)
class NetForm:
    """What the weights of two table nets must have in common to be put side by side.

    The attributes are arguments of :class:`MLP`.
    """

    inputs: int
    outputs: int = 1
    hidden: tuple[int, ...] = (128, 128)
    slope: float = 0.1
    periodic: tuple[int, ...] = ()
    frequencies: int = 8
    linear: bool = False

    @property
    def size(self) -> int:
        """How many numbers the weights are."""
        columns, ends = len(self.periodic), self.inputs * self.outputs + self.outputs
        widths = self.inputs + CONDENSED * columns, *self.hidden, self.outputs
        periodic = columns * (self.frequencies * (1 + 2 * CONDENSED) + CONDENSED)
        dense = sum((before + 1) * after for before, after in pairwise(widths))
        return periodic + dense + (ends if self.linear else 0)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return vars(self) | {"hidden": list(self.hidden), "periodic": list(self.periodic)}

    def make(self, *, spread: float = 0.1, seed: int = 0) -> "MLP":
        """Return a net of this form."""
        return MLP(**vars(self), spread=spread, seed=seed)


class MLP(nn.Module):
    """Fully connected net: hidden blocks of a linear map and a leaky ReLU, then a linear head.

    The defaults are the paper's three-layer net. Two parts can be added, which small tables gain
    from: periodic features of number columns, and a linear part that is given, not learned.

    Args:
        inputs: Number of input values of a sample, at least 1.
        outputs: Number of targets, at least 1.
        hidden: Width of every hidden layer, one or more.
        slope: Slope of the activation below zero, in [0, 1]; 0 is the plain ReLU.
        periodic: Columns that get periodic features, see
            :class:`~regaug.models.mlp.PeriodicFeatures`.
        frequencies: How many frequencies each of these columns has.
        spread: Standard deviation of the initial frequencies.
        linear: Add a linear map of the inputs to the prediction: ``skip``, zero at first and
            not trained. Whoever trains the net fits it first, by ridge regression for example.
        seed: Decides the initial weights.

    Attributes:
        places: ``"block_1"``, ``"block_2"``, ...: every hidden block, the first being the default
            latent place.

    Example:
        >>> net = MLP(5, hidden=(64, 64, 64))
        >>> net(torch.zeros(32, 5)).shape
        torch.Size([32, 1])
        >>> net.places
        ('block_1', 'block_2', 'block_3')
        >>> MLP(5, periodic=[0, 2], frequencies=8).block_1.linear.in_features
        13
    """

    places: tuple[str, ...]

    def __init__(
        self,
        inputs: int,
        outputs: int = 1,
        *,
        hidden: Sequence[int] = (128, 128),
        slope: float = 0.1,
        periodic: Sequence[int] = (),
        frequencies: int = 8,
        spread: float = 0.1,
        linear: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.inputs = check_integer("inputs", inputs, 1, _WIDEST)
        self.outputs = check_integer("outputs", outputs, 1, _WIDEST)
        widths = check_list("hidden", hidden)
        self.hidden = tuple(check_integer("hidden", width, 1, _WIDEST) for width in widths)
        if not self.hidden:
            raise ArgumentError("`hidden` must give the width of at least one layer, got none.")
        self.slope = check_range("slope", slope, 0.0, 1.0)
        self.seed = check_integer("seed", seed, 0, 2**63 - 1)
        most = self.inputs - 1
        columns = check_list("periodic", periodic)
        self.periodic = tuple(check_integer("periodic", column, 0, most) for column in columns)
        self.frequencies = check_integer("frequencies", frequencies, 1, _WIDEST)
        self.spread = check_range("spread", spread, 0.0, open_low=True)
        self.linear = check_flag("linear", linear)
        self.places = tuple(f"block_{i}" for i in range(1, len(self.hidden) + 1))
        sizes = (self.inputs + CONDENSED * len(self.periodic), *self.hidden)
        with _random.seeded(self.seed):
            own = self.periodic, self.frequencies, self.spread
            self.features = PeriodicFeatures(*own) if self.periodic else None
            for place, before, after in zip(self.places, sizes, self.hidden, strict=False):
                block: OrderedDict[str, nn.Module] = OrderedDict(
                    linear=nn.Linear(before, after), activation=nn.LeakyReLU(self.slope)
                )
                self.add_module(place, nn.Sequential(block))
            self.head = nn.Linear(sizes[-1], self.outputs)
        self.skip: nn.Linear | None = None
        if self.linear:
            self.skip = nn.Linear(self.inputs, self.outputs).requires_grad_(False)
            nn.init.zeros_(self.skip.weight)
            nn.init.zeros_(self.skip.bias)

    @property
    def form(self) -> NetForm:
        """What it is made of."""
        sizes = self.inputs, self.outputs, self.hidden, self.slope
        return NetForm(*sizes, self.periodic, self.frequencies, self.linear)

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for inputs ``(n, *features)``, which are flattened."""
        if x.ndim < 2 or x.shape[1:].numel() != self.inputs:
            raise ArgumentError(
                f"`x` must be (n, *features) with {self.inputs} values in a sample, "
                f"got shape {tuple(x.shape)}."
            )
        x = x.flatten(1)
        beside = None if self.skip is None else self.skip(x)
        if self.features is not None:
            x = self.features(x)
        for place in (*self.places, "head"):
            x = getattr(self, place)(x)
        return x if beside is None else x + beside


class PeriodicFeatures(nn.Module):
    r"""The inputs, followed by what periodic functions of some of them are condensed to.

    A column :math:`v` becomes :math:`[\cos 2 \pi f v, \sin 2 \pi f v]` for each of its
    frequencies :math:`f \sim N(0, \mathrm{spread}^2)`, which are learned too, and a linear map
    condenses these to four values (Gorishniy et al., NeurIPS 2022; Holzmüller et al., NeurIPS
    2024). A net of a few layers is slow to learn what wiggles; with these features it is not.

    Args:
        columns: Which of the inputs.
        frequencies: How many for each, at least 1.
        spread: Standard deviation of the initial frequencies, greater than 0.
    """

    def __init__(self, columns: Sequence[int], frequencies: int, spread: float) -> None:
        super().__init__()
        self.columns = tuple(columns)
        count, n = frequencies, len(self.columns)
        bound = 1.0 / math.sqrt(2 * count)  # as in a linear map of so many inputs
        self.frequencies = nn.Parameter(spread * torch.randn(count, n))
        self.weight = nn.Parameter(torch.empty(n, 2 * count, CONDENSED).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(CONDENSED, n).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(n, inputs + 4 columns)`` for inputs ``(n, inputs)``."""
        turns = 2.0 * math.pi * x[:, self.columns, None] * self.frequencies.mT
        waves = torch.cat([turns.cos(), turns.sin()], dim=2)
        condensed = torch.einsum("nci,cio->nco", waves, self.weight) + self.bias.mT
        return torch.cat([x, condensed.flatten(1)], dim=1)
