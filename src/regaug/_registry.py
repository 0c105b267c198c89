"""From a name to the thing it names, with a helpful answer to a wrong name."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TypeVar

from regaug.exceptions import UnknownNameError

T = TypeVar("T")


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
