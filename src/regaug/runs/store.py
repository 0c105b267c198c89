"""The store of a study: a folder of JSON lines, one for every finished run, a file per writer."""

import hashlib
import json
import math
import os
import re
import secrets
import socket
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from regaug._version import __version__
from regaug.exceptions import ArgumentError, ArgumentTypeError, StoreError
from regaug.training.state_files import HINTS

FORMAT = 1
STUDY = "study.json"
RUNS = re.compile(r"runs-.*\.jsonl")
SHOWN = 4  # differences in an error
UNSET = object()
PATIENCE = 2.0  # seconds for another process to finish study.json, where links do not exist
WAY_OUT = "Give another folder (--out), or delete that one to start anew."
MALFORMED = (AttributeError, LookupError, TypeError, ValueError, RecursionError)


def run_key(configuration: Mapping[str, Any]) -> str:
    """Return a name for a configuration that is the same in every process and on every machine.

    Equal configurations have equal keys: the order of the entries does not count, a tuple is the
    list of its items, and numbers that are equal are the same (1 and 1.0, but not 1 and True).

    Args:
        configuration: Dicts with strings as keys, lists and tuples of finite numbers, strings,
            bools and None, nested at will.

    Returns:
        32 hexadecimal digits.

    Example:
        >>> run_key({"method": "foma", "batch_size": 32})
        '65b332f4f4e8b2e345154b3d96a9ab3d'
        >>> run_key({"seed": 1, "rho": (0.5, 1)}) == run_key({"rho": [0.5, 1.0], "seed": 1})
        True
    """
    text = _dump(_comparable(configuration), sort_keys=True)
    return hashlib.sha256(text).hexdigest()[:32]


@dataclass(frozen=True)
class StoredRun:
    """One finished run: its key, its configuration and what came out."""

    key: str
    run: Mapping[str, Any]
    result: Mapping[str, Any]


