"""The one place that writes files, whole or not at all, and that reads JSON and tensors."""

import errno
import json
import math
import os
import secrets
import shutil
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from regaug._version import __version__
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError, FileError, RegaugError

T = TypeVar("T")
# What a JSON file can hold.
JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | None"

FORMAT = 1
DAY = 24 * 3600.0  # seconds after which a half-written file is nobody's: its process was killed
DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
PLAIN = (str, int, type(None))  # JSON keeps them as they are, and bool, which is an int
MALFORMED = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
HINTS = {
    errno.ENOSPC: "Free some space and run the same command again.",
    errno.EDQUOT: "Free some space and run the same command again.",
    errno.EACCES: "Choose a folder that you may write to.",
    errno.EPERM: "Choose a folder that you may write to.",
    errno.EROFS: "Choose a folder that you may write to.",
    errno.EEXIST: "A file is in the way: choose another folder.",
    errno.ENOTDIR: "A file is in the way: choose another folder.",
    errno.EISDIR: "A folder is in the way: choose another name.",
}


def explain(error: OSError) -> str:
    """Return what the system said, and the way out.

    Example:
        >>> explain(OSError(errno.ENOSPC, "No space left on device"))
        'No space left on device. Free some space and run the same command again.'
    """
    hint = HINTS.get(error.errno or 0, "Run the same command again when that is solved.")
    return f"{error.strerror or error}. {hint}"


