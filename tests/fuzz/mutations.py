"""What happens to files: bytes that change, and documents that say something else."""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

# What stands where something else should: every type that JSON has, and the edges of numbers.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**63), 10**30, 1.5, -0.0, 1e308, -1e-308),
    *("", "x", "$tensor", "\x00", "\u202e", "9" * 400, "1e400", "NaN", "erm", "a" * 5000),
    *([], {}, [[]], [None], {"": None}, [0] * 50, {"$tensor": "x"}, {"$float": "nan"}),
    *({"$float": "inf"}, {"$tuple": [1]}, {"$dict": [[0, 1]]}, [[1.0], [1.0, 2.0]]),
)


def mutate_bytes(content: bytes, rng: Random) -> bytes:
    """Return bytes with one to four changes: flipped, cut, doubled, moved, filled."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_CHANGES)(data, rng)
    return bytes(data)


def mutate_tree(value: Any, rng: Random) -> Any:
    """Return a document of JSON in which one to three places say something else."""
    holder = {"": copy.deepcopy(value)}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not holder:
            break
        parent, key = rng.choice(_places(holder))
        rng.choice(_EDITS)(parent, key, rng)
    return holder.get("", rng.choice(ODD))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place of a document: what it stands in, and where."""
    found, left = [], [value]
    while left:
        parent = left.pop()
        for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
            found.append((parent, key))
            if isinstance(parent[key], dict | list):
                left.append(parent[key])
    return found


def _flip(data: bytearray, rng: Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _fill(data: bytearray, rng: Random) -> None:
    place = rng.randrange(len(data) + 1)
    data[place : place + rng.randrange(9)] = rng.randbytes(rng.randrange(9))


def _cut(data: bytearray, rng: Random) -> None:
    place = rng.randrange(len(data) + 1)
    del data[place : place + rng.choice((1, 7, 100, len(data)))]


def _double(data: bytearray, rng: Random) -> None:
    place, other = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    data[other:other] = data[place : place + rng.choice((1, 20, 400))]


def _insert(data: bytearray, rng: Random) -> None:
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.choice(_WORDS) * rng.choice((1, 1, 3, 200))


def _set(parent: Any, key: Any, rng: Random) -> None:
    parent[key] = copy.deepcopy(rng.choice(ODD))


def _delete(parent: Any, key: Any, rng: Random) -> None:
    if isinstance(parent, dict) or key < len(parent):
        del parent[key]


def _swap(parent: Any, key: Any, rng: Random) -> None:
    other = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    if isinstance(parent, dict) or key < len(parent):
        parent[key], parent[other] = parent[other], parent[key]


def _repeat(parent: Any, key: Any, rng: Random) -> None:
    if isinstance(parent, list):
        parent.extend(copy.deepcopy(parent[:50]))
    else:
        parent[rng.choice(("x", "", "format", str(key) + "_"))] = copy.deepcopy(parent[key])


def _nudge(parent: Any, key: Any, rng: Random) -> None:
    value = parent[key] if isinstance(parent, dict) or key < len(parent) else None
    if isinstance(value, int | float):
        parent[key] = rng.choice((-value, value + 1, value * 1e200, value * 1e-200, int(value)))
    elif isinstance(value, str):
        parent[key] = rng.choice((value[1:], value + value, value.upper(), value[::-1]))
    else:
        _set(parent, key, rng)


_WORDS = (
    *(b",", b";", b"\t", b"\n", b"\r", b'"', b"'", b"{", b"[", b"}", b"\x00", b"\xff\xfe", b"\xc3"),
    *(b"1e400", b"-", b"NaN", b"inf", b"2020-02-30", b"9" * 40, b"%", b"=1+1", b"\x1b[2J", b"null"),
)
_CHANGES: tuple[Callable[[bytearray, Random], None], ...] = (_flip, _fill, _cut, _double, _insert)
_EDITS: tuple[Callable[[Any, Any, Random], None], ...] = (_set, _delete, _swap, _repeat, _nudge)
