"""Weights from a file of the user's own, to start a network from."""

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from regaug.exceptions import ArgumentError, FileError

# What torchvision calls the parts of a residual network, in our words.
_PARTS = (
    (r"^conv1\.", "stem.0."),
    (r"^bn1\.", "stem.1."),
    (r"^layer(\d)\.", r"stage_\1."),
    (r"^fc\.", "head."),
    (r"\.downsample\.", ".shortcut."),
    # A convolution that is split into space and time has its parts one level deeper.
    (r"\.conv1\.0\.(\d)\.", r".residual.\1."),
    (r"\.conv1\.1\.", ".residual.4."),
    (r"\.conv2\.0\.0\.", ".residual.6."),
    (r"\.conv2\.0\.1\.", ".residual.7."),
    (r"\.conv2\.0\.3\.", ".residual.9."),
    (r"\.conv2\.1\.", ".residual.10."),
    (r"\.conv1\.weight", ".residual.0.weight"),
    (r"\.bn1\.", ".residual.1."),
    (r"\.conv2\.weight", ".residual.3.weight"),
    (r"\.bn2\.", ".residual.4."),
)
_SHOWN = 3  # names in an error


def load_pretrained(net: nn.Module, weights: str | Path) -> None:
    """Start a residual network from a safetensors file; the head stays new if it does not fit.

    Names are those of ``net.state_dict()``, or those that torchvision has for the same network.
    """
    path = Path(weights)
    if path.suffix != ".safetensors":
        raise ArgumentError(
            f"`weights` must be a safetensors file, got {str(weights)!r}. Write one with "
            "safetensors.torch.save_file(state_dict, path)."
        )
    there = {_rename(name): tensor for name, tensor in _read(path).items()}
    own = net.state_dict()
    head = [name for name in own if name.startswith("head.")]
    if any(name not in there or there[name].shape != own[name].shape for name in head):
        there |= {name: own[name] for name in head}
    counts = {name: own[name] for name in own if name.endswith("num_batches_tracked")}
    _check(path, own, there := {**counts, **there})
    net.load_state_dict({name: there[name] for name in own})


def _rename(name: str) -> str:
    if name.startswith(("stage_", "head.")):
        return name
    for pattern, new in _PARTS:
        name = re.sub(pattern, new, name)
    return name


def _read(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except OSError as error:
        raise FileError(f"Cannot use {path}: {error.strerror or error}.") from error
    except (SafetensorError, ValueError) as error:
        raise FileError(f"Cannot use {path}: it is not a complete safetensors file.") from error


def _check(path: Path, own: Mapping[str, Tensor], there: Mapping[str, Tensor]) -> None:
    wrong = [
        f"{name} is {tuple(there[name].shape)} there and {tuple(own[name].shape)} here"
        if name in there
        else f"{name} is missing there"
        for name in own
        if name not in there or there[name].shape != own[name].shape
    ]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise ArgumentError(
            f"`weights` must be those of this network, not so {path}: {'; '.join(wrong[:_SHOWN])}"
            f"{more}."
        )