# Writing.


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file or a folder under another name, and put it in place when complete.

    A process killed at any moment, a full disk or an error in ``write`` leave ``path`` as it was. A
    file takes the place of another at once. A folder cannot: the old one steps aside for a moment,
    and :func:`find_folder` knows where it is if that moment was the last one.

    Args:
        path: Where it goes; the folders above it are made.
        write: Makes the file or folder that it is given the name of, beside ``path``.
    """
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, escape(path.name), age=DAY)
        write(temporary)
        if temporary.is_dir():
            _swap_folder(temporary, path)
        else:
            with open(temporary, "r+b") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except RegaugError:
        raise
    except OSError as error:
        raise FileError(f"Could not write {path}: {explain(error)}") from error
    finally:
        _remove(temporary)
    sync_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, all of it or nothing."""
    write_whole(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a text file; what UTF-8 cannot hold becomes a question mark."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder that holds these files and nothing else, all of it or nothing."""

    def write(temporary: Path) -> None:
        temporary.mkdir()
        for name, content in files.items():
            append(temporary / name, content)

    write_whole(folder, write)


def write_json(path: Path, value: object, *, indent: int | None = None) -> None:
    """Write a JSON file, all of it or nothing."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


def create_whole(path: Path, content: bytes) -> None:
    """Write a file unless there is one: of several processes the first one decides.

    Errors are those of the system; what the file is, the caller knows.
    """
    temporary = _temporary(path)
    with suppress(FileExistsError):
        try:
            append(temporary, content)
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # some disks have no links
            append(path, content, "xb")
        finally:
            _remove(temporary)


def append(path: Path, content: bytes, mode: str = "ab") -> None:
    """Put ``content`` on the disk at the end of a file, all of it, or leave the file as it was.

    Errors are those of the system; what the file is, the caller knows.
    """
    # Closed every time: on network disks others see what was written before a close.
    with open(path, mode, buffering=0) as file:
        start = file.tell()
        try:
            left = memoryview(content)
            while left:  # once; an almost full disk takes a part, and fails the second time
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                file.truncate(start)
                if start == 0:
                    path.unlink()
            raise
    if start == 0:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names of the files in a folder on the disk, where the system can do that."""
    with suppress(OSError):  # the files themselves are safe
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: Path, pattern: str, *, age: float = 0.0) -> None:
    """Remove what killed writers of files with such names left, if it is so many seconds old.

    Every writer does this for its own file, when a day has passed.
    """
    for left in folder.glob(f".{pattern}.*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime >= age:
                _remove(left)


def find_folder(folder: Path) -> Path:
    """Return a folder, or where it is if the process was killed that was replacing it."""
    previous = _previous(folder)
    return folder if folder.exists() or not previous.exists() else previous


def _swap_folder(temporary: Path, folder: Path) -> None:
    previous = _previous(folder)
    if folder.is_dir():
        shutil.rmtree(previous, ignore_errors=True)
        os.replace(folder, previous)
    try:
        os.replace(temporary, folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            os.replace(previous, folder)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def _temporary(path: Path) -> Path:
    # Several processes and threads may write the same file at once.
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _previous(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.previous")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


# JSON.


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file whose content must be of this type, such as ``dict``."""
    try:
        value = _parse(path.read_bytes())
    except OSError as error:
        raise FileError(f"Could not read {path}: {error.strerror or error}.") from error
    if value is None:
        raise FileError(f"Could not read {path}: it is not a complete JSON file.")
    if not isinstance(value, kind):
        raise FileError(f"Could not read {path}: it must hold a {kind.__name__} at its top.")
    return value


def _parse(text: str | bytes) -> object:
    """Return what a JSON text holds; None if it is not one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also for what is not UTF-8
        return None


def entry(values: Mapping[str, object], key: str, kind: type[T]) -> T:
    """Return ``values[key]`` if it is there and of this type.

    Example:
        >>> entry({"epochs": "many"}, "epochs", int)
        Traceback (most recent call last):
            ...
        regaug.exceptions.DataError: `epochs` must be of type int, got 'many'.
    """
    if key not in values:
        raise DataError(f"`{key}` is missing.")
    value = values[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"`{key}` must be of type {kind.__name__}, got {value!r:.80}.")
    return value


def seal(document: Mapping[str, object]) -> bytes:
    """Return a document as a line of JSON that ends with its checksum.

    Example:
        >>> is_sealed(seal({"seed": 1})), is_sealed(seal({"seed": 1}).replace(b"1", b"2", 1))
        (True, False)
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")[:-1]
    return text + b',"crc32":%d}\n' % zlib.crc32(text)  # one more entry at the end


def is_sealed(line: bytes) -> bool:
    """Return whether a line is as :func:`seal` made it."""
    text, _, rest = line.rpartition(b',"crc32":')
    return rest == b"%d}\n" % zlib.crc32(text)


def plain(name: str, values: object) -> dict[str, JSON]:
    """Return a dict as JSON keeps it: tuples become lists, NaN and infinity are marked.

    Args:
        name: What it is called in an error.
        values: Dicts with strings as keys, lists, tuples, numbers, strings, bools, None.
    """
    return _plain_dict(name, values, _any_number)


def canonical(name: str, values: object) -> dict[str, JSON]:
    """Return the same dict for equal ones: 1 and 1.0 are the same; all numbers must be finite."""
    return _plain_dict(name, values, _same_number)


def dump(value: JSON, *, sort_keys: bool = False) -> bytes:
    """Return plain values as one line of JSON."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
    return text.encode("ascii")


def decode(values: dict[str, JSON]) -> JSON:
    """Undo for one object what :func:`plain` did to NaN, infinity and keys that begin with $."""
    if "$float" in values:
        return float(str(values["$float"]))
    return {key.removeprefix("$"): value for key, value in values.items()}


def _any_number(number: float, _: str) -> JSON:
    return number if math.isfinite(number) else {"$float": str(float(number))}


def _same_number(number: float, place: str) -> JSON:
    """Return the whole number that a float is equal to, if there is one."""
    if not math.isfinite(number):
        raise ArgumentError(f"{place} must be finite, got {number}. Take None for what is not set.")
    return int(number) if number.is_integer() else float(number)


def _plain_dict(name: str, values: object, number: Callable[[float, str], JSON]) -> dict[str, JSON]:
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"`{name}` must be a dict, got {type(values).__name__}.")
    try:
        return _plain_items(values, f"`{name}`", number)
    except RecursionError:
        raise ArgumentError(f"`{name}` must not contain itself or nest hundreds deep.") from None


def _plain_items(
    values: Mapping[object, object], place: str, number: Callable[[float, str], JSON]
) -> dict[str, JSON]:
    new: dict[str, JSON] = {}
    for key, item in values.items():
        if not isinstance(key, str):
            raise ArgumentTypeError(f"{place} must have strings as keys, got {key!r}.")
        # One more "$" tells a key that begins with it, such as a group's name, from a mark of ours.
        new[f"${key}" if key.startswith("$") else key] = _plain(item, f"{place}[{key!r}]", number)
    return new


def _plain(value: object, place: str, number: Callable[[float, str], JSON]) -> JSON:
    """Return what JSON keeps as it is; ``number`` decides what becomes of a float."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return number(value, place)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}[{i}]", number) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return _plain_items(value, place, number)
    raise ArgumentTypeError(
        f"{place} must be a number, a string, a bool, None, or a dict or list of them, got "
        f"{type(value).__name__}. Make it a number with .item(), or a list with .tolist()."
    )


# Tensors.


def dump_tensors(
    tensors: Mapping[str, Tensor], document: Mapping[str, object]
) -> tuple[bytes, str]:
    """Return the content of a safetensors file, and the checksum of its tensors.

    Args:
        tensors: Dense tensors on the CPU, none of which shares memory with another.
        document: What JSON can hold; it is kept in the metadata, together with a format, the
            version of regaug and the checksums.
    """
    from safetensors.torch import save

    checksum = _checksum(tensors)
    head = {"format": FORMAT, "regaug": __version__, "tensors": checksum}
    # One text, as the order of several is left to chance.
    return save(dict(tensors), {"regaug": seal({**head, **document}).decode()}), checksum


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Return the tensors and the document of a file, after checking that it is undamaged.

    Args:
        path: A file whose content :func:`dump_tensors` made.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("regaug", "")
            # They lie in the file until they are copied.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise FileError(f"Cannot use {path}: {error.strerror or error}.") from error
    except (SafetensorError, *MALFORMED) as error:
        raise FileError(
            f"Cannot use {path}: it is not a complete safetensors file, so it is damaged."
        ) from error
    document = _parse(text)
    if not isinstance(document, dict):
        raise FileError(f"Cannot use {path}: regaug did not write it, or it is damaged.")
    check_format(path, document.get("format"), FORMAT, document.get("regaug"))
    if not is_sealed(text.encode()) or document.get("tensors") != _checksum(tensors):
        raise FileError(
            f"Cannot use {path}: its content is not what was written, so it is damaged."
        )
    return tensors, document


def check_format(path: Path, found: object, known: object, version: object) -> None:
    """Refuse a file that another version of regaug wrote, by name."""
    if found != known:
        writer = f", written by regaug {version}," if version else ""
        raise FileError(
            f"Cannot use {path}: it has format {found}{writer} and this version reads format "
            f"{known}. Use the version that wrote it."
        )


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    found = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        found = zlib.crc32(f"{name}: {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"


# Nested states.


def write_state(path: Path, state: Mapping[str, object]) -> None:
    """Write a nested state as one safetensors file, without pickle.

    Args:
        path: The file.
        state: What :func:`pack` takes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_state(Path(folder, "saved"), {"weight": torch.ones(2), "rates": (0.1, 1)})
        ...     read_state(Path(folder, "saved"))
        {'weight': tensor([1., 1.]), 'rates': (0.1, 1)}
    """
    tree, tensors = pack(state)
    write_bytes(path, dump_tensors(tensors, {"state": tree})[0])


def read_state(path: Path) -> dict[str, object]:
    """Return what :func:`write_state` wrote; every tensor is on the CPU, in memory of its own."""
    tensors, document = read_tensors(path)
    try:
        return unpack(document.get("state"), tensors)
    except DataError as error:
        raise FileError(f"Cannot use {path}: {error}") from error


def pack(state: Mapping[str, object]) -> tuple[object, dict[str, Tensor]]:
    """Turn a nested state into what JSON can hold, and put its tensors aside under their paths.

    Args:
        state: Dicts, lists and tuples of tensors, numbers, strings and None, nested at will. The
            keys of a dict may be strings, numbers or None. Everything comes back with its type,
            except that subclasses come back as what they derive from (an ``OrderedDict`` as a dict)
            and tensors that share memory come back with memory of their own.
    """
    packer = _Packer()
    try:
        return packer.pack_dict(state, ""), packer.tensors
    except RecursionError:
        raise ArgumentError("`state` must not contain itself or nest hundreds deep.") from None


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
    def __init__(self) -> None:
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
                "`state` must be a dict of tensors, numbers, strings, None, and dicts, lists and "
                f"tuples of them, got {type(value).__name__}{place}. Make it a tensor with "
                "torch.as_tensor, or a number with .item()."
            )
        prefix = f"{path}." if path else ""
        items = {key: self.pack(item, f"{prefix}{key}") for key, item in value.items()}
        if all(isinstance(key, str) and not key.startswith("$") for key in items):
            return items
        return {"$dict": [[self._pack_key(key, path), item] for key, item in items.items()]}

    def _pack_key(self, key: object, path: str) -> object:
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
            raise DataError(f"the tensor {tree['$tensor']!r} is missing.")
        return tensors[tree["$tensor"]]
    if "$float" in tree:
        return float(tree["$float"])
    if "$tuple" in tree:
        return tuple(_unpack(item, tensors) for item in tree["$tuple"])
    pairs = tree["$dict"] if "$dict" in tree else tree.items()
    return {_unpack(key, tensors): _unpack(item, tensors) for key, item in pairs}
