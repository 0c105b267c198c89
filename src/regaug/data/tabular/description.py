"""An encoder as JSON text, and back: every value is checked, nothing is executed."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from regaug.data.tabular.columns import FAR, MAX_LEVELS, Boolean, Category, Column, Date, Number
from regaug.data.tabular.dates import ORDERS, DateFormat
from regaug.data.tabular.numerals import NumberFormat
from regaug.data.tabular.readings import READINGS, Reading
from regaug.data.tabular.values import LARGEST
from regaug.exceptions import ArgumentTypeError, DataError

FORMAT, VERSION = "regaug-encoder", 3
_COLUMNS: dict[str, type[Any]] = {c.kind: c for c in (Number, Boolean, Date, Category)}

Described = tuple[tuple[Column, ...], tuple[str, ...], tuple[Reading, ...]]


def write_description(
    columns: Sequence[Column], notes: Sequence[str], readings: Sequence[Reading]
) -> str:
    """Return the columns, notes and readings of an encoder as JSON text."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "columns": [{"kind": own.kind, **vars(own)} for own in columns],
        "notes": list(notes),
        "readings": [{"kind": own.kind, **vars(own)} for own in readings],
    }
    return json.dumps(content, allow_nan=False)


def read_description(text: str) -> Described:
    """Return what :func:`write_description` was given; anything else is a ``DataError``."""
    content = _check_version(_parse(text))
    keys = {"format", "version", "columns", "notes", "readings"}
    content = _check_keys(content, keys, "the encoder")
    if not isinstance(content["columns"], list) or not content["columns"]:
        raise _damaged("`columns` must be a list that is not empty")
    columns = tuple(_column_from(item) for item in content["columns"])
    if len({column.name for column in columns}) < len(columns):
        raise _damaged("two columns have the same name")
    if not isinstance(content["readings"], list):
        raise _damaged("`readings` must be a list")
    readings = tuple(_reading_from(item) for item in content["readings"])
    return columns, _as_texts("notes", content["notes"]), readings


def _damaged(reason: str) -> DataError:
    return DataError(f"The text does not describe an encoder: {reason}.")


def _parse(text: str) -> object:
    """Parse JSON, refusing what JSON does not have (NaN) and keys that are given twice."""

    def refuse(constant: str) -> object:
        raise ValueError(f"{constant} is not JSON")

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key is given twice")
        return dict(pairs)

    if not isinstance(text, str):
        raise ArgumentTypeError(f"`text` must be a str, got {type(text).__name__}.")
    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"it is not JSON ({str(error)[:200]})") from None


def _check_version(content: object) -> object:
    """Refuse what another version of regaug wrote, with the way out."""
    found = content if isinstance(content, dict) else {}
    version = found.get("version")
    if found.get("format") == FORMAT and type(version) is int and version != VERSION:
        raise _damaged(
            f"it has version {version} and this regaug reads version {VERSION}. Fit the model "
            "again, or use the regaug that wrote it"
        )
    if (found.get("format"), version) != (FORMAT, VERSION):
        raise _damaged(f"it must be {FORMAT!r} of version {VERSION}")
    return content


def _check_keys(content: object, keys: set[str], what: str) -> dict[str, object]:
    if not isinstance(content, dict) or set(content) != keys:
        raise _damaged(f"{what} must have exactly the keys {', '.join(sorted(keys))}")
    return content


def _typed_from(item: object, kinds: dict[str, type[Any]], what: str) -> Any:
    """Make a column, or a reading, from its JSON object."""
    kind = item.get("kind") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise _damaged(f"the kind of a {what} must be one of {', '.join(kinds)}")
    members = fields(kinds[kind])
    keys = {"kind", *(member.name for member in members)}
    given = _check_keys(item, keys, f"a {kind} {what}")
    return kinds[kind](**{m.name: _as_typed(m.name, given[m.name], m.type) for m in members})


def _reading_from(item: object) -> Reading:
    """Make a reading from its JSON object."""
    reading: Reading = _typed_from(item, READINGS, "reading")
    if isinstance(reading, NumberFormat):
        if reading.decimal not in (".", ","):
            raise _damaged("`decimal` must be a point or a comma")
        if len(reading.forms) != len(reading.factors):
            raise _damaged("`forms` and `factors` must be as many")
    if isinstance(reading, DateFormat) and reading.order not in ORDERS:
        raise _damaged(f"`order` must be one of {', '.join(ORDERS)}")
    return reading


def _column_from(item: object) -> Column:
    """Make a column from its JSON object."""
    column: Column = _typed_from(item, _COLUMNS, "column")
    if isinstance(column, Date) and max(abs(column.mean), abs(column.fill)) > FAR:
        raise _damaged(f"the dates of {column.name!r} must be within {FAR:g} days of 1970")
    if isinstance(column, Number) and not column.low <= column.high:
        raise _damaged(f"`low` of {column.name!r} must not be above `high`")
    if isinstance(column, Category):
        levels = column.levels
        if len(set(levels)) < len(levels) or len(levels) > MAX_LEVELS or not column.features:
            raise _damaged(f"the levels of {column.name!r} must be different, 1 to {MAX_LEVELS}")
    return column


def _as_texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _damaged(f"`{key}` must be a list of texts")
    return tuple(value)


def _as_typed(key: str, value: object, kind: object) -> object:
    """Return a value from JSON as the field of a column, or a reading, that it is for."""
    if kind == tuple[str, ...]:
        return _as_texts(key, value)
    if kind == tuple[float, ...]:
        if not isinstance(value, list):
            raise _damaged(f"`{key}` must be a list of numbers")
        return tuple(_as_number(key, item) for item in value)
    if kind is bool:
        if not isinstance(value, bool):
            raise _damaged(f"`{key}` must be true or false")
        return value
    if kind is float:
        return _as_number(key, value)
    if not isinstance(value, str):
        raise _damaged(f"`{key}` must be text")
    return value


def _as_number(key: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    raise _damaged(f"`{key}` must be a finite number")
