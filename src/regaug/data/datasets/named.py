"""Data sets by name: load one, say where it is, fetch it."""

from collections.abc import Callable, KeysView
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TypeAlias, cast

from regaug._registry import lookup
from regaug.data.base import Data, Info
from regaug.data.datasets.facts import DATASETS, Named
from regaug.data.datasets.files import by_hand, fetchable, locate
from regaug.exceptions import DataNotFoundError

_Loader: TypeAlias = Callable[..., Data]
NAMES: KeysView[str] = DATASETS.keys()  # always those that are known


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
    loader = named.loader
    if isinstance(loader, str):
        module, _, function = loader.partition(":")
        loader = cast(_Loader, getattr(import_module(f"regaug.data.datasets.{module}"), function))
    known = {key: None for key in signature(loader).parameters if key not in named.options}
    for option in options:
        lookup(f"option of {name}", option, known)
    return loader(**named.options, **options)


def register(name: str, named: Named, *, replace: bool = False) -> None:
    """Make a data set of your own known by a name, to :func:`load`, problems and the command line.

    Worker processes know it too, if its loader is defined in a module that they can import. A
    package makes its data sets known in every process by entry points in the group
    ``regaug.datasets``, each a :class:`Named` under its name.

    Args:
        name: Lower-case letters, digits and dashes; the same as in the facts.
        named: The facts, and a function that returns the data.
        replace: Take the place of a data set of that name; otherwise it is refused.

    Example:
        >>> from regaug.data import ArrayData
        >>> facts = Info("squares", task="table", metric="rmse", split="At random.")
        >>> def load_squares():
        ...     return ArrayData([[float(i)] for i in range(50)], range(50), info=facts)
        >>> register("squares", Named(facts, load_squares))  # doctest: +SKIP
        >>> len(load("squares"))  # doctest: +SKIP
        50
    """
    DATASETS.register(name, named, replace=replace)


def info(name: str) -> Info:
    """Return the facts about a data set; its files need not be here.

    Example:
        >>> info("crimes").groups
        'state'
    """
    return _lookup(name).info


def where(name: str) -> Path | None:
    """Return the file or folder a data set is read from, None if it is not on this disk.

    None also for those that need no file: see :func:`~regaug.data.datasets.named.is_here`.
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
