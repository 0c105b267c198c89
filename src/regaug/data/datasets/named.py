"""Data sets by name: load one, say where it is, fetch it."""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path

from regaug._registry import lookup
from regaug.data.base import Data, Info
from regaug.data.datasets.facts import DATASETS, Named
from regaug.data.datasets.files import by_hand, fetchable, locate
from regaug.exceptions import DataNotFoundError

NAMES = tuple(DATASETS)


def load(name: str, **options: object) -> Data:
    """Load a data set by its name; its files are fetched if they are not here and can be.

    Args:
        name: One of ``NAMES``.
        options: Options of its loader, such as ``fold="B"`` of povertymap, ``path=...``, or ``n``,
            ``noise`` and ``seed`` of the synthetic ones.

    Example:
        >>> data = load("synthetic-sine", n=100)
        >>> len(data), len(data.split(seed=0).train)
        (100, 60)
    """
    named = _lookup(name)
    module, _, function = named.loader.partition(":")
    loader: Callable[..., Data] = getattr(import_module(f"regaug.data.datasets.{module}"), function)
    known = {key: None for key in signature(loader).parameters if key not in named.options}
    for option in options:
        lookup(f"option of {name}", option, known)
    return loader(**named.options, **options)


def info(name: str) -> Info:
    """Return the facts about a data set; its files need not be here.

    Example:
        >>> info("crimes").groups
        'state'
    """
    return _lookup(name).info


def where(name: str) -> Path | None:
    """Return the file or folder a data set is read from, None if it is not on this disk.

    None also for those that need no file: see :func:`is_here`.
    """
    try:
        paths = [locate(needed, fetch=False) for needed in _lookup(name).needs]
    except DataNotFoundError:
        return None
    return paths[0] if paths else None


def is_here(name: str) -> bool:
    """Whether a data set can be loaded without a download."""
    return not _lookup(name).needs or where(name) is not None


def fetch(name: str) -> list[Path]:
    """Fetch what a data set needs and is not here; return the paths of all it needs.

    One that cannot be fetched raises an error that says how to get it by hand.
    """
    return [locate(needed) for needed in _lookup(name).needs]


def how(name: str) -> str:
    """Say in a sentence how a data set is got."""
    named = _lookup(name)
    way = ""
    if named.needs:
        can_fetch = all(fetchable(needed) for needed in named.needs)
        way = f"regaug data fetch {name}" if can_fetch else by_hand(named.needs[0])
    return "; ".join(filter(None, (way, named.note)))


def _lookup(name: str) -> Named:
    return lookup("data set", name, DATASETS)
