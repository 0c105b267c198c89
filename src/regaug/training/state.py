"""Nested states as files: dicts, lists and tuples of tensors and plain values, without pickle."""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from regaug._files import MALFORMED, PLAIN, write_bytes
from regaug._tensors import dump_tensors, read_tensors
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError, FileError

DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)


def write_state(path: Path, state: Mapping[str, object], *, sync: bool = True) -> None:
    """Write a nested state, as :func:`pack` takes it, as one safetensors file, without pickle.

    ``sync`` is that of :func:`regaug._files.write_whole`.
    """
    tree, tensors = pack("state", state)
    write_bytes(path, dump_tensors(tensors, {"state": tree})[0], sync=sync)


def read_state(path: Path) -> dict[str, object]:
    """Return what :func:`write_state` wrote; every tensor is on the CPU, in memory of its own."""
    tensors, document = read_tensors(path)
    try:
        return unpack(document.get("state"), tensors)
    except DataError as error:
        raise FileError(f"Cannot use {path}: {error}") from error


def pack(name: str, state: Mapping[str, object]) -> tuple[object, dict[str, Tensor]]:
    """Turn a nested state into what JSON can hold, and put its tensors aside under their paths.

    Args:
        name: What the state is called in an error.
        state: Dicts, lists and tuples of tensors, numbers, strings and None, nested at will. The
            keys of a dict may be strings, numbers or None. Everything comes back with its type,
            except that subclasses come back as what they derive from (an ``OrderedDict`` as a dict)
            and tensors that share memory come back with memory of their own.
    """
    packer = _Packer(name)
    try:
        return packer.pack_dict(state, ""), packer.tensors
    except RecursionError:
        raise ArgumentError(f"`{name}` must not contain itself or nest hundreds deep.") from None


def unpack(tree: object, tensors: Mapping[str, Tensor]) -> dict[str, object]:
    """Undo :func:`pack`, or say in a ``DataError`` why that cannot be done."""
    try:
        found = _unpack(tree, tensors)
    except DataError:
        raise
    except MALFORMED:
        found = None
    if not isinstance(found, dict):
        raise DataError("its content does not have the form of a state.")
    return found


class _Packer:
    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self._memory: set[int] = set()

    def pack(self, value: object, path: str) -> object:
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

    def pack_dict(self, value: object, path: str) -> object:
        if not isinstance(value, Mapping):
            place = f" at {path}" if path else ""
            raise ArgumentTypeError(
                f"`{self.name}` must be a dict of tensors, numbers, strings, None, and dicts, "
                f"lists and tuples of them, got {type(value).__name__}{place}. Make it a tensor "
                "with torch.as_tensor, or a number with .item()."
            )
        prefix = f"{path}." if path else ""
        items = {key: self.pack(item, f"{prefix}{key}") for key, item in value.items()}
        if all(isinstance(key, str) for key in items):
            # One more "$" tells a key that begins with it from a mark of ours.
            return {f"${key}" if key[:1] == "$" else key: item for key, item in items.items()}
        for key in items:
            if not isinstance(key, (*PLAIN, float)):
                raise ArgumentTypeError(
                    f"`{self.name}` must have strings, numbers or None as keys, got {key!r} in "
                    f"{path or 'it'}."
                )
        return {"$dict": [[self.pack(key, path), item] for key, item in items.items()]}

    def _put_aside(self, tensor: Tensor, path: str) -> str:
        is_plain = tensor.layout is torch.strided and tensor.device.type != "meta"
        if not is_plain or tensor.dtype not in DTYPES:
            raise ArgumentTypeError(
                f"`{self.name}` must hold dense tensors of real numbers, got "
                f"{tensor.dtype}, {tensor.layout} on {tensor.device} at {path}."
            )
        # A view may be negated lazily; the file takes its memory as it is.
        dense = tensor.detach().cpu().resolve_neg().contiguous()
        memory = dense.untyped_storage().data_ptr()
        if memory in self._memory:  # safetensors refuses tensors that share it
            dense = dense.clone()
        self._memory.add(memory)
        # The path is the name, so that other programs find the weights; "#" marks the exceptions.
        is_name = path.isprintable() and not path.startswith("#") and path != "__metadata__"
        key = path if is_name and path not in self.tensors else f"#{len(self.tensors)}"
        self.tensors[key] = dense
        return key


def _unpack(tree: object, tensors: Mapping[str, Tensor]) -> object:
    if isinstance(tree, list):
        return [_unpack(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "$tensor" in tree:
        if tree["$tensor"] not in tensors:
            raise DataError(f"the tensor {tree['$tensor']!r:.80} is missing.")
        return tensors[tree["$tensor"]]
    if "$float" in tree:
        return float(tree["$float"])
    if "$tuple" in tree:
        return tuple(_unpack(item, tensors) for item in tree["$tuple"])
    if "$dict" in tree:
        return {_unpack(key, tensors): _unpack(item, tensors) for key, item in tree["$dict"]}
    return {key.removeprefix("$"): _unpack(item, tensors) for key, item in tree.items()}
