"""From the columns of a table to a matrix of numbers, learned on training rows only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate, pairwise, starmap
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from regaug.data.tabular.columns import Category, Column, Date, fit_column
from regaug.data.tabular.description import read_description, write_description
from regaug.data.tabular.discovery import read_columns
from regaug.data.tabular.findings import find_reading
from regaug.data.tabular.readings import Reading, by_name, read_plain, translate
from regaug.data.tabular.texts import is_text
from regaug.data.tabular.values import column_names
from regaug.exceptions import ArgumentError, DataError, NonFiniteError, NotFittedError

MOST_NOTES = 5  # sentences about columns in an error

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Encoder:
    """What turns the columns of a table into a float32 matrix; ``Encoder.fit`` makes one.

    ========== ====================================================================================
    column     becomes
    ========== ====================================================================================
    numbers    themselves, if not further beyond those of training than half of their range; true
               and false become 1 and 0; numbers written as text count
    dates      days since the training mean, sine and cosine of the time of year and of day
    text       one column per level; levels with less than 1 % or fewer than 5 of the training
               rows, and all but the 50 most frequent, share the level "(other)"
    gaps       the median (numbers, dates), with a column that says so if at least 1 % of the
               training rows lack the value; a level of their own (text); infinite values are gaps
    left out   constant and empty columns, row numbers, text that differs in almost every row
    ========== ====================================================================================

    For other tables the order of columns does not matter and further columns are ignored; a
    column that is not there is an error. A level that training did not know is "(other)", or 0
    in all columns if nothing was pooled. A value that cannot be read is a gap, and an error if no
    value of its column can be.

    How texts are read (``"$45,210"``, ``"3,5"``, ``"31/12/2024"``) is kept too: other tables are
    read in the same way, even a single row of them, and a column that holds plain numbers there.

    Attributes:
        columns: What is known about every column that is used.
        notes: What was left out, imputed and pooled, and why; a sentence each.
        readings: How those columns of the table are read that are not written plainly; targets and
            times may be among them.

    Example:
        >>> import pandas as pd
        >>> train = pd.DataFrame({"size": [50.0, 80.0, None] * 5, "city": ["Oslo", "Rome", "Rome"] * 5})
        >>> encoder = Encoder.fit(train)
        >>> encoder.feature_names
        ('size', 'size=(missing)', 'city=Oslo', 'city=Rome')
        >>> encoder.transform(pd.DataFrame({"city": ["Paris", "Rome"], "size": [60.0, None]}))
        array([[60.,  0.,  0.,  0.],
               [65.,  1.,  0.,  1.]], dtype=float32)
    """  # noqa: E501

    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()

    @classmethod
    def fit(cls, frame: "pd.DataFrame", *, readings: Sequence[Reading] | None = None) -> Self:
        """Learn how to encode the columns of a pandas frame of training rows.

        If the frame's index holds whole numbers it is taken as the place of each row in the whole
        table: that is how a column of row numbers is known when the rows are a random part.

        Args:
            frame: The training rows.
            readings: How the texts of its columns were read, if that is done; otherwise they are
                read here, as all the rows of ``frame`` are written.
        """
        names = column_names(frame)
        said: tuple[str, ...] = ()
        if readings is None:
            read = read_columns(frame.set_axis(names, axis=1))
            frame, readings, said = read.frame, read.readings, read.notes
        known = by_name(readings)
        index = frame.index
        places = index.to_numpy() if index.dtype.kind in "iu" else np.arange(len(frame))
        columns: list[Column] = []
        notes = list(said)
        for position, name in enumerate(names):
            column, own = fit_column(name, frame.iloc[:, position], places, known.get(name))
            notes += [f"{name!r} {sentence}" for sentence in own]
            columns += [] if column is None else [column]
        if not columns:
            more = [f"and {len(notes) - MOST_NOTES:,} more"] if len(notes) > MOST_NOTES else []
            reasons = f": {'; '.join([*notes[:MOST_NOTES], *more])}" if notes else ""
            raise DataError(f"No input column is left{reasons}.")
        return cls(tuple(columns), tuple(notes), tuple(readings))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Which columns of the matrix belong together: for each, the number of its column here.

        Example:
            >>> from regaug.data.tabular.columns import Category, Number
            >>> city = Category("city", ("Oslo", "Rome"), other=False, missing=False)
            >>> Encoder((Number("size", fill=65.0, indicator=True), city)).blocks
            (0, 0, 1, 1)
        """
        sizes = (len(column.features) for column in self.columns)
        return tuple(number for number, size in enumerate(sizes) for _ in range(size))

    def transform(self, frame: "pd.DataFrame") -> NDArray[np.float32]:
        """Encode the rows of a pandas frame; returns ``(n, features)``."""
        names = {column.name for column in self._fitted().columns}
        positions = self._find(column_names(frame, only=names))
        # Features one after the other, turned at the end: five times as fast as writing columns.
        out = np.empty((len(self.feature_names), len(frame)), dtype=np.float32)
        readings = by_name(self.readings)
        for (column, span), position in zip(self.spans(), positions, strict=True):
            series = frame.iloc[:, position]
            column.encode(read_series(series, column, readings.get(column.name)), out[span])
        return np.ascontiguousarray(out.T)

    def read(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return a pandas frame with its texts read as those of the training rows were.

        Columns that :attr:`readings` does not name stay as they are.

        Example:
            >>> import pandas as pd
            >>> train = pd.DataFrame({"price": ["$1,500", "$700", "$9"] * 5})
            >>> encoder = Encoder.fit(train)
            >>> encoder.read(pd.DataFrame({"price": ["$2,000"]}))["price"].tolist()
            [2000]
        """
        names = column_names(frame)
        places = {name: place for place, name in enumerate(names)}
        new = {
            name: translate(frame.iloc[:, places[name]], reading)
            for name, reading in by_name(self.readings).items()
            if name in places
        }
        return frame.set_axis(names, axis=1).assign(**new)

    def decode(self, x: NDArray[np.float32] | NDArray[np.float64]) -> "pd.DataFrame":
        """Return the rows of a matrix as a pandas frame: the way back from :meth:`transform`.

        Numbers come back as float64, in as many digits as float32 has; true and false, dates (days
        decide) and texts as themselves. A value is missing where the column that says so is above
        one half. Values that training did not tell apart stay so: an imputed gap without such a
        column is the median, pooled levels are "(other)".

        Args:
            x: ``(n, features)``, finite. It need not be what :meth:`transform` returns: of the
                columns of a category the largest decides.

        Example:
            >>> from regaug.data.tabular.columns import Number
            >>> encoder = Encoder((Number("size", fill=65.0, indicator=True),))
            >>> encoder.decode(np.array([[50.1, 0.2], [65.0, 0.9]]))
               size
            0  50.1
            1   NaN
        """
        import pandas as pd

        features = len(self._fitted().feature_names)
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != features:
            raise ArgumentError(f"`x` must be (n, {features}), got shape {rows.shape}.")
        if not np.isfinite(rows).all():
            raise NonFiniteError("`x` must be finite, got NaN or infinity.")
        columns = {column.name: column.decode(rows[:, span].T) for column, span in self.spans()}
        return pd.DataFrame(columns)

    def to_json(self) -> str:
        """Return everything as JSON text, for :meth:`from_json`."""
        return write_description(self.columns, self.notes, self.readings)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote; anything else is a ``DataError``.

        Example:
            >>> from regaug.data.tabular.columns import Number
            >>> encoder = Encoder((Number("size", fill=65.0, indicator=True),))
            >>> Encoder.from_json(encoder.to_json()) == encoder
            True
        """
        return cls(*read_description(text))

    def _fitted(self) -> Self:
        if not self.columns:
            raise NotFittedError(
                "`Encoder` must see training rows first: use `Encoder.fit(frame)`."
            )
        return self

    def spans(self) -> Iterator[tuple[Column, slice]]:
        """Give every column, and where in the matrix its features are."""
        borders = accumulate((len(column.features) for column in self.columns), initial=0)
        return zip(self.columns, starmap(slice, pairwise(borders)), strict=True)

    def _find(self, names: list[str]) -> list[int]:
        """Return the positions of the columns, or say which are not there."""
        place = {name: position for position, name in enumerate(names)}
        lacking = [column.name for column in self.columns if column.name not in place]
        if lacking:
            listed = ", ".join(_with_hint(name, names) for name in lacking[:10])
            more = f" and {len(lacking) - 10} more" if len(lacking) > 10 else ""
            raise DataError(
                f"The table lacks {len(lacking)} of the {len(self.columns)} input columns: "
                f"{listed}{more}. Add them (a column may be empty: its values are imputed)."
            )
        return [place[column.name] for column in self.columns]


def read_series(series: "pd.Series", column: Column, reading: Reading | None) -> "pd.Series":
    """Return a column of a new table with its texts read: as in training, or as it is written."""
    if not is_text(series) or (reading is None and isinstance(column, Category)):
        return series
    if reading is None:
        plain = read_plain(series)
        if plain is not None:
            return plain
        reading = find_reading(series, are_dates=isinstance(column, Date))
    return translate(series, reading)


def _with_hint(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)
