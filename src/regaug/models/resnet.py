"""The net for images: an 18-layer residual network."""

from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_integer
from regaug.exceptions import ArgumentError


class ResNet18(nn.Module):
    """Residual network with 18 layers (He et al., CVPR 2016), for images of any size.

    Args:
        outputs: Number of targets, at least 1.
        channels: Channels of an image, at least 1.
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

    places: tuple[str, ...] = ("stage_4", "stage_1", "stage_2", "stage_3")

    def __init__(self, outputs: int = 1, *, channels: int = 3, seed: int = 0) -> None:
        super().__init__()
        self.outputs = check_integer("outputs", outputs, 1)
        self.channels = check_integer("channels", channels, 1)
        self.seed = check_integer("seed", seed, 0)
        with _random.seeded(self.seed):
            self.stem = nn.Sequential(
                nn.Conv2d(self.channels, 64, 7, stride=2, padding=3, bias=False),
                nn.BatchNorm2d(64),
                nn.ReLU(),
                nn.MaxPool2d(3, stride=2, padding=1),
            )
            self.stage_1 = _stage(64, 64, stride=1)
            self.stage_2 = _stage(64, 128, stride=2)
            self.stage_3 = _stage(128, 256, stride=2)
            self.stage_4 = _stage(256, 512, stride=2)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.head = nn.Linear(512, self.outputs)
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for images ``(n, channels, height, width)``."""
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise ArgumentError(
                f"`x` must be (n, channels, height, width) with {self.channels} channels, "
                f"got shape {tuple(x.shape)}."
            )
        x = self.stem(x)
        x = self.stage_4(self.stage_3(self.stage_2(self.stage_1(x))))
        prediction: Tensor = self.head(self.pool(x).flatten(1))
        return prediction


class _Block(nn.Module):
    """Two 3x3 convolutions, and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
            )
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.residual(x) + self.shortcut(x))
        return out


def _stage(before: int, after: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(_Block(before, after, stride), _Block(after, after, 1))
