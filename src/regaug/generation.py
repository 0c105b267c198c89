"""New rows for a table, made by a method, in the table's own units and column names."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug import _random, methods
from regaug._checks import check_integer
from regaug.augment import Identity
from regaug.data.arrays import ArrayData
from regaug.data.base import Data
from regaug.data.columns import OTHER, Boolean, Category, Column, Date
from regaug.data.encoding import Encoder
from regaug.data.scaling import Scaler
from regaug.data.table import Table
from regaug.data.values import read_dates, read_levels, read_numbers
from regaug.exceptions import ArgumentError, ArgumentTypeError

BATCH_SIZE = 32
_LARGEST_WHOLE = 2**53  # beyond, a float does not tell whole numbers apart
_UNITS = ("D", "h", "min", "s")


def generate(
    data: Data,
    *,
    method: str,
    rows: int,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """Make new rows of a table with a method, in the table's own units and column names.

    All rows are encoded and standardised, batches of them are drawn and augmented as in training,
    every batch at full strength, and what comes out is decoded: of a category the level that is
    nearest; whole numbers where the column has only such; dates in steps of whole days, hours,
    minutes or seconds, as in the table. A value that is rare is one of the table's rare values,
    drawn by the seed. A value is missing where it mostly comes from rows in which it is missing. No
    number and no date leaves the range that it has in the table.

    The rows are for training only. They are made from the rows of the table, targets included: an
    error that is measured on them, or on rows that they were made from, says nothing about new
    data. Split first, and make new rows from the training part alone.

    Args:
        data: A table: ``regaug.data.read_table(...)``, or a named one, whose columns then are
            ``x1``, ``x2``, ... and ``target``.
        method: One of ``regaug.methods.names()`` that acts on inputs.
        rows: How many, at least 1.
        seed: The same seed gives the same rows.
        settings: Settings of the method that differ from its defaults. Those that say when to act
            in training (``p``, ``anneal``, ``append``) have no effect.

    Returns:
        A pandas frame with the inputs and targets of the table, in its order and of its types. What
        is no input is left out: groups, times, dropped columns, and those that tell rows apart.
        Constant columns stay.

    Example:
        >>> import pandas as pd
        >>> from regaug.data import read_table
        >>> frame = pd.DataFrame({"size": range(50, 80), "city": ["Oslo", "Rome"] * 15})
        >>> frame["price"] = frame["size"] ** 2.0
        >>> table = read_table(frame.sample(frac=1.0, random_state=0), target="price")
        >>> new = generate(table, method="mixup", rows=100)
        >>> new.shape, sorted(new["city"].unique()), bool(new["size"].between(50, 79).all())
        ((100, 3), ['Oslo', 'Rome'], True)
    """
    table = _as_table(data)
    rows, seed = check_integer("rows", rows, 1), check_integer("seed", seed, 0)
    frame = table.frame
    encoder = Encoder.fit(frame[list(table.inputs)])
    x = torch.from_numpy(encoder.transform(frame)).double()
    y = torch.from_numpy(
        np.column_stack([read_numbers(frame[target]).values for target in table.targets])
    )
    new_x, new_y = _augment(x, y, method, settings or {}, rows, seed)
    decoded = encoder.decode(new_x.numpy())
    columns = {
        column.name: _restore(column, decoded[column.name], frame[column.name], seed)
        for column in encoder.columns
    }
    for place, target in enumerate(table.targets):
        columns[target] = _restore_numbers(new_y[:, place].numpy(), frame[target])
    for name in set(table.inputs).difference(columns):
        texts = read_levels(frame[name])[1]
        if len(texts) < 2:  # constant, or without any value
            columns[name] = np.repeat(frame[name].dropna().to_numpy()[:1], rows)
            
    return _frame(columns, frame)
