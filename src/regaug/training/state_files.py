"""A nested state as two files, without pickle: tensors in safetensors, everything else in JSON."""

import errno
import json
import math
import os
import shutil
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regaug._version import __version__
from regaug.exceptions import ArgumentError, ArgumentTypeError, CheckpointError

FORMAT = 1
DTYPES = {  # and what safetensors calls them
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
PLAIN = (str, int, type(None))  # JSON keeps them as they are, and bool, which is an int
HINTS = {
    errno.ENOSPC: "Free some space and run the same command again.",
    errno.EDQUOT: "Free some space and run the same command again.",
    errno.EACCES: "Choose a folder that you may write to.",
    errno.EPERM: "Choose a folder that you may write to.",
    errno.EROFS: "Choose a folder that you may write to.",
    errno.EEXIST: "A file is in the way: choose another folder.",
    errno.ENOTDIR: "A file is in the way: choose another folder.",
}


def write_state(folder: Path, state: Mapping[str, Any], *, name: str = "state") -> None:
    """Write a state so that ``folder`` holds all of it or is as before, whatever happens.

    The files are written and synced beside ``folder`` under a temporary name, then renamed. An
    earlier state in ``folder`` is replaced; until the new one is in place it stays readable.

    Args:
        folder: Where the two files go; its parents are made. It holds nothing else.
        state: Dicts, lists and tuples of tensors, numbers, strings and None, nested at will. The
            keys of a dict may be strings, numbers or None. Everything comes back with its type,
            except that subclasses come back as what they derive from (an ``OrderedDict`` as a dict)
            and tensors that share memory come back with memory of their own.
        name: Name of the files, without ``.safetensors`` and ``.json``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     write_state(Path(parent, "saved"), {"weight": torch.ones(2), "rates": (0.1, 1)})
        ...     read_state(Path(parent, "saved"))
        {'weight': tensor([1., 1.]), 'rates': (0.1, 1)}
    """
    packer = _Packer()
    try:
        tree = packer.pack_dict(state, "")
    except RecursionError:
        raise ArgumentError("`state` must not contain itself or nest hundreds deep.") from None
    data = _safetensors(packer.tensors)
    files = {f"{name}.safetensors": data, f"{name}.json": _document(tree, data)}
    try:
        _write_folder(Path(folder), files, _kind(name))
    except OSError as error:
        raise CheckpointError(
            f"Could not write the {_kind(name)} {folder}: {error.strerror or error}. "
            f"{HINTS.get(error.errno or 0, 'Run the same command again when that is solved.')}"
        ) from error


def read_state(folder: Path, *, name: str = "state") -> dict[str, Any]:
    """Return what :func:`write_state` wrote, after checking that it is undamaged.

    Args:
        folder: The folder with the two files.
        name: Name of the files, without ``.safetensors`` and ``.json``.

    Returns:
        The state; its tensors are on the CPU, each with memory of its own.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    folder = Path(folder)
    if not os.path.isdir(folder):
        folder = _previous_or_error(folder, name)
    text_file, data_file = folder / f"{name}.json", folder / f"{name}.safetensors"
    document = _read_document(text_file)
    data = _read_bytes(data_file)
    if {"bytes": len(data), "crc32": zlib.crc32(data)} != document.get("tensors"):
        raise _unusable(data_file, "its content is not what was written, so it is damaged")
    try:
        tensors = {key: tensor.clone() for key, tensor in load(data).items()}
        return _unpack_dict(document["state"], tensors)
    except SafetensorError as error:
        raise _unusable(data_file, f"it is not a safetensors file ({error})") from error
    except _MissingTensorError as error:
        raise _unusable(data_file, f"the tensor {error.args[0]!r} is missing") from error
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise _unusable(text_file, "its content does not have the form of a state") from error


def remove_state(folder: Path) -> None:
    """Remove a state at once: a kill leaves all of it, or a temporary folder."""
    for path in (_previous(folder), folder):
        if path.exists():
            temporary = _temporary(path)
            shutil.rmtree(temporary, ignore_errors=True)
            os.replace(path, temporary)
            shutil.rmtree(temporary, ignore_errors=True)


class _Packer:
    """Turns a state into what JSON can hold, and puts its tensors aside under their paths."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def pack(self, value: Any, path: str) -> Any:
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(float(value))}
        if isinstance(value, Tensor):
            return {"$tensor": self._put_aside(value, path)}
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{path}.{i}") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        return self.pack_dict(value, path)

    def pack_dict(self, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            place = f" at {path}" if path else ""
            raise ArgumentTypeError(
                "`state` must be a dict of tensors, numbers, strings, None, and dicts, lists and "
                f"tuples of them, got {type(value).__name__}{place}. Make it a tensor with "
                "torch.as_tensor, or a number with .item()."
            )
        prefix = f"{path}." if path else ""
        items = {key: self.pack(item, f"{prefix}{key}") for key, item in value.items()}
        if all(isinstance(key, str) and not key.startswith("$") for key in items):
            return items
        return {"$dict": [[self._pack_key(key, path), item] for key, item in items.items()]}

    def _pack_key(self, key: Any, path: str) -> Any:
        if isinstance(key, (*PLAIN, float)):
            return self.pack(key, path)
        raise ArgumentTypeError(
            f"`state` must have strings, numbers or None as keys, got {key!r} in {path or 'it'}."
        )

    def _put_aside(self, tensor: Tensor, path: str) -> str:
        is_plain = tensor.layout is torch.strided and tensor.device.type != "meta"
        if not is_plain or tensor.dtype not in DTYPES:
            raise ArgumentTypeError(
                "`state` must hold dense tensors of real numbers, got "
                f"{tensor.dtype}, {tensor.layout} on {tensor.device} at {path}."
            )
        # A view may be negated lazily; the file takes its memory as it is.
        dense = tensor.detach().cpu().resolve_neg().contiguous()
        # The path is the name, so that other programs find the weights; "#" marks the exceptions.
        is_name = path.isprintable() and not path.startswith("#") and path != "__metadata__"
        key = path if is_name and path not in self.tensors else f"#{len(self.tensors)}"
        self.tensors[key] = dense
        return key


class _MissingTensorError(Exception):
    """The tree refers to a tensor that the file does not have."""


def _unpack(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_unpack(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "$tensor" in tree:
        if tree["$tensor"] not in tensors:
            raise _MissingTensorError(tree["$tensor"])
        return tensors[tree["$tensor"]]
    if "$float" in tree:
        return float(tree["$float"])
    if "$tuple" in tree:
        return tuple(_unpack(tree["$tuple"], tensors))
    return _unpack_dict(tree, tensors)


def _unpack_dict(tree: Any, tensors: Mapping[str, Tensor]) -> dict[Any, Any]:
    pairs = tree["$dict"] if "$dict" in tree else tree.items()
    return {_unpack(key, tensors): _unpack(item, tensors) for key, item in pairs}


def _safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the content of a safetensors file.

    The package's own writer takes ten times as long for the small tensors of a small net, and
    refuses tensors that share memory. The format: length of the header, header, numbers.
    """
    header, parts, end = {}, [], 0
    # Wide numbers first: then each tensor begins at a multiple of its numbers' width.
    for name in sorted(tensors, key=lambda name: -tensors[name].itemsize):
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes
        kind, shape = DTYPES[tensor.dtype], list(tensor.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
        parts.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
    text = json.dumps(header).encode("ascii")
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def _document(tree: Any, data: bytes) -> bytes:
    document = {
        "format": FORMAT,
        "regaug": __version__,
        "tensors": {"bytes": len(data), "crc32": zlib.crc32(data)},
        "state": tree,
    }
    text = _dump(document)
    return text[:-1] + f',"crc32":{zlib.crc32(text)}}}'.encode("ascii")  # one more entry at the end


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")


def _read_document(file: Path) -> dict[str, Any]:
    text = _read_bytes(file)
    try:
        document = json.loads(text.decode("ascii"))
        found = document["format"]
        if found == FORMAT:
            # Numbers and strings have one spelling, so the same content gives the same sum.
            expected = document.pop("crc32")
            is_intact = zlib.crc32(_dump(document)) == expected
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise _unusable(file, "it is not a complete JSON file, so it is damaged") from error
    if found != FORMAT:
        raise _unusable(
            file,
            f"it has format {found!r}, written by regaug {document.get('regaug')}, and this "
            f"version reads format {FORMAT}. Use the version that wrote it",
        )
    if not is_intact:
        raise _unusable(file, "its content is not what was written, so it is damaged")
    return dict(document)


def _previous_or_error(folder: Path, name: str) -> Path:
    previous = _previous(folder)
    if os.path.isdir(previous):  # a write was killed between its two renames
        return previous
    raise CheckpointError(
        f"There is no {_kind(name)} {folder}, or it may not be opened. Check the name, or start "
        "again."
    )


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unusable(file, error.strerror or str(error)) from error


def _unusable(file: Path, reason: str) -> CheckpointError:
    kind = _kind(file.stem)
    way_out = "Make it again."
    if kind == "checkpoint":
        way_out = (
            f"Delete the folder {file.parent} to continue from an earlier checkpoint, or from the "
            "start if there is none."
        )
    return CheckpointError(f"Cannot use the {kind} {file}: {reason}. {way_out}")


def _kind(name: str) -> str:
    """Return what a user calls the files of this name."""
    return "checkpoint" if name == "state" else name


def _write_folder(folder: Path, files: Mapping[str, bytes], kind: str) -> None:
    _check_replaceable(folder, files, kind)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(folder)
    shutil.rmtree(temporary, ignore_errors=True)  # of a killed process with the same number
    try:
        temporary.mkdir()
        for name, content in files.items():
            with open(temporary / name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _sync_folder(temporary)
        _put_in_place(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(_previous(folder), ignore_errors=True)


def _put_in_place(temporary: Path, folder: Path) -> None:
    """Rename; a folder cannot take the place of another at once, so that one steps aside."""
    previous = _previous(folder)
    try:
        if folder.exists():
            shutil.rmtree(previous, ignore_errors=True)
            os.replace(folder, previous)
        os.replace(temporary, folder)
        _sync_folder(folder.parent)
    except BaseException:
        if not temporary.exists():
            os.replace(folder, temporary)
        if previous.exists() and not folder.exists():
            os.replace(previous, folder)
        raise


def _check_replaceable(folder: Path, files: Mapping[str, bytes], kind: str) -> None:
    """Refuse a folder with anything else in it: it would be lost."""
    if not folder.exists():
        return
    others = sorted(set(os.listdir(folder)) - files.keys())
    if others:
        raise CheckpointError(
            f"Could not write the {kind} {folder}: the folder holds something else "
            f"({others[0]}). Choose a folder of its own."
        )


def _previous(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.previous")


def _temporary(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.{os.getpid()}.tmp")


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
