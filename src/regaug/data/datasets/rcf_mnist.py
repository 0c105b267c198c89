"""RCF-MNIST: rotated, colored Fashion-MNIST, in which color misleads about the angle."""

import gzip
import struct
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_integer
from regaug._random import Stream, numpy_generator
from regaug.data.base import Data, Part, Rows, Rules, Split, check_split
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import find
from regaug.data.lazy import Lazy
from regaug.exceptions import DataError

_FILE = "train-images-idx3-ubyte.gz"
_MAGIC = 2051
_SHARE = 0.8  # of the images whose color follows the rule of their part
_DARK = 5  # gray levels up to this one keep their color

Floats = NDArray[np.float64]


def load_rcf_mnist(*, path: str | Path | None = None, seed: int = 0) -> "RCFMNIST":
    """Load RCF-MNIST, made from the training images of Fashion-MNIST.

    An image is rotated counter-clockwise by a random angle; the target is angle / 360. Its color
    goes from blue (r = 0) to red (r = 1): in training r = y for 80 % of the images and 1 - y for
    the others, in validation r is random, in test it is the other way round. So a net that reads
    the angle from the color fails.

    ``path`` is ``train-images-idx3-ubyte.gz`` or its folder. ``seed`` is that of the angles, which
    belong to the data: all splits share them. A sample is ``(3, 28, 28)``, values in [-1, 1].
    """
    file = find(path, f"fashion_mnist/{_FILE}")
    return RCFMNIST(file / _FILE if file.is_dir() else file, seed=seed)


class RCFMNIST(Data):
    """RCF-MNIST; ``load_rcf_mnist`` returns one."""

    info = DATASETS["rcf-mnist"].info

    def __init__(self, path: Path, *, seed: int = 0) -> None:
        self._path = str(path)
        n = len(read_images(self._path))
        seed = check_integer("seed", seed, 0)
        self.y = numpy_generator(Stream.ANGLES, seed).uniform(size=(n, 1))

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split at random into 4/6, 1/6 and 1/6 of the images, and color them, by the seed.

        ``more["test-unshifted"]`` has the test images with colors as in training. The two
        protocols are the same.
        """
        rng = numpy_generator(Stream.IMAGES, check_split(seed, protocol))
        n = len(self)
        train, validation, test = np.split(rng.permutation(n), [n * 4 // 6, n * 5 // 6])
        followed = self._colors(train, rng)
        drawn: Floats = rng.uniform(size=len(validation))
        unshifted = self._colors(test, rng)
        return Split(
            train=self._part(train, followed),
            validation=self._part(validation, drawn),
            test=self._part(test, 1 - unshifted),
            more={"test-unshifted": self._part(test, unshifted)},
        )

    def _colors(self, rows: Rows, rng: np.random.Generator) -> Floats:
        """Return r = y for a random 80 % of the rows and 1 - y for the others."""
        follows = rng.permutation(len(rows)) < _SHARE * len(rows)
        turns: Floats = self.y[rows, 0]
        return np.where(follows, turns, 1 - turns)

    def _part(self, rows: Rows, colors: Floats) -> Part:
        return self._samples(ColoredImages(self._path, rows, self.y[rows, 0], colors), rows)


class ColoredImages(Lazy):
    """Images of an IDX file, rotated (in whole turns) and colored when they are asked for."""

    def __init__(self, path: str, rows: Rows, turns: Floats, colors: Floats) -> None:
        super().__init__(len(rows), (3, *read_images(path).shape[1:]))
        self.path, self.rows, self.turns, self.colors = path, rows, turns, colors

    def _read(self, place: int) -> Tensor:
        from PIL import Image

        image = Image.fromarray(read_images(self.path)[self.rows[place]])
        turned = image.rotate(360 * self.turns[place], resample=Image.Resampling.NEAREST)
        return color(np.asarray(turned), self.colors[place])


def color(gray: NDArray[np.uint8], r: float) -> Tensor:
    """Color a gray image between blue (r = 0) and red (r = 1): ``(3, height, width)``."""
    levels = torch.from_numpy(gray.astype(np.float32)) / 255
    tint = torch.tensor([r, 0.0, 1 - r], dtype=torch.float32)[:, None, None]
    return (torch.where(torch.from_numpy(gray > _DARK), levels * tint, levels) - 0.5) * 2


# One copy of 47 MB per process, shared by all parts; what is sent to a worker is the path.
@lru_cache(maxsize=2)
def read_images(path: str) -> NDArray[np.uint8]:
    """Read the images of an IDX file, ``(n, height, width)``, read-only."""
    try:
        with gzip.open(path, "rb") as file:
            content = file.read()
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{path} must be a whole gzip file: {error}.") from None
    header = struct.unpack(">4I", content[:16]) if len(content) >= 16 else (0, 0, 0, 0)
    magic, n, height, width = header
    if magic != _MAGIC or len(content) != 16 + n * height * width or n < 6:
        raise DataError(
            f"{path} must hold at least 6 images in the IDX format (magic number {_MAGIC}, "
            "count, rows, columns, then a byte per pixel), got the header "
            f"{header} and {len(content)} bytes."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=16).reshape(n, height, width)
