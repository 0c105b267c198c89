"""The net for videos: an 18-layer residual network of (2+1)-dimensional convolutions."""

from pathlib import Path

from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_integer, check_range
from regaug.exceptions import ArgumentError
from regaug.models.pretrained import load_pretrained
from regaug.models.resnet import Residual18


class R2Plus1D18(Residual18):
    """R(2+1)D with 18 layers (Tran et al., CVPR 2018), for clips of any length and size.

    Every convolution of a residual network over space and time is split into one over space and
    one over time, with a ReLU between.

    Args:
        outputs: Number of targets, at least 1.
        bias: Initial bias of the head, best near the mean of the targets (EchoNet-Dynamic takes
            55.6); None leaves torch's small random one.
        weights: A safetensors file to start from, such as weights that were pretrained on other
            data, by our names or torchvision's; a head that does not fit stays new. None starts
            from random weights.
        seed: Decides the initial weights.

    Attributes:
        places: The four residual stages, the last first: it is the default latent place.

    Example:
        >>> import torch
        >>> net = R2Plus1D18(bias=55.6)
        >>> net(torch.zeros(2, 3, 8, 32, 32)).shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        outputs: int = 1,
        *,
        bias: float | None = None,
        weights: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.outputs = check_integer("outputs", outputs, 1)
        self.bias = None if bias is None else check_range("bias", bias)
        self.seed = check_integer("seed", seed, 0)
        with _random.seeded(self.seed):
            over_space, over_time = _convolve(3, 45, (1, 7), 2), _convolve(45, 64, (3, 1))
            stem = nn.Sequential(*over_space, nn.ReLU(), *over_time, nn.ReLU())
            self._build(stem, _branch, self.outputs)
        self.weights = weights
        if weights is not None:
            load_pretrained(self, weights)
        if self.bias is not None:
            nn.init.constant_(self.head.bias, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for clips ``(n, 3, frames, height, width)``."""
        if x.ndim != 5 or x.shape[1] != 3:
            raise ArgumentError(
                f"`x` must be (n, 3, frames, height, width), got shape {tuple(x.shape)}."
            )
        return self._predict(x)


def _branch(before: int, after: int, stride: int) -> nn.Sequential:
    # As many channels between space and time as give the split the weights of a full 3x3x3
    # convolution; both convolutions of a block take the number of the first.
    between = 27 * before * after // (9 * before + 3 * after)
    return nn.Sequential(
        *(*_convolve(before, between, (1, 3), stride), nn.ReLU()),
        *(*_convolve(between, after, (3, 1), stride), nn.ReLU()),
        *(*_convolve(after, between, (1, 3)), nn.ReLU()),
        *_convolve(between, after, (3, 1)),
    )


def _convolve(
    before: int, after: int, kernel: tuple[int, int], stride: int = 1
) -> tuple[nn.Conv3d, nn.BatchNorm3d]:
    """Convolve frames x pixels, and step along what the kernel reaches along."""
    (time, space), (frames, side) = (stride if size > 1 else 1 for size in kernel), kernel
    strides, padding = (time, space, space), (frames // 2, side // 2, side // 2)
    convolution = nn.Conv3d(before, after, (frames, side, side), strides, padding, bias=False)
    return convolution, nn.BatchNorm3d(after)
