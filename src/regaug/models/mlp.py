"""The net for tables: fully connected layers."""

from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_integer, check_range
from regaug.exceptions import ArgumentError


class MLP(nn.Module):
    """Fully connected net: hidden blocks of a linear map and a leaky ReLU, then a linear head.

    The defaults are the paper's three-layer net.

    Args:
        inputs: Number of input values of a sample, at least 1.
        outputs: Number of targets, at least 1.
        hidden: Width of every hidden layer, one or more.
        slope: Slope of the activation below zero, in [0, 1]; 0 is the plain ReLU.
        seed: Decides the initial weights.

    Attributes:
        places: ``"block_1"``, ``"block_2"``, ...: every hidden block, the first being the default
            latent place.

    Example:
        >>> import torch
        >>> net = MLP(5, hidden=(64, 64, 64))
        >>> net(torch.zeros(32, 5)).shape
        torch.Size([32, 1])
        >>> net.places
        ('block_1', 'block_2', 'block_3')
    """

    places: tuple[str, ...]

    def __init__(
        self,
        inputs: int,
        outputs: int = 1,
        *,
        hidden: Sequence[int] = (128, 128),
        slope: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.inputs = check_integer("inputs", inputs, 1)
        self.outputs = check_integer("outputs", outputs, 1)
        self.hidden = tuple(check_integer("hidden", width, 1) for width in hidden)
        if not self.hidden:
            raise ArgumentError("`hidden` must give the width of at least one layer, got none.")
        self.slope = check_range("slope", slope, 0.0, 1.0)
        self.seed = check_integer("seed", seed, 0)
        self.places = tuple(f"block_{i}" for i in range(1, len(self.hidden) + 1))
        widths = (self.inputs, *self.hidden)
        with _random.seeded(self.seed):
            for place, before, after in zip(self.places, widths, self.hidden, strict=False):
                block: OrderedDict[str, nn.Module] = OrderedDict(
                    linear=nn.Linear(before, after), activation=nn.LeakyReLU(self.slope)
                )
                self.add_module(place, nn.Sequential(block))
            self.head = nn.Linear(widths[-1], self.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for inputs ``(n, *features)``, which are flattened."""
        if x.ndim < 2 or x.shape[1:].numel() != self.inputs:
            raise ArgumentError(
                f"`x` must be (n, *features) with {self.inputs} values in a sample, "
                f"got shape {tuple(x.shape)}."
            )
        x = x.flatten(1)
        for place in (*self.places, "head"):
            x = getattr(self, place)(x)
        return x
