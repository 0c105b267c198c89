"""What a checkpoint belongs to, so that a training never goes on from another one's state."""

import zlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regaug.data.base import Part, Split
from regaug.exceptions import CheckpointError
from regaug.training.settings import Settings


def describe(method: str, settings: Settings, split: Split) -> dict[str, Any]:
    """Return plain values that say which training this is."""
    options = settings.to_dict()
    return {
        "method": method,
        **{f"settings.{name}": value for name, value in options.items() if name != "method"},
        **{f"settings.method.{name}": value for name, value in options["method"].items()},
        "training rows": _describe_rows(split.train),
        "validation rows": _describe_rows(split.validation),
    }


def check_configuration(saved: Mapping[str, Any], now: Mapping[str, Any], source: str) -> None:
    """Refuse to go on from the state of a different training."""
    names = list(dict.fromkeys([*saved, *now]))
    different = [name for name in names if _plain(saved.get(name)) != _plain(now.get(name))]
    if different:
        listed = "; ".join(
            f"{name} was {saved.get(name)!r} and is {now.get(name)!r}" for name in different[:4]
        )
        raise CheckpointError(
            f"The checkpoint in {source} belongs to another training: {listed}. Give another "
            "folder, or delete that one to start anew."
        )


def _describe_rows(part: Part) -> str:
    # Inputs that are not in memory are known by their shape: reading them all takes too long.
    inputs = f", inputs {_digest(part.x)}" if isinstance(part.x, Tensor) else ""
    return f"{tuple(part.x.shape)}{inputs}, targets {_digest(part.y)}"


def _digest(values: Tensor) -> str:
    return f"{zlib.crc32(values.contiguous().numpy().tobytes()):08x}"


def _plain(value: Any) -> Any:
    """Make a tuple equal to the list that it becomes in a file."""
    return list(value) if isinstance(value, tuple) else value