class Store:
    """The finished runs of one study, in a folder that several processes and machines may share.

    ``study.json`` says which study it is; whoever comes first writes it, and everyone else must
    have the same configuration. Each process appends to a file of its own, ``runs-*.jsonl``, and
    reads all of them. A process killed at any moment leaves at most one cut line, at the end of its
    file: a line that is cut or was changed is reported and left out, and so its run is done again.

    A store may be sent to another process. Threads of one process must take turns.

    Args:
        folder: Where the files are; made if it is not there. It may hold other files too.
        configuration: What the study is, as :func:`run_key` takes it; runs of two studies are not
            mixed, so everything belongs in it that all the runs have in common. Kept under the
            same name, as it was written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> store = Store(folder, {"data": "houses.csv", "seed": 0})
        >>> run = {"method": "foma", "split": 3}
        >>> store.add(run_key(run), run, {"rmse": 0.25})
        >>> [(done.run["method"], done.result) for done in store.results().values()]
        [('foma', {'rmse': 0.25})]
        >>> Store.open(folder).configuration
        {'data': 'houses.csv', 'seed': 0}
    """

    def __init__(self, folder: str | Path, configuration: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        content = _study(configuration)
        try:
            _create(self.folder, content)
        except OSError as error:
            raise _failed("write to", self.folder, error) from error
        self.configuration = _read_study(self.folder)
        _check_same(self.configuration, configuration, self.folder)
        self._files: dict[str, _RunFile] = {}
        self._own: Path | None = None

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open a store that exists, whatever its study is."""
        return cls(folder, _read_study(Path(folder)))

    def add(self, key: str, run: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Write down a finished run; when this returns it is on the disk.

        Args:
            key: What tells it from all other runs, such as ``run_key(run)``.
            run: The configuration of the run.
            result: What came out. It and ``run`` are made as in :func:`run_key`, but may hold NaN
                and infinity; a tuple is read back as a list.
        """
        if not isinstance(key, str):
            raise ArgumentTypeError(f"`key` must be a string, got {key!r}.")
        values = {"run": _plain_dict("run", run), "result": _plain_dict("result", result)}
        text = _dump({"format": FORMAT, "key": key, **values})[:-1]
        line = text + b',"crc32":%d}\n' % zlib.crc32(text)  # one more entry at the end
        # After a failure the next line goes to another file: behind a cut one it would be lost.
        own, self._own = self._own_file(), None
        try:
            _append(own, line, "ab")
        except OSError as error:
            raise _failed("write to", self.folder, error) from error
        self._own = own

    def results(self) -> dict[str, StoredRun]:
        """Return the finished runs of all writers by key.

        Of several runs with one key the first counts, in the order of the files' names and, within
        a file, of the lines. Only what is new since the last call is read.
        """
        try:
            names = sorted(name for name in os.listdir(self.folder) if RUNS.fullmatch(name))
            self._files = {name: self._files.get(name) or _RunFile() for name in names}
            for name, file in self._files.items():
                with suppress(FileNotFoundError):  # its first line failed just now
                    file.read_on(self.folder / name)
        except OSError as error:
            raise _failed("read", self.folder, error) from error
        found: dict[str, StoredRun] = {}
        for file in self._files.values():
            for run in file.runs:
                found.setdefault(run.key, run)
        return found

    def done(self) -> set[str]:
        """Return the keys of all finished runs."""
        return set(self.results())

    @property
    def damaged(self) -> list[str]:
        """A message for every line that the last :meth:`results` or :meth:`done` left out.

        A last line without its end counts: its writer was killed, or is still writing it; then the
        next call finds it.
        """
        files = self._files.items()
        return [f"{name}, {place}" for name, file in files for place in file.damaged()]

    def _own_file(self) -> Path:
        """Return this process's file; a forked or unpickled store has a file of its own."""
        prefix = f"runs-{_process()}-"
        if self._own is None or not self._own.name.startswith(prefix):
            self._own = self.folder / f"{prefix}{secrets.token_hex(8)}.jsonl"
        return self._own


class _RunFile:
    """What has been read of one file so far."""

    def __init__(self) -> None:
        self.runs: list[StoredRun] = []
        self._bad: list[str] = []
        self._offset = self._lines = 0
        self._is_cut = False

    def read_on(self, path: Path) -> None:
        with open(path, "rb", buffering=2**20) as file:
            file.seek(self._offset)
            self._is_cut = False
            for line in file:
                if not line.endswith(b"\n"):
                    self._is_cut = True
                    break
                self._offset += len(line)
                self._lines += 1
                parsed = _parse(line)
                if isinstance(parsed, StoredRun):
                    self.runs.append(parsed)
                else:
                    self._bad.append(f"line {self._lines} is {parsed}; its run is done again")

    def damaged(self) -> list[str]:
        cut = [f"line {self._lines + 1} is cut; its run is done again"] if self._is_cut else []
        return self._bad + cut


def _parse(line: bytes) -> StoredRun | str:
    """Return the run of a complete line, or what is wrong with it."""
    text, _, rest = line.rpartition(b',"crc32":')
    is_intact = rest == b"%d}\n" % zlib.crc32(text)
    # Looking at every object takes longer than all the rest, and hardly a line needs it.
    hook = _decode if b'"$' in line else None
    try:
        values = json.loads(line.decode("ascii"), object_hook=hook)
        found = values["format"]
        if found != FORMAT:
            return f"of format {found!r:.20}, which another version of regaug wrote"
        run = StoredRun(values["key"], values["run"], values["result"])
    except MALFORMED:
        return "damaged"
    is_run = isinstance(run.key, str) and isinstance(run.run, dict) and isinstance(run.result, dict)
    return run if is_intact and is_run else "damaged"


def _decode(values: dict[str, Any]) -> Any:
    """Undo for one object what was done to NaN, infinity and keys that begin with a ``$``."""
    if "$float" in values:
        return float(values["$float"])
    return {key.removeprefix("$"): value for key, value in values.items()}


def _any_number(number: float, _: str) -> Any:
    return number if math.isfinite(number) else {"$float": str(float(number))}


def _same_number(number: float, place: str) -> float:
    """Return the whole number that a float is equal to, if there is one."""
    if not math.isfinite(number):
        raise ArgumentError(f"{place} must be finite, got {number}. Take None for what is not set.")
    return int(number) if number.is_integer() else float(number)


def _comparable(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return _plain_dict("configuration", configuration, _same_number)


def _plain_dict(
    name: str, values: Any, number: Callable[[float, str], Any] = _any_number
) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"`{name}` must be a dict, got {type(values).__name__}.")
    try:
        return dict(_plain(values, f"`{name}`", number))
    except RecursionError:
        raise ArgumentError(f"`{name}` must not contain itself or nest hundreds deep.") from None


def _plain(value: Any, place: str, number: Callable[[float, str], Any]) -> Any:
    """Return what JSON keeps as it is; ``number`` decides what becomes of a float."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return number(value, place)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}[{i}]", number) for i, item in enumerate(value)]
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(
            f"{place} must be a number, a string, a bool, None, or a dict or list of them, got "
            f"{type(value).__name__}. Make it a number with .item(), or a list with .tolist()."
        )
    for key in value:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"{place} must have strings as keys, got {key!r}.")
    # One more "$" tells a key that begins with it, such as a group's name, from a mark of ours.
    return {
        f"${key}" if key.startswith("$") else key: _plain(item, f"{place}[{key!r}]", number)
        for key, item in value.items()
    }


def _dump(plain: Any, **options: Any) -> bytes:
    return json.dumps(plain, allow_nan=False, separators=(",", ":"), **options).encode("ascii")


def _study(configuration: Mapping[str, Any]) -> bytes:
    """Return the content of study.json; a person may want to read it."""
    plain, key = _plain_dict("configuration", configuration), run_key(configuration)
    document = {"format": FORMAT, "regaug": __version__, "key": key, "configuration": plain}
    return json.dumps(document, indent=2).encode("ascii") + b"\n"


def _create(folder: Path, content: bytes) -> None:
    """Put study.json in place, at once and whole, unless there is one."""
    file = folder / STUDY
    folder.mkdir(parents=True, exist_ok=True)
    # In this order: study.json is older than all runs, so another process cannot come in between.
    runs = [name for name in os.listdir(folder) if RUNS.fullmatch(name)]
    if file.exists():
        return
    if runs:
        raise StoreError(
            f"The folder {folder} holds runs ({min(runs)}) of a study that is not known, since "
            f"{STUDY} is missing. {WAY_OUT}"
        )
    temporary = folder / f".study-{_process()}-{secrets.token_hex(8)}.tmp"
    with suppress(FileExistsError):  # of several processes the first one decides
        try:
            _append(temporary, content)
            os.link(temporary, file)
        except FileExistsError:
            raise
        except OSError:  # some disks have no links
            _append(file, content)
        finally:
            temporary.unlink(missing_ok=True)


def _read_study(folder: Path) -> dict[str, Any]:
    file, end = folder / STUDY, time.monotonic() + PATIENCE
    try:
        # Where disks have no links, another process may be in the middle of writing it.
        while not (text := file.read_bytes()).endswith(b"}\n") and time.monotonic() < end:
            time.sleep(0.01)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"There is no study in {folder}: {STUDY} is missing. Check the name of the folder."
        ) from None
    except OSError as error:
        raise _failed("read", folder, error) from error
    try:
        document = json.loads(text.decode("ascii"), object_hook=_decode)
        found, configuration = document["format"], document["configuration"]
        if found == FORMAT and document["key"] != run_key(configuration):
            raise ValueError("the content is not what was written")
    except MALFORMED as error:
        raise StoreError(f"Cannot use the store {folder}: {STUDY} is damaged. {WAY_OUT}") from error
    if found != FORMAT:
        raise StoreError(
            f"Cannot use the store {folder}: it has format {found!r}, written by regaug "
            f"{document.get('regaug')}, and this version reads format {FORMAT}. Use the version "
            "that wrote it, or give another folder (--out)."
        )
    return dict(configuration)


def _check_same(saved: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to mix the runs of two studies."""
    listed = _differences(_comparable(saved), _comparable(now))
    if listed:
        more = f"; and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
        raise StoreError(
            f"The store {folder} belongs to another study: {'; '.join(listed[:SHOWN])}{more}. "
            f"{WAY_OUT}"
        )


def _differences(was: Any, now: Any, place: str = "") -> list[str]:
    if isinstance(was, list) and isinstance(now, list):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(key, was.get(key, UNSET), now.get(key, UNSET)) for key in now | was]
        return [text for key, a, b in pairs for text in _differences(a, b, f"{place}.{key}")]
    old, new = ("not set" if value is UNSET else _dump(value).decode() for value in (was, now))
    return [] if old == new else [f"{place[1:]} was {old:.60} and is {new:.60}"]


def _failed(action: str, folder: Path, error: OSError) -> StoreError:
    hint = HINTS.get(error.errno or 0, "Run the same command again when that is solved.")
    return StoreError(f"Could not {action} the store {folder}: {error.strerror or error}. {hint}")


def _process() -> str:
    """Return a name for this process, among those of all machines, for a file name."""
    return f"{re.sub('[^A-Za-z0-9.]', '-', socket.gethostname())[:40]}-{os.getpid()}"


def _append(path: Path, content: bytes, mode: str = "xb") -> None:
    """Write all of ``content`` to the disk or leave the file as it was, if need be not there."""
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
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system can, and the file itself is safe
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
