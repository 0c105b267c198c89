"""The net for images: an 18-layer residual network."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_integer
from regaug.exceptions import ArgumentError
from regaug.models.pretrained import load_pretrained


class Residual18(nn.Module):
    """Four stages of two residual blocks between a stem and a linear head, in 2 or 3 dimensions."""

    places: tuple[str, ...] = ("stage_4", "stage_1", "stage_2", "stage_3")

    def _build(
        self, stem: nn.Sequential, branch: Callable[[int, int, int], nn.Sequential], outputs: int
    ) -> None:
        """Add the layers; ``branch(before, after, stride)`` is what a block adds to its input."""
        is_flat = isinstance(stem[0], nn.Conv2d)
        convolution, norm = (nn.Conv2d, nn.BatchNorm2d) if is_flat else (nn.Conv3d, nn.BatchNorm3d)

        def block(before: int, after: int, stride: int) -> _Block:
            residual, shortcut = branch(before, after, stride), nn.Sequential()
            if stride != 1 or before != after:
                shortcut.append(convolution(before, after, 1, stride=stride, bias=False))
                shortcut.append(norm(after))
            return _Block(residual, shortcut)

        self.stem = stem
        for stage, (before, after) in enumerate(pairwise((64, 64, 128, 256, 512)), start=1):
            blocks = block(before, after, 1 if stage == 1 else 2), block(after, after, 1)
            self.add_module(f"stage_{stage}", nn.Sequential(*blocks))
        self.pool = nn.AdaptiveAvgPool2d(1) if is_flat else nn.AdaptiveAvgPool3d(1)
        self.head = nn.Linear(512, outputs)
        for module in self.modules():
            if isinstance(module, convolution):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def _predict(self, x: Tensor) -> Tensor:
        for place in ("stem", *sorted(self.places), "pool"):
            x = getattr(self, place)(x)
        x = self.head(x.flatten(1))
        return x


class _Block(nn.Module):
    """A few convolutions, and a way around them."""

    def __init__(self, residual: nn.Sequential, shortcut: nn.Sequential) -> None:
        super().__init__()
        self.residual, self.shortcut = residual, shortcut
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.residual(x) + self.shortcut(x))
        return out


class ResNet18(Residual18):
    """Residual network with 18 layers (He et al., CVPR 2016), for images of any size.

    Args:
        outputs: Number of targets, at least 1.
        channels: Channels of an image, at least 1.
        weights: A safetensors file to start from, such as weights that were pretrained on other
            data, by our names or torchvision's; a head that does not fit stays new. None starts
            from random weights.
        seed: Decides the initial weights.

    Attributes:
        places: The four residual stages, the last first: it is the default latent place.

    Example:
        >>> import torch
        >>> net = ResNet18(channels=1)
        >>> net(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 1])
        >>> net.places
        ('stage_4', 'stage_1', 'stage_2', 'stage_3')
    """

    def __init__(
        self,
        outputs: int = 1,
        *,
        channels: int = 3,
        weights: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.outputs = check_integer("outputs", outputs, 1)
        self.channels = check_integer("channels", channels, 1)
        self.seed = check_integer("seed", seed, 0)
        with _random.seeded(self.seed):
            pool = nn.MaxPool2d(3, stride=2, padding=1)
            stem = nn.Sequential(*_convolve(self.channels, 64, 7, 2), nn.ReLU(), pool)
            self._build(stem, _branch, self.outputs)
        self.weights = weights
        if weights is not None:
            load_pretrained(self, weights)

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for images ``(n, channels, height, width)``."""
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise ArgumentError(
                f"`x` must be (n, channels, height, width) with {self.channels} channels, "
                f"got shape {tuple(x.shape)}."
            )
        return self._predict(x)


def _branch(before: int, after: int, stride: int) -> nn.Sequential:
    first, second = _convolve(before, after, 3, stride), _convolve(after, after, 3)
    return nn.Sequential(*first, nn.ReLU(), *second)


def _convolve(
    before: int, after: int, kernel: int, stride: int = 1
) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
    return convolution, nn.BatchNorm2d(after)
