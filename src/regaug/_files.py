"""The one place that writes files, whole or not at all, and that reads JSON."""

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
from typing import Any, TypeAlias, TypeVar

from regaug._regular import read_regular
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    FileError,
    RegaugError,
    StoreError,
)

T = TypeVar("T")
# What a JSON file can hold.
JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | None"

LONGEST = 500  # characters that an error says of a file
DAY = 24 * 3600.0  # seconds after which a half-written file is nobody's: its process was killed
PLAIN = (str, int, type(None))  # JSON keeps them as they are, and bool, which is an int
MALFORMED = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
FULL, FORBIDDEN = (errno.ENOSPC, errno.EDQUOT), (errno.EACCES, errno.EPERM, errno.EROFS)
HINTS = {
    **dict.fromkeys(FULL, "Free some space and run the same command again."),
    **dict.fromkeys(FORBIDDEN, "Choose a folder that you may write to."),
    errno.EEXIST: "A file is in the way: choose another folder.",
    errno.ENOTDIR: "A file is in the way: choose another folder.",
    errno.EISDIR: "A folder is in the way: choose another name.",
}


def explain(error: OSError, folder: Path | None = None) -> str:
    """Return what the system said, and the way out; of a full disk how much of it is free."""
    hint = HINTS.get(error.errno or 0, "Run the same command again when that is solved.")
    if error.errno in FULL and folder is not None:
        with suppress(OSError):
            free = shutil.disk_usage(folder).free
            hint = f"{hint} The disk of {folder.resolve()} has {free / 2**20:,.1f} MB left."
    return f"{error.strerror or error}. {hint}"


# Writing.


def write_whole(path: Path, write: Callable[[Path], object], *, sync: bool = True) -> None:
    """Let ``write`` make a file or a folder under another name, and put it in place when complete.

    A process killed at any moment, a full disk or an error in ``write`` leave ``path`` as it was. A
    file takes the place of another at once. A folder cannot: the old one steps aside for a moment,
    and :func:`find_folder` knows where it is if that moment was the last one. Without ``sync`` that
    does not hold for a machine that loses its power: the file may be damaged then.
    """
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, escape(path.name), age=DAY)
        write(temporary)
        if temporary.is_dir():
            _swap_folder(temporary, path)
        else:
            if sync:
                with open(temporary, "r+b") as file:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
    except RegaugError:
        raise
    except OSError as error:
        raise FileError(f"Could not write {path}: {explain(error, path.parent)}") from error
    finally:
        _remove(temporary)
    if sync:
        sync_folder(path.parent)


def write_bytes(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file, all of it or nothing."""
    write_whole(path, lambda temporary: temporary.write_bytes(content), sync=sync)


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


def create_whole(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file unless there is one: of several processes the first one decides."""
    temporary = _temporary(path)
    with suppress(FileExistsError):
        try:
            append(temporary, content, sync=sync)
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # some disks have no links
            append(path, content, "xb", sync=sync)
        finally:
            _remove(temporary)


def write_link(path: Path, target: str) -> bool:
    """Make a symbolic link to a folder, or turn one that is there; say whether that is possible."""
    temporary = _temporary(path)
    try:
        temporary.symlink_to(target, target_is_directory=True)
        os.replace(temporary, path)
    except (OSError, NotImplementedError):  # Windows has them for those who may make them
        return False
    finally:
        _remove(temporary)
    return True


def append(path: Path, content: bytes, mode: str = "ab", *, sync: bool = True) -> None:
    """Put ``content`` on the disk at the end of a file, all of it, or leave the file as it was.

    Without ``sync`` other processes see it, and the disk has it soon. Errors are those of the
    system; what the file is, the caller knows.
    """
    # Closed every time: on network disks others see what was written before a close.
    with open(path, mode, buffering=0) as file:
        start = file.tell()
        try:
            left = memoryview(content)
            while left:  # once; an almost full disk takes a part, and fails the second time
                left = left[file.write(left) :]
            if sync:
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                file.truncate(start)
                if start == 0:
                    path.unlink()
            raise
    if sync and start == 0:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names of the files in a folder on the disk, where the system can do that."""
    with suppress(OSError):  # the files themselves are safe
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_exactly(path: Path, content: bytes) -> bool:
    """Remove a file if it still holds this; say whether nobody's is there now.

    Another process may replace it at the same time by one of its own, which then stays.
    """
    aside = _temporary(path)
    try:
        os.replace(path, aside)
        if not _holds(aside, content):
            os.replace(aside, path)
            return False
    except FileNotFoundError:
        return True
    except OSError:
        return False
    _remove(aside)
    return True


def _holds(path: Path, content: bytes) -> bool:
    with suppress(FileError):
        return read_regular(path) == content
    return False


def seconds_unchanged(path: Path) -> float:
    """Return for how long a file was not written, by the clock of the disk; infinity if it is gone.

    That may be the clock of another machine.
    """
    now = _temporary(path)
    try:
        now.touch()
        return now.stat().st_mtime - path.stat().st_mtime
    except FileNotFoundError:
        return math.inf
    finally:
        _remove(now)


def remove_leftovers(folder: Path, pattern: str, *, age: float = 0.0) -> None:
    """Remove what killed writers of files with such names left, if it is so many seconds old."""
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
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


# JSON.


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file whose content must be of this type, such as ``dict``."""
    try:
        value = parse_json(read_regular(path))
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"Could not read {path}: {error.strerror or error}.") from error
    if value is None:
        raise FileError(f"Could not read {path}: it is not a complete JSON file.")
    if not isinstance(value, kind):
        raise FileError(f"Could not read {path}: it must hold a {kind.__name__} at its top.")
    return value


