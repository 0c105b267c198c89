"""Opening files that nobody vouches for: regular ones only, and no more of them than fits.

Reading a pipe waits for whoever writes to it, and a device such as ``/dev/zero`` never ends.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from regaug.exceptions import FileError

# More than any document of a study or a model has; a file may claim any size and be empty.
MOST_BYTES = 2**28


def open_regular(path: Path, *, buffering: int = -1) -> BinaryIO:
    """Open a file for reading; errors are those of the system, and a ``FileError`` for others.

    Example:
        >>> open_regular(Path("/dev/null"))
        Traceback (most recent call last):
        regaug.exceptions.FileError: Cannot use /dev/null: it is not a regular file. Remove it.
    """
    # Without waiting for a writer, should it be a pipe; regular files know no waiting.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileError(f"Cannot use {path}: it is not a regular file. Remove it.")
        return os.fdopen(descriptor, "rb", buffering=buffering)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what is in a file, of at most so many bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1) if size <= most else b""
    if max(size, len(content)) > most:
        raise FileError(
            f"Cannot use {path}: it must have at most {most:,} bytes, got {size:,}, so regaug did "
            "not write it."
        )
    return content


_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines
