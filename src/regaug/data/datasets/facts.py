"""The table of data sets that have a name, ``datasets.toml``: their facts, loaders and files.

Adding one is adding an entry there. A loader is named by a string, so that a listing imports none
of them.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from regaug._registry import Registry
from regaug.data.base import Data, Info
from regaug.data.datasets.download import KINDS
from regaug.exceptions import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class File:
    """A known file.

    Attributes:
        checks: Kind of checksum to digest, see :func:`~regaug.data.datasets.download.download`.
        address: Where it is fetched from; None if it cannot be.
        size: Its bytes, where they are known.
        by_hand: How to get it without this library, in a sentence.
        elsewhere: A path that a package of the system gives it.
    """

    checks: Mapping[str, str]
    address: str | None = None
    size: int | None = None
    by_hand: str = ""
    elsewhere: str | None = None


@dataclass(frozen=True)
class Named:
    """A data set that has a name.

    Attributes:
        info: Its facts.
        loader: A function that returns the data; or ``"module:function"`` in
            ``regaug.data.datasets``.
        needs: Files or folders that it is read from; none if it needs no file.
        options: What the loader is always called with.
        note: A remark for a listing.
    """

    info: Info
    loader: str | Callable[..., Data]
    needs: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    note: str = ""


_OWN: dict[str, Named] = {}
FILES: dict[str, File] = {}
FOLDERS: dict[str, str] = {}  # that nobody but the user can get: path to how


def _add(name: str, entry: dict[str, Any]) -> None:
    by_hand, address, system = (entry.pop(key, "") for key in ("by_hand", "address", "system"))
    for path, known in entry.pop("files", {}).items():
        inner = path.partition("/")[2]
        FILES[path] = File(
            checks={kind: known[kind] for kind in KINDS if kind in known},
            address=f"{address}/{inner}" if address and "by_hand" not in known else None,
            size=known.get("size"),
            by_hand=known.get("by_hand", by_hand),
            elsewhere=f"{system}/{inner}" if system else None,
        )
    own = {key: entry.pop(key) for key in ("loader", "options", "note") if key in entry}
    needs = tuple(entry.pop("needs", ()))
    FOLDERS.update((path, by_hand) for path in needs if by_hand and path not in FILES)
    _OWN[name] = Named(Info(name, **entry), needs=needs, **own)


def _check(name: str, named: Named) -> None:
    if not isinstance(named, Named):
        raise ArgumentTypeError(f"`named` must be a regaug.data.Named, got {type(named).__name__}.")
    if named.info.name != name:
        raise ArgumentError(f"`info.name` must be {name!r}, got {named.info.name!r}.")


_TEXT = files(__package__).joinpath("datasets.toml").read_text("utf-8")
for _name, _entry in tomllib.loads(_TEXT).items():
    _add(_name, _entry)

DATASETS: Registry[Named] = Registry("data set", "regaug.datasets", _OWN, check=_check)
