"""Fetch one file and put it in place only when it is what it should be."""

import gzip
import hashlib
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from regaug._checks import check_choice
from regaug._files import write_whole
from regaug.exceptions import ArgumentError, DataError, DataNotFoundError, FileError

if TYPE_CHECKING:
    import requests
    from rich.progress import Progress


LIMIT = 200_000_000  # bytes of a file whose size is not declared
TIMEOUT = (10.0, 30.0)  # seconds to connect, and between two pieces
KINDS = ("sha256", "unpacked", "md5", "sha1", "gitblob")

_PIECE = 2**16
MOST_UNPACKED = 2**31  # bytes that a gzip file may hold


def download(address: str, target: Path, *, checks: Mapping[str, str], limit: int = LIMIT) -> Path:
    """Fetch a file, verify it, and put it in place in one step.

    Whatever goes wrong (no network, a cut connection, too many bytes, another content, Ctrl-C),
    ``target`` is as it was before and nothing else is left behind. Several processes may fetch the
    same file at once. A progress bar is shown on a terminal. ``checks`` says what it must be, at
    least one kind to hexadecimal digest: ``sha256``, ``md5``, ``sha1``, ``gitblob``, the name git
    gives a file, or ``unpacked``, the sha256 of what a gzip file holds (packed anew it has other
    bytes); ``limit`` is the most bytes it may have.
    """
    if not checks:
        raise ArgumentError("`checks` must hold at least one checksum, got none.")

    def fetch(partial: Path) -> None:
        _stream(address, partial, target.name, limit)
        verify(partial, checks, origin=address)

    try:
        write_whole(target, fetch)
    except FileError as error:
        # Windows: another process fetched the same file first, and someone is reading it.
        if isinstance(error.__cause__, PermissionError) and target.is_file():
            verify(target, checks)
            return target
        message = f"{error} Set REGAUG_CACHE to a folder that you can write to."
        raise DataNotFoundError(message) from error
    return target


def digest(path: Path, kind: str) -> str:
    """Return the checksum of a file, in hexadecimal; the kinds are those of :func:`download`."""
    check_choice("kind", kind, KINDS)
    algorithm = {"gitblob": "sha1", "unpacked": "sha256"}.get(kind, kind)
    summed = hashlib.new(algorithm, usedforsecurity=False)
    if kind == "gitblob":
        summed.update(b"blob %d\0" % path.stat().st_size)
    try:
        with gzip.open(path) if kind == "unpacked" else path.open("rb") as file:
            while piece := file.read(_PIECE):
                summed.update(piece)
                if file.tell() > MOST_UNPACKED:
                    break
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return "not of a gzip file"
    return summed.hexdigest()


def verify(path: Path, checks: Mapping[str, str], *, origin: str | None = None) -> None:
    """Raise an error if a file does not have these checksums."""
    for kind, expected in checks.items():
        found = digest(path, kind)
        if found != expected.lower():
            raise DataError(
                f"{origin or path} is not the file that was expected: its {kind} is {found}, it "
                f"must be {expected} ({path.stat().st_size} bytes came). It was not kept."
            )


def _stream(address: str, partial: Path, name: str, limit: int) -> None:
    import pooch
    import requests

    def close_later(response: "requests.Response", *_: object, **__: object) -> None:
        opened.callback(response.close)  # pooch leaves a connection open when writing fails

    # Asking for the bytes as they are stored: some servers send a .gz file as "compressed text".
    options = {"headers": {"Accept-Encoding": "identity"}, "hooks": {"response": close_later}}
    try:
        with ExitStack() as opened:
            file = opened.enter_context(partial.open("xb"))
            bar = opened.enter_context(_progress_bar(name))
            fetch = pooch.HTTPDownloader(bar, _PIECE, timeout=TIMEOUT, **options)
            fetch(address, _LimitedFile(file, limit, address), None)
    except requests.RequestException as error:
        raise DataNotFoundError(f"Could not fetch {address}: {_reason(error)}.") from error


def _reason(error: "requests.RequestException") -> str:
    """Say plainly what an error of requests means; its own words can fill a screen."""
    import requests

    told = " ".join(str(error).split())
    if error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout) or "timed out" in told:
        return "the server did not answer in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection was cut"
    if type(error) is requests.ConnectionError:
        return "no connection to the server"
    return told


class _LimitedFile:
    """A file that refuses to grow beyond a number of bytes."""

    def __init__(self, file: IO[bytes], limit: int, address: str) -> None:
        self.file, self.limit, self.address, self.size = file, limit, address, 0

    def write(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self.limit:
            raise DataError(
                f"{self.address} is larger than the {self.limit} bytes that were expected. "
                "It was not kept."
            )
        self.file.write(piece)

    def flush(self) -> None:
        self.file.flush()


class _Bar:
    """A bar of rich behind the four names that pooch asks a progress bar for."""

    def __init__(self, progress: "Progress", name: str) -> None:
        self.progress, self.task, self.total = progress, progress.add_task(name, total=None), 0

    def update(self, size: int) -> None:
        self.progress.update(self.task, advance=size, total=self.total or None)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        self.progress.refresh()


@contextmanager
def _progress_bar(name: str) -> Iterator[_Bar | None]:
    """Show a progress bar if a person is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, name)
