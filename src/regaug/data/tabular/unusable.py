"""Cells of a new table that say something a model cannot use: they count as missing there."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regaug.data.tabular.columns import Category, Date
from regaug.data.tabular.encoding import Encoder, read_series
from regaug.data.tabular.readings import by_name
from regaug.data.tabular.texts import GAP_WORDS
from regaug.data.tabular.values import column_names, read_dates, read_numbers
from regaug.formatting import count

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5


@dataclass(frozen=True)
class Unusable:
    """A cell of a column of numbers or dates that is none, or is infinite.

    Attributes:
        row: Its row, counted from 1, without the line of names.
        column: Name of its column.
        text: What stands there.
    """

    row: int
    column: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def find_unusable(
    encoder: Encoder, frame: "pd.DataFrame", *, read: "pd.DataFrame | None" = None
) -> list[Unusable]:
    """Return the cells that count as missing and are no gaps, column by column.

    ``read`` is the same table with its texts read as the encoder reads them, if that is done.

    Example:
        >>> import pandas as pd
        >>> from regaug.data.tabular.columns import Number
        >>> encoder = Encoder((Number("size", fill=65.0, indicator=False),))
        >>> find_unusable(encoder, pd.DataFrame({"size": ["50", "", "abc", "NA", "1e39"]}))
        [Unusable(row=3, column='size', text='abc')]
    """
    known = {column.name: column for column in encoder.columns}
    names, readings = column_names(frame, only=set(known)), by_name(encoder.readings)
    places = {name: place for place, name in enumerate(names)}
    found = []
    for name, column in known.items():
        if isinstance(column, Category) or name not in places:
            continue
        series = frame.iloc[:, places[name]]
        if read is None:
            plain = read_series(series, column, readings.get(name))
        else:
            plain = read.iloc[:, places[name]]
        is_date = isinstance(column, Date)
        values = read_dates(plain) if is_date else read_numbers(plain, clip=True)
        lost = np.flatnonzero(np.isnan(values.values) & ~series.isna().to_numpy())
        for row, value in zip(lost.tolist(), series.iloc[lost].tolist(), strict=True):
            text = str(value).strip()
            if text.lower() not in GAP_WORDS:
                found.append(Unusable(row + 1, name, text))
    return found


def describe(cells: list[Unusable]) -> str:
    """Say in a sentence which cells cannot be used; the first ones by name.

    Example:
        >>> describe([Unusable(3, "size", "abc"), Unusable(9, "size", "inf")])
        "2 cells are no finite numbers or dates: 'abc' in 'size' (row 3), 'inf' in 'size' (row 9)."
    """
    listed = [f"{cell.text!r} in {cell.column!r} (row {cell.row})" for cell in cells[:_SHOWN]]
    more = f" and {len(cells) - _SHOWN:,} more" if len(cells) > _SHOWN else ""
    is_one = len(cells) == 1
    what = "is no finite number or date" if is_one else "are no finite numbers or dates"
    return f"{count(len(cells), 'cell')} {what}: {', '.join(listed)}{more}."
