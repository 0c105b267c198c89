"""The store of a study: a folder of JSON lines, one for every finished run, a file per writer."""

import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from regaug._files import JSON, append, canonical, create_whole, dump, explain, is_sealed, seal
from regaug._regular import open_regular, read_regular
from regaug._version import __version__
from regaug.exceptions import ArgumentTypeError, FileError, RegaugError, StoreError
from regaug.runs.record import RunRecord
from regaug.runs.run import run_key
from regaug.training.state import pack, unpack

FORMAT = 2
STUDY = "study.json"
RUNS = re.compile(r"runs-.*\.jsonl")
SHOWN = 4  # differences in an error
# Bytes of the longest line that is read; predictions that a record keeps are a hundredth of that.
LONGEST = 2**26
UNSET = object()
PATIENCE = 2.0  # seconds for another process to finish study.json, where links do not exist
WAY_OUT = "Give another folder (--out), or delete that one to start anew."
Differ = Callable[[Any, Any], list[str]]
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True)
class Described:
    """What ``study.json`` says of a study: what it is, what else is kept with it, who began it."""

    configuration: Mapping[str, JSON]
    about: Mapping[str, JSON]
    version: str = ""


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
            mixed, so everything belongs in it that all the runs have in common.
        about: What else is kept with it, plain values; whoever comes first decides.
        differ: Says in words what two configurations differ in, for an error; nothing if they are
            the same.
    """

    def __init__(
        self,
        folder: str | Path,
        configuration: Mapping[str, JSON],
        *,
        about: Mapping[str, JSON] | None = None,
        differ: Differ | None = None,
    ) -> None:
        self.folder = Path(folder)
        try:
            _create(self.folder, configuration, about or {})
        except OSError as error:
            raise _failed("write to", self.folder, error) from error
        described = read_study(self.folder)
        self.configuration, self.version = described.configuration, described.version
        _check_same(self.configuration, configuration, self.folder, differ or _differences)
        self.origins: dict[str, str] = {}  # of the records that the last call has read
        self._files: dict[str, _RunFile] = {}
        self._own: Path | None = None

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open a store that exists, whatever its study is."""
        return cls(folder, read_study(Path(folder)).configuration)

    def add(self, record: RunRecord, *, origin: str = "") -> None:
        """Write down a finished run; when this returns it is on the disk.

        ``origin`` says what decides everything about it: see :mod:`regaug.runs.sharing`.
        """
        values, tensors = pack("record", record.to_dict())
        if tensors:
            place = min(tensors)
            raise ArgumentTypeError(f"`record` must hold no tensors, got a Tensor at {place}.")
        head = {"format": FORMAT, "key": record.run.key, **({"origin": origin} if origin else {})}
        line = seal({**head, "record": values})
        # After a failure the next line goes to another file: behind a cut one it would be lost.
        own, self._own = self._own_file(), None
        try:
            append(own, line)
        except OSError as error:
            raise _failed("write to", self.folder, error) from error
        self._own = own

    def records(self) -> dict[str, RunRecord]:
        """Return the finished runs of all writers by key.

        Of several runs with one key the first counts, in the order of the files' names and, within
        a file, of the lines. Only what is new since the last call is read.
        """
        try:
            names = sorted(filter(RUNS.fullmatch, os.listdir(self.folder)))
            self._files = {name: self._files.get(name) or _RunFile() for name in names}
            for name, file in self._files.items():
                with suppress(FileNotFoundError):  # its first line failed just now
                    file.read_on(self.folder / name)
        except OSError as error:
            raise _failed("read", self.folder, error) from error
        found: dict[str, RunRecord] = {}
        self.origins = {}
        for file in self._files.values():
            for record, origin in file.records:
                if record.run.key not in found and origin:
                    self.origins[record.run.key] = origin
                found.setdefault(record.run.key, record)
        return found

    def written(self) -> Iterator[tuple[str, RunRecord]]:
        """Give the records that the last call has read, each with the machine that wrote it."""
        for name, file in self._files.items():
            host = name.removeprefix("runs-").rsplit("-", 2)[0]
            yield from ((host, record) for record, _ in file.records)

    def done(self) -> set[str]:
        """Return the keys of all finished runs."""
        return set(self.records())

    @property
    def damaged(self) -> list[str]:
        """A message for every line that the last :meth:`records` or :meth:`done` left out.

        A last line without its end counts: its writer was killed, or is still writing it; then the
        next call finds it.
        """
        files = self._files.items()
        return [f"{name}, {place}" for name, file in files for place in file.damaged()]

    def _own_file(self) -> Path:
        """Return this process's file; a forked or unpickled store has a file of its own."""
        host = re.sub("[^A-Za-z0-9.]", "-", socket.gethostname())[:40]
        prefix = f"runs-{host}-{os.getpid()}-"
        if self._own is None or not self._own.name.startswith(prefix):
            self._own = self.folder / f"{prefix}{secrets.token_hex(8)}.jsonl"
        return self._own


