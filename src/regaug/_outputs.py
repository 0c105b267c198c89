"""What may be written over: an input never, own output again, anything else by force alone."""

import errno
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from regaug._files import explain
from regaug._regular import open_regular
from regaug.exceptions import ArgumentError, FileError, OverwriteError, RegaugError

# How a page or a picture says who wrote it, near its beginning or its end.
MARK = "made by regaug"
_MARKS = (MARK.encode(), b'<meta name="generator" content="regaug')
_LOOKED_AT = 2**16
# What is where something is to be written.
Replaced = Literal["nothing", "own", "other"]


@dataclass(frozen=True)
class Output:
    """A file or a folder that is to be written; making one says whether it may be.

    It is made before the work starts, so that nobody waits for a refusal, and :meth:`check` is
    called again before it is written.

    Attributes:
        path: Where to; ``~`` is the user's own folder.
        inputs: Files and folders that are read: none of them is written over, nor what lies in one
            of the folders. They are recognized whatever they are called: by a link, another case,
            a relative path.
        force: Whether to replace what regaug has not written; None if nobody can ask for that.
        name: What the user calls it: ``--out``, or an argument.
        endings: Those that its name may have; any if there are none.
        holds: Names of the files of a folder: one with anything else in it is never replaced. None
            for a file.
        is_own: Tells whether regaug has written what is there; None if that cannot be told.
        replaces: What was there when this was made.
    """

    path: Path
    inputs: Sequence[str | Path] = ()
    force: bool | None = False
    name: str = "path"
    endings: Sequence[str] = ()
    holds: Collection[str] | None = None
    is_own: Callable[[Path], bool] | None = field(default=None, repr=False)
    replaces: Replaced = field(default="nothing", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser())
        if self.endings and self.path.suffix.lower() not in self.endings:
            *first, last = self.endings
            listed = f"{', '.join(first)} or {last}" if first else last
            raise ArgumentError(f"`{self.name}` must end in {listed}, got {str(self.path)!r}.")
        object.__setattr__(self, "replaces", self.check())

    def check(self) -> Replaced:
        """Say what is there now, or refuse to replace it."""
        try:
            _check_parent(self.path)
            return self._look() if os.path.lexists(self.path) else "nothing"
        except RegaugError:
            raise
        except OSError as error:
            raise FileError(f"Could not write {self.path}: {explain(error)}") from error

    def _look(self) -> Replaced:
        for source in self.inputs:
            if is_part_of(self.path, source):
                raise self._refuse("not be what is read", f"got {self._say(source)}")
        if self.path.is_dir() and self.holds is not None:
            names = sorted(os.listdir(self.path))
            if not names:
                return "nothing"
            if others := [name for name in names if name not in self.holds]:
                came = f"got {self.path}, which holds something else ({others[0]})"
                raise self._refuse("be a new folder, or one that regaug has written", came)
        elif self.path.is_dir() or self.holds is not None:
            wanted, came = ("folder", "file") if self.holds is not None else ("file", "folder")
            raise self._refuse(f"be a {wanted}", f"got the {came} {self.path}")
        if self.is_own is not None and self.is_own(self.path):
            return "own"
        if not self.force:
            came = f"got {self.path}, which is there and may not be regaug's own"
            hint = ", or replace it: --force" if self.name.startswith("-") else ", or force=True"
            raise self._refuse("be new", came, "" if self.force is None else hint)
        return "other"

    @property
    def remark(self) -> str:
        """What is to be said of what was there, in a sentence; empty if nothing was."""
        if self.replaces == "own":
            return "It replaces the one that regaug wrote before."
        return "It replaces what was there." if self.replaces == "other" else ""

    def _refuse(self, must: str, came: str, way_out: str = "") -> OverwriteError:
        return OverwriteError(f"`{self.name}` must {must}, {came}. Name another{way_out}.")

    def _say(self, source: str | Path) -> str:
        if str(self.path) == str(source):
            return str(source)
        is_inside = Path(source).expanduser().is_dir()
        return f"{self.path}, which {'lies in' if is_inside else 'is'} {source}"


def _check_parent(path: Path) -> None:
    """Find out before the work, not after it, that nothing can be written there."""
    parent = next(place for place in path.absolute().parents if place.exists())
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def is_free(folder: Path) -> bool:
    """Tell whether nothing is there but what a killed writer may have left."""
    if not folder.is_dir():
        return not os.path.lexists(folder)
    return all(name.startswith(".") for name in os.listdir(folder))


def check_own_folder(folder: Path, mark: str, *, name: str = "out") -> None:
    """Refuse a folder that holds something and lacks the file that says it is regaug's."""
    if not is_free(folder) and not (folder / mark).exists():
        raise OverwriteError(
            f"`{name}` must not hold other things, got {folder}, which does and lacks {mark}. Name "
            "another."
        )


def has_mark(path: Path) -> bool:
    """Tell whether a page or a picture says that regaug has written it."""
    try:
        with open_regular(path) as file:
            start = file.read(_LOOKED_AT)
            file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - _LOOKED_AT))
            end = file.read()
    except OSError:  # nobody may read it, or it is gone: then nobody can tell
        return False
    return any(mark in part for mark in _MARKS for part in (start, end))


def is_part_of(path: Path, source: str | Path) -> bool:
    """Tell whether a path leads to a file or folder, or into that folder, whatever it is called."""
    source = Path(source).expanduser()
    if not source.exists():
        return False
    places = [path, *path.resolve().parents] if source.is_dir() else [path]
    return any(place.exists() and os.path.samefile(place, source) for place in places)
