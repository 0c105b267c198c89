"""Unpack archives without trusting what they say."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from stat import S_ISLNK
from typing import IO
from uuid import uuid4

from regaug.exceptions import DataError

UNPACKED_LIMIT = 2_000_000_000

_UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, RuntimeError),
)


def unpack(archive: Path, folder: Path, *, limit: int = UNPACKED_LIMIT) -> list[Path]:
    """Unpack a zip or tar archive into a folder, trusting none of the names in it.

    An archive with a name that leads out of the folder, a link, a device, or more bytes than
    ``limit`` is refused before anything is written. Files appear only after all could be read.

    Args:
        archive: A zip file or a tar file, compressed or not.
        folder: Where the files go; it is made.
        limit: Most bytes the files may have together.

    Returns:
        The paths of the files.
    """
    temporary = folder.parent / f".{folder.name}.{uuid4().hex}.part"
    try:
        with _open_archive(archive) as opened:
            names = _safe_names(archive, opened, limit)
            for name in names:
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                with _open_member(opened, name) as source, (temporary / name).open("xb") as file:
                    shutil.copyfileobj(source, file)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).replace(folder / name)
    except _UNREADABLE as error:
        raise DataError(f"{archive} cannot be unpacked: {error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return [folder / name for name in names]


def _open_archive(archive: Path) -> "zipfile.ZipFile | tarfile.TarFile":
    # Tar first: a tar file that ends with a zip file looks like a zip file from behind.
    if tarfile.is_tarfile(archive):
        return tarfile.open(archive)
    if zipfile.is_zipfile(archive):
        return zipfile.ZipFile(archive)
    raise DataError(f"{archive} is neither a zip nor a tar archive.")


def _safe_names(
    archive: Path, opened: "zipfile.ZipFile | tarfile.TarFile", limit: int
) -> list[str]:
    """Return the names of the files in an archive, or refuse all of it."""
    names: dict[str, None] = {}
    total = 0
    for name, size, is_plain in _members(opened):
        total += size
        if not is_plain or _leads_out(name) or name in names:
            raise DataError(f"{archive} holds {name!r}, which is not a plain file; not unpacked.")
        if total > limit:
            raise DataError(f"{archive} holds more than {limit} bytes; not unpacked.")
        names[name] = None
    return list(names)


def _members(opened: "zipfile.ZipFile | tarfile.TarFile") -> Iterator[tuple[str, int, bool]]:
    """Yield name, size and whether it is a plain file, for all but folders."""
    if isinstance(opened, tarfile.TarFile):
        for member in opened:
            if not member.isdir() or _leads_out(member.name):
                yield member.name, member.size, member.isreg()
        return
    for entry in opened.infolist():
        if not entry.is_dir() or _leads_out(entry.filename):
            yield entry.filename, entry.file_size, not S_ISLNK(entry.external_attr >> 16)


def _leads_out(name: str) -> bool:
    windows = PureWindowsPath(name)
    parts = {*PurePosixPath(name).parts, *windows.parts}
    return name.startswith(("/", "\\")) or bool(windows.drive) or ".." in parts


def _open_member(opened: "zipfile.ZipFile | tarfile.TarFile", name: str) -> IO[bytes]:
    if isinstance(opened, zipfile.ZipFile):
        return opened.open(name)
    file = opened.extractfile(name)
    if file is None:
        raise DataError(f"{name!r} in the archive cannot be read.")
    return file
