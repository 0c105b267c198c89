"""Tensors in safetensors files, with a sealed document beside them."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from regaug._files import MALFORMED, check_format, is_sealed, parse_json, seal
from regaug._regular import open_regular
from regaug._version import __version__
from regaug.exceptions import FileError

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1


def dump_tensors(
    tensors: Mapping[str, "Tensor"], document: Mapping[str, object]
) -> tuple[bytes, str]:
    """Return the content of a safetensors file, and the checksum of its tensors.

    The tensors are on the CPU, and none shares memory with another. The metadata keep the document,
    a format, the version of regaug and the checksums.
    """
    from safetensors.torch import save

    checksum = _checksum(tensors)
    head = {"format": FORMAT, "regaug": __version__, "tensors": checksum}
    # One text, as the order of several is left to chance.
    return save(dict(tensors), {"regaug": seal({**head, **document}).decode()}), checksum


def read_tensors(path: Path) -> tuple[dict[str, "Tensor"], dict[str, object]]:
    """Return what :func:`dump_tensors` was given, after checking that the file is undamaged."""
    from safetensors import SafetensorError, safe_open

    try:
        open_regular(path).close()
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("regaug", "")
            # They lie in the file until they are copied.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"Cannot use {path}: {error.strerror or error}.") from error
    except (SafetensorError, *MALFORMED) as error:
        reason = "it is not a complete safetensors file, so it is damaged."
        raise FileError(f"Cannot use {path}: {reason}") from error
    document = parse_json(text)
    if not isinstance(document, dict):
        raise FileError(f"Cannot use {path}: regaug did not write it, or it is damaged.")
    check_format(path, document.get("format"), FORMAT, document.get("regaug"))
    if not is_sealed(text.encode()) or document.get("tensors") != _checksum(tensors):
        reason = "its content is not what was written, so it is damaged."
        raise FileError(f"Cannot use {path}: {reason}")
    return tensors, document


def _checksum(tensors: Mapping[str, "Tensor"]) -> str:
    import torch

    found = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        found = zlib.crc32(f"{name}: {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"
