"""The class that a callback inherits from, of whichever Lightning package is in use."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from regaug.exceptions import MissingExtraError

# One project under two names, whose classes have nothing to do with each other.
PACKAGES = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}


def find_bases() -> tuple[type[Any], ...]:
    """Return ``Callback`` of the packages that are imported, else of the first that is there."""
    imported = [module for name, module in PACKAGES.items() if name in sys.modules]
    bases = [base for module in imported if (base := _callback_of(module))]
    if bases:
        return tuple(bases)
    for module in PACKAGES.values():
        if base := _callback_of(module):
            return (base,)
    raise MissingExtraError(
        'AugmentCallback needs an extra: pip install "regaug[lightning]". '
        "The package pytorch-lightning does as well."
    )


def _callback_of(module: str) -> type[Any] | None:
    try:
        found: type[Any] = import_module(module).Callback
    except ImportError:
        return None
    return found


if TYPE_CHECKING:
    from lightning.pytorch import Callback as Callback
else:
    Callback = type("Callback", find_bases(), {})