def read_optional(
    path: Path, known: int, make: Callable[[dict[str, Any]], T], *, without: str
) -> T | None:
    """Read what a file of a study says, of this format; None if there is no such file.

    ``without`` says what happens if a file that cannot be used is deleted.
    """
    if not path.exists():
        return None
    try:
        values: dict[str, Any] = read_json(path, dict)
        check_format(path, values.get("format"), known, values.get("regaug"))
        return make(values)
    except (ArgumentError, FileError) as error:
        place = "" if isinstance(error, FileError) else f"Cannot use {path}: "
        reason = str(error)  # which may quote what is in the file
        reason = reason if len(reason) <= LONGEST else f"{reason[:LONGEST]} ..."
        raise StoreError(f"{place}{reason} Delete it, and {without}.") from error


def check_format(path: Path, found: object, known: object, version: object) -> None:
    """Refuse a file that another version of regaug wrote, by name."""
    if found != known:
        writer = f", written by regaug {version}," if version else ""
        raise FileError(
            f"Cannot use {path}: it has format {found}{writer} and this version reads format "
            f"{known}. Use the version that wrote it."
        )


def parse_json(text: str | bytes) -> object:
    """Return what a JSON text holds; None if it is not one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also for what is not UTF-8
        return None


def entry(values: Mapping[str, object], key: str, kind: type[T]) -> T:
    """Return ``values[key]`` if it is there and of this type."""
    if key not in values:
        raise DataError(f"`{key}` is missing.")
    value = values[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"`{key}` must be of type {kind.__name__}, got {value!r:.80}.")
    return value


def dump(value: object, *, sort_keys: bool = False) -> bytes:
    """Return plain values as one line of JSON."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
    return text.encode("ascii")


def seal(document: Mapping[str, object]) -> bytes:
    """Return a document as a line of JSON that ends with its checksum."""
    text = dump(document)[:-1]
    return text + b',"crc32":%d}\n' % zlib.crc32(text)  # one more entry at the end


def is_sealed(line: bytes) -> bool:
    """Return whether a line is as :func:`seal` made it."""
    text, _, rest = line.rpartition(b',"crc32":')
    return rest == b"%d}\n" % zlib.crc32(text)


def canonical(name: str, values: object) -> JSON:
    """Return the same dict for equal ones: 1 and 1.0 are the same; all numbers must be finite."""
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"`{name}` must be a dict, got {type(values).__name__}.")
    try:
        return _canonical(values, f"`{name}`")
    except RecursionError:
        raise ArgumentError(f"`{name}` must not contain itself or nest hundreds deep.") from None


def _canonical(value: object, place: str) -> JSON:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            hint = "Take None for what is not set."
            raise ArgumentError(f"{place} must be finite, got {value}. {hint}")
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, list | tuple):
        return [_canonical(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentTypeError(f"{place} must have strings as keys, got {key!r}.")
        return {key: _canonical(item, f"{place}[{key!r}]") for key, item in value.items()}
    raise ArgumentTypeError(
        f"{place} must be a number, a string, a bool, None, or a dict or list of them, got "
        f"{type(value).__name__}. Make it a number with .item(), or a list with .tolist()."
    )
