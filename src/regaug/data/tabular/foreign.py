"""Rows of a table that were made elsewhere, by any generator: read, encoded and checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from regaug._registry import unknown
from regaug.data.arrays import ArrayData
from regaug.data.base import Data, Part, Split, as_float
from regaug.data.duplicates import as_bytes
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.generation import array_names
from regaug.data.tabular.roles import read_target
from regaug.data.tabular.sources import read_cells
from regaug.data.tabular.table import Table, TableSplit
from regaug.data.tabular.texts import Floats
from regaug.data.tabular.values import column_names, read_numbers
from regaug.exceptions import ArgumentError, DataError
from regaug.formatting import count

if TYPE_CHECKING:
    import pandas as pd


def read_foreign(
    source: object, data: Data, splits: Sequence[Split]
) -> tuple[list[Part], list[str]]:
    """Read rows that were made elsewhere, and encode them as each split of a table is encoded.

    Rows that are held out in a split, inputs and targets alike, are left out there: who trains on
    a test row knows its answer.

    Args:
        source: A file or a frame with the inputs and targets of the table, as
            :func:`regaug.data.read_table` reads them; of a named table the columns are ``x1``,
            ``x2``, ... and ``target``.
        data: The table.
        splits: Its splits, with their encoders.

    Returns:
        The rows for every split, and what a reader should know of them, a sentence each.
    """
    cells = read_cells(source)
    frame = cells.frame.set_axis(column_names(cells.frame), axis=1)
    if isinstance(data, Table):
        frame = Encoder(readings=data.readings).read(frame)
        targets = list(data.targets)
    elif isinstance(data, ArrayData) and data.x.ndim == 2:
        targets = array_names(data)[1]
    else:
        raise ArgumentError(
            f"`rows` must be None for data that are no table, got rows for {data.info.name}."
        )
    for name in targets:
        if name not in frame.columns:
            raise DataError(
                f"`rows` must have the targets of the table: "
                f"{unknown('column', name, list(frame.columns))}"
            )
    y = np.column_stack([read_target(frame, name) for name in targets])
    keep: NDArray[np.bool_] = np.asarray(np.isfinite(y).all(axis=1))
    if not keep.any():
        raise DataError("`rows` must have rows with a target, got none.")
    frame, y = frame[keep], y[keep]
    parts, held = [], 0
    for split in splits:
        if isinstance(data, ArrayData):
            x = as_float(_read_numbers(frame, array_names(data)[0]))
        else:
            x = as_float(cast(TableSplit, split).encoder.transform(frame))
        part = Part(x, as_float(y), np.full(len(y), -1))
        is_new = ~_is_held_out(part, split)
        held = max(held, int((~is_new).sum()))
        if not is_new.any():
            raise DataError(
                "`rows` must have rows that are not held out, got validation and test rows alone. "
                "Make new rows from the training rows."
            )
        parts.append(part.take(is_new))
    return parts, _remarks(source, len(keep), int(keep.sum()), held)


def _remarks(source: object, rows: int, used: int, held: int) -> list[str]:
    name = Path(source).name if isinstance(source, str | Path) else "a frame"
    notes = [
        f"Rows from elsewhere: {used:,} of {name}. If they were made from the whole table, whoever "
        "made them has seen the test rows, and their error may flatter them."
    ]
    if rows > used:
        notes.append(f"Left out of them: {count(rows - used, 'row')} without a target.")
    if held:
        notes.append(
            f"Up to {held:,} of them are validation or test rows of a split: left out there."
        )
    return notes


def _is_held_out(part: Part, split: Split) -> NDArray[np.bool_]:
    held = {row for own in (split.validation, split.test) for row in as_bytes(own)}
    return np.array([row in held for row in as_bytes(part)], dtype=np.bool_)


def _read_numbers(frame: "pd.DataFrame", names: Sequence[str]) -> Floats:
    columns = column_names(frame)
    for name in names:
        if name not in columns:
            raise DataError(
                f"`rows` must have the inputs of the table: {unknown('column', name, columns)}"
            )
    values = np.column_stack([read_numbers(frame[name]).values for name in names])
    if not np.isfinite(values).all():
        raise DataError("`rows` must have finite inputs, got gaps. Leave those rows out.")
    return values
