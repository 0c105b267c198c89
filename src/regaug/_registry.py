"""From a name to the thing it names, with a helpful answer to a wrong name."""

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from regaug.exceptions import ArgumentError, RegaugError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
Groups = dict[str, "Registry[Any]"]

# Every registry by its group.
REGISTRIES: Groups = {}


class Registry(Mapping[str, T]):
    """Things by name: the library's own, those of installed packages, those registered by hand.

    An installed package makes its own known by an entry point in the group. Such a one is imported
    when it is asked for, not before.

    Args:
        word: What a thing is called in messages, such as "method".
        group: The group of entry points, such as ``"regaug.methods"``.
        own: The library's own.
        check: Called with a name and what is to be known by it; refuses what cannot be used.
    """

    def __init__(
        self, word: str, group: str, own: Mapping[str, T], *, check: Callable[[str, T], None]
    ) -> None:
        self.word, self.group, self._check = word, group, check
        self._own = dict(own)
        self._registered: dict[str, T] = {}
        self._points: dict[str, EntryPoint] | None = None  # looked for when first needed
        self._loaded: dict[str, T] = {}
        self._unreachable: dict[str, str] = {}
        REGISTRIES[group] = self

    def register(self, name: str, thing: T, *, replace: bool = False) -> None:
        """Make a thing known by a name, in this process and its worker processes.

        A name that is taken is refused unless ``replace`` is True, or it is the same thing again.
        """
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise ArgumentError(
                "`name` must be lower-case letters, digits and single dashes, as it is typed on "
                f"the command line and written in files, got {name!r}."
            )
        self._check(name, thing)
        if not replace and name in tuple(self) and self[name] != thing:
            raise ArgumentError(
                f"`name` must be a new one, got {name!r}: there is a {self.word} of that name. "
                "Choose another, or give replace=True."
            )
        self._registered[name] = thing
        self._unreachable.pop(name, None)

    @property
    def registered(self) -> Mapping[str, T]:
        """Those that were registered by hand in this process."""
        return self._registered

    def note_unreachable(self, name: str, reason: str) -> None:
        """Note why a thing that another process has registered is not known in this one."""
        if name not in self._registered:
            self._unreachable[name] = reason

    def unreachable(self, name: str, reason: str) -> ArgumentError:
        """Return an error that says why a thing is known in one process alone, and what to do."""
        return ArgumentError(
            f"The {self.word} {name!r} cannot be brought to another process: {reason.rstrip('.')}. "
            "Define what it is made of in a module that can be imported: a file, not a notebook, "
            "and not in a function or behind `if __name__ == ...`. Or declare it as an entry point "
            f"in the group {self.group!r}, or take jobs=1."
        )

    def __getitem__(self, name: str) -> T:
        if name in self._registered:
            return self._registered[name]
        if name in self._unreachable:
            raise self.unreachable(name, self._unreachable[name])
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name, self._entry_points()[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *self._entry_points(), *self._registered]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self)) or name in self._unreachable

    def _entry_points(self) -> Mapping[str, "EntryPoint"]:
        """Return the entry points of installed packages, without importing any of them."""
        if self._points is None:
            from importlib.metadata import entry_points

            self._points = {}
            for point in entry_points(group=self.group):
                before = self._points.get(point.name)
                if before is None and point.name not in self._own:
                    self._points[point.name] = point
                elif before is None or before.value != point.value:  # or it is found twice
                    warnings.warn(
                        f"The {self.word} {point.name!r} of {_package(point)} is left out: there "
                        f"is a {self.word} of that name. Remove the package, or have it choose "
                        "another name.",
                        stacklevel=2,
                    )
        return self._points

    def _load(self, name: str, point: "EntryPoint") -> T:
        try:
            thing: T = point.load()
            self._check(name, thing)
        except Exception as error:  # it is somebody else's code that is run
            raise RegaugError(
                f"The {self.word} {name!r} of {_package(point)} ({point.value}) cannot be used: "
                f"{type(error).__name__}: {error}"
            ) from error
        return thing


def lookup(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or raise an error that says what to write instead."""
    if name in table:
        return table[name]
    raise UnknownNameError(unknown(kind, name, table))


def unknown(kind: str, name: str, names: Collection[str]) -> str:
    """Say that ``name`` is not one of ``names``, and which one may have been meant."""
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"Unknown {kind} {name!r}.{hint} Available: {', '.join(sorted(names))}."


def _package(point: "EntryPoint") -> str:
    return "an installed package" if point.dist is None else f"the package {point.dist.name!r}"
