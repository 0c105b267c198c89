"""A sheet of images, to look at them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regaug._checks import check_integer
from regaug.data.base import Part
from regaug.exceptions import ArgumentError


def sheet(
    part: Part,
    path: str | Path,
    n: int = 40,
    *,
    channels: Sequence[int] = (0, 1, 2),
    columns: int = 10,
    zoom: int = 3,
) -> Path:
    """Save the first images of a part on one sheet, to look at them.

    The values are stretched so that the smallest on the sheet is black and the largest white.

    Args:
        part: A part whose samples are images ``(channels, height, width)``.
        path: Where to write it; the suffix says the format, such as ``.png``.
        n: Number of images, fewer if the part has fewer.
        channels: The channels shown as red, green and blue; ``(2, 1, 0)`` for PovertyMap.
        columns: Images in a row.
        zoom: Width and height of a pixel on the sheet.

    Returns:
        The path.
    """
    from PIL import Image

    count = min(check_integer("n", n, 1), len(part))
    if not count or len(part.x.shape) != 4:
        raise ArgumentError(
            f"`part` must hold images (n, channels, height, width), got {tuple(part.x.shape)}."
        )
    images = part.x[list(range(count))][:, list(channels)].numpy()
    low, high = images.min(), images.max()
    pixels = np.round(255 * (images - low) / (high - low or 1)).astype(np.uint8)
    height, width = images.shape[2:]
    rows = -(-count // columns)
    page = np.zeros((rows * height, columns * width, 3), dtype=np.uint8)
    for i, image in enumerate(pixels):
        top, left = i // columns * height, i % columns * width
        page[top : top + height, left : left + width] = image.transpose(1, 2, 0)
    page = page.repeat(zoom, axis=0).repeat(zoom, axis=1)
    Image.fromarray(page).save(path)
    return Path(path)
