"""Files and the plain values in them."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from regaug.exceptions import ArgumentError, ArgumentTypeError

# What a JSON file can hold.
JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | None"


def plain(name: str, values: object) -> dict[str, JSON]:
    """Return a dict as JSON keeps it: tuples become lists, NaN and infinity are marked.

    Args:
        name: What it is called in an error.
        values: Dicts with strings as keys, lists, tuples, numbers, strings, bools, None.
    """
    return _plain_dict(name, values, _any_number)


def canonical(name: str, values: object) -> dict[str, JSON]:
    """Return the same dict for equal ones: 1 and 1.0 are the same; all numbers must be finite."""
    return _plain_dict(name, values, _same_number)


def dump(value: JSON, *, sort_keys: bool = False) -> bytes:
    """Return plain values as one line of JSON."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys)
    return text.encode("ascii")


def decode(values: dict[str, JSON]) -> JSON:
    """Undo for one object what :func:`plain` did to NaN, infinity and keys that begin with $."""
    if "$float" in values:
        return float(str(values["$float"]))
    return {key.removeprefix("$"): value for key, value in values.items()}


def _any_number(number: float, _: str) -> JSON:
    return number if math.isfinite(number) else {"$float": str(float(number))}


def _same_number(number: float, place: str) -> JSON:
    """Return the whole number that a float is equal to, if there is one."""
    if not math.isfinite(number):
        raise ArgumentError(f"{place} must be finite, got {number}. Take None for what is not set.")
    return int(number) if number.is_integer() else float(number)


def _plain_dict(name: str, values: object, number: Callable[[float, str], JSON]) -> dict[str, JSON]:
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"`{name}` must be a dict, got {type(values).__name__}.")
    try:
        return _plain_items(values, f"`{name}`", number)
    except RecursionError:
        raise ArgumentError(f"`{name}` must not contain itself or nest hundreds deep.") from None


def _plain_items(
    values: Mapping[object, object], place: str, number: Callable[[float, str], JSON]
) -> dict[str, JSON]:
    new: dict[str, JSON] = {}
    for key, item in values.items():
        if not isinstance(key, str):
            raise ArgumentTypeError(f"{place} must have strings as keys, got {key!r}.")
        # One more "$" tells a key that begins with it, such as a group's name, from a mark of ours.
        new[f"${key}" if key.startswith("$") else key] = _plain(item, f"{place}[{key!r}]", number)
    return new


def _plain(value: object, place: str, number: Callable[[float, str], JSON]) -> JSON:
    """Return what JSON keeps as it is; ``number`` decides what becomes of a float."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return number(value, place)
    if isinstance(value, list | tuple):
        return [_plain(item, f"{place}[{i}]", number) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return _plain_items(value, place, number)
    raise ArgumentTypeError(
        f"{place} must be a number, a string, a bool, None, or a dict or list of them, got "
        f"{type(value).__name__}. Make it a number with .item(), or a list with .tolist()."
    )
