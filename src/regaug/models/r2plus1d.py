"""The net for videos: an 18-layer residual network of (2+1)-dimensional convolutions."""

from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_integer, check_range
from regaug.exceptions import ArgumentError


class R2Plus1D18(nn.Module):
    """R(2+1)D with 18 layers (Tran et al., CVPR 2018), for clips of any length and size.

    Every convolution of a residual network over space and time is split into one over space and
    one over time, with a ReLU between.

    Args:
        outputs: Number of targets, at least 1.
        bias: Initial bias of the head, best near the mean of the targets (EchoNet-Dynamic takes
            55.6); None leaves torch's small random one.
        seed: Decides the initial weights.

    Attributes:
        places: The four residual stages, the last first: it is the default latent place.

    Example:
        >>> import torch
        >>> net = R2Plus1D18(bias=55.6)
        >>> net(torch.zeros(2, 3, 8, 32, 32)).shape
        torch.Size([2, 1])
    """

    places: tuple[str, ...] = ("stage_4", "stage_1", "stage_2", "stage_3")

    def __init__(self, outputs: int = 1, *, bias: float | None = None, seed: int = 0) -> None:
        super().__init__()
        self.outputs = check_integer("outputs", outputs, 1)
        self.bias = None if bias is None else check_range("bias", bias)
        self.seed = check_integer("seed", seed, 0)
        with _random.seeded(self.seed):
            self.stem = nn.Sequential(
                *_over_space(3, 45, kernel=7, stride=2), *_over_time(45, 64, stride=1), nn.ReLU()
            )
            self.stage_1 = _stage(64, 64, stride=1)
            self.stage_2 = _stage(64, 128, stride=2)
            self.stage_3 = _stage(128, 256, stride=2)
            self.stage_4 = _stage(256, 512, stride=2)
            self.pool = nn.AdaptiveAvgPool3d(1)
            self.head = nn.Linear(512, self.outputs)
            for module in self.modules():
                if isinstance(module, nn.Conv3d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if self.bias is not None:
            nn.init.constant_(self.head.bias, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for clips ``(n, 3, frames, height, width)``."""
        if x.ndim != 5 or x.shape[1] != 3:
            raise ArgumentError(
                f"`x` must be (n, 3, frames, height, width), got shape {tuple(x.shape)}."
            )
        x = self.stem(x)
        x = self.stage_4(self.stage_3(self.stage_2(self.stage_1(x))))
        prediction: Tensor = self.head(self.pool(x).flatten(1))
        return prediction


class _Block(nn.Module):
    """Two (2+1)D convolutions, and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        # As many channels between space and time as give the split the weights of a full 3x3x3
        # convolution; both convolutions of a block take the number of the first.
        between = 27 * before * after // (9 * before + 3 * after)
        self.residual = nn.Sequential(
            *_over_space(before, between, kernel=3, stride=stride),
            *_over_time(between, after, stride=stride),
            nn.ReLU(),
            *_over_space(after, between, kernel=3, stride=1),
            *_over_time(between, after, stride=1),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv3d(before, after, 1, stride=stride, bias=False), nn.BatchNorm3d(after)
            )
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.residual(x) + self.shortcut(x))
        return out


def _over_space(before: int, after: int, *, kernel: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv3d(
        before,
        after,
        (1, kernel, kernel),
        stride=(1, stride, stride),
        padding=(0, kernel // 2, kernel // 2),
        bias=False,
    )
    return [convolution, nn.BatchNorm3d(after), nn.ReLU()]


def _over_time(before: int, after: int, *, stride: int) -> list[nn.Module]:
    convolution = nn.Conv3d(
        before, after, (3, 1, 1), stride=(stride, 1, 1), padding=(1, 0, 0), bias=False
    )
    return [convolution, nn.BatchNorm3d(after)]


def _stage(before: int, after: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(_Block(before, after, stride), _Block(after, after, 1))