class _RunFile:
    """What has been read of one file so far."""

    def __init__(self) -> None:
        self.records: list[tuple[RunRecord, str]] = []  # each with its origin
        self._bad: list[str] = []
        self._offset = self._lines = 0
        self._is_cut = self._has_ended = False

    def read_on(self, path: Path) -> None:
        if self._has_ended:
            return
        try:
            file = open_regular(path, buffering=2**20)
        except FileError:
            self._end("is not a regular file and is left out")
            return
        with file:
            file.seek(self._offset)
            self._is_cut = False
            while line := file.readline(LONGEST):
                if not line.endswith(b"\n"):
                    self._is_cut = len(line) < LONGEST
                    if not self._is_cut:
                        place = f"line {self._lines + 1} is longer than {LONGEST:,} bytes"
                        self._end(f"{place}; it and what follows are left out")
                    break
                self._offset += len(line)
                self._lines += 1
                parsed = _parse(line)
                if isinstance(parsed, str):
                    self._bad.append(f"line {self._lines} is {parsed}; its run is done again")
                else:
                    self.records.append(parsed)

    def _end(self, reason: str) -> None:
        self._bad.append(reason)
        self._has_ended = True

    def damaged(self) -> list[str]:
        cut = [f"line {self._lines + 1} is cut; its run is done again"] if self._is_cut else []
        return self._bad + cut


def _parse(line: bytes) -> tuple[RunRecord, str] | str:
    """Return the record of a complete line and its origin, or what is wrong with it."""
    try:
        values = json.loads(line.decode("ascii"))
        # Looking at every object takes longer than all the rest, and hardly a line needs it.
        if b'"$' in line:
            values = unpack(values, {})
        found = values["format"]
        if found != FORMAT:
            return f"of format {found!r:.20}, which another version of regaug wrote"
        record = RunRecord.from_dict(values["record"])
        is_whole = is_sealed(line) and record.run.key == values["key"]
    except (*MALFORMED, RegaugError):
        return "damaged"
    return (record, str(values.get("origin", ""))) if is_whole else "damaged"


def _create(folder: Path, configuration: Mapping[str, JSON], about: Mapping[str, JSON]) -> None:
    """Put study.json in place, at once and whole, unless there is one."""
    file, head = folder / STUDY, {"format": FORMAT, "regaug": __version__}
    known = {**({"about": about} if about else {}), "configuration": configuration}
    document = {**head, "key": run_key(configuration), **known}
    content = json.dumps(document, indent=2, default=dict).encode("ascii") + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    # In this order: study.json is older than all runs, so another process cannot come in between.
    runs = list(filter(RUNS.fullmatch, os.listdir(folder)))
    if file.exists():
        return
    if runs:
        raise StoreError(
            f"The folder {folder} holds runs ({min(runs)}) of a study that is not known, since "
            f"{STUDY} is missing. {WAY_OUT}"
        )
    create_whole(file, content)


def read_study(folder: Path) -> Described:
    """Return what a folder says of its study."""
    file, end = folder / STUDY, time.monotonic() + PATIENCE
    try:
        # Where disks have no links, another process may be in the middle of writing it.
        while not (text := read_regular(file)).endswith(b"}\n") and time.monotonic() < end:
            time.sleep(0.01)
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"There is no study in {folder}: {STUDY} is missing. Check the name of the folder."
        ) from None
    except FileError as error:
        raise StoreError(f"{error} {WAY_OUT}") from error
    except OSError as error:
        raise _failed("read", folder, error) from error
    try:
        document = json.loads(text.decode("ascii"))
        found, configuration = document["format"], document["configuration"]
        if found == FORMAT and document["key"] != run_key(configuration):
            raise ValueError("the content is not what was written")
    except MALFORMED as error:
        raise StoreError(f"Cannot use the store {folder}: {STUDY} is damaged. {WAY_OUT}") from error
    if found != FORMAT:
        raise StoreError(
            f"Cannot use the store {folder}: it has format {found!r}, written by regaug "
            f"{document.get('regaug')}, and this version reads format {FORMAT}. {WAY_OUT[:-1]}; "
            "the version that wrote it can still read it."
        )
    about = document.get("about")
    kept = about if isinstance(about, dict) else {}
    return Described(dict(configuration), kept, str(document.get("regaug", "")))


def is_same(saved: Mapping[str, JSON], now: Mapping[str, JSON]) -> bool:
    """Tell whether two configurations are of one study."""
    return run_key(saved) == run_key(now)


def _check_same(
    saved: Mapping[str, JSON], now: Mapping[str, JSON], folder: Path, differ: Differ
) -> None:
    """Refuse to mix the runs of two studies."""
    if is_same(saved, now):
        return
    listed = differ(canonical("configuration", saved), canonical("configuration", now))
    more = f"; and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    raise StoreError(
        f"The folder {folder} holds another study: {'; '.join(listed[:SHOWN])}{more}. {WAY_OUT}"
    )


def _differences(was: Any, now: Any, place: str = "") -> list[str]:
    if isinstance(was, list) and isinstance(now, list):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(key, was.get(key, UNSET), now.get(key, UNSET)) for key in now | was]
        return [text for key, a, b in pairs for text in _differences(a, b, f"{place}.{key}")]
    old, new = ("not set" if value is UNSET else dump(value).decode() for value in (was, now))
    return [] if old == new else [f"{place[1:]} was {old:.60} and is {new:.60}"]


def _failed(action: str, folder: Path, error: OSError) -> StoreError:
    return StoreError(f"Could not {action} the store {folder}: {explain(error, folder)}")
