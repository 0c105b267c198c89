"""How numbers lie in memory: what comes in channels_last goes out so."""

import torch
from torch import Tensor

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def keep_layout(new: Tensor, old: Tensor) -> Tensor:
    """Return ``new`` in the layout of ``old``, if that has its channels last.

    A layer after a layer in another layout is slower, or turns all of it around once more.

    Example:
        >>> images = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
        >>> keep_layout(torch.ones(2, 3, 4, 5), images).stride() == images.stride()
        True
    """
    layout = _FORMATS.get(old.ndim)
    # An image of one channel, or of one pixel, is in both layouts.
    if layout is None or old.is_contiguous() or not old.is_contiguous(memory_format=layout):
        return new
    return new.contiguous(memory_format=layout)
