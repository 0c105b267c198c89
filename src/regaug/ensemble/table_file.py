"""A model applied to a table file of any length: rows are read, predicted and written in pieces."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regaug._files import write_whole
from regaug._outputs import Output
from regaug.data.tabular.columns import Category, Date
from regaug.data.tabular.dates import DateFormat, read_clear
from regaug.data.tabular.encoding import Encoder, read_series
from regaug.data.tabular.pieces import cut, read_pieces
from regaug.data.tabular.readings import as_column, by_name, read_plain
from regaug.data.tabular.sources import Cells, read_cells, read_gaps, typed
from regaug.data.tabular.textfile import UnsettledError
from regaug.data.tabular.texts import is_text, texts_of
from regaug.data.tabular.unusable import Unusable, describe, find_unusable
from regaug.data.tabular.writer import PARQUET, TableWriter
from regaug.ensemble.model import Ensemble, Prediction
from regaug.ensemble.truth import Truth
from regaug.exceptions import DataError
from regaug.formatting import duration

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TableProgress:
    """How far a table has been predicted.

    Attributes:
        rows: Rows that are done.
        share: What share of the table that is, from 0 to 1.
        seconds_left: About how long the others take.
    """

    rows: int
    share: float
    seconds_left: float

    @property
    def words(self) -> str:
        """How many rows are done, and the time left."""
        left = f", about {duration(self.seconds_left)} left" if self.share < 1.0 else ""
        return f"{self.rows:,} rows{left}"


@dataclass(frozen=True, eq=False)
class PredictedTable:
    """What is to be said of a table that was predicted.

    Attributes:
        rows: How many rows it has.
        prediction: Scores and coverage, if it has the targets; without the rows themselves.
        unusable: Cells that count as missing and are no gaps, column by column.
    """

    rows: int
    prediction: Prediction
    unusable: list[Unusable] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of a table: as they are written, and as they are read."""

    cells: "pd.DataFrame"  # to be written again
    frame: "pd.DataFrame"  # with gaps
    read: Any  # with numbers where a text file has their texts; an array for a model of arrays
    done: float
    batch: Any = None


def predict_table(
    model: Ensemble,
    source: str,
    out: Output,
    *,
    interval: float | None = None,
    encoding: str | None = None,
    strict: bool = False,
    safe: bool = False,
    observer: Callable[[TableProgress], None] | None = None,
) -> PredictedTable:
    """Predict every row of a table and write the table with its predictions.

    A Parquet file, and a text file in UTF-8 whose columns are written as those of training were, is
    never in memory as a whole; any other table is, once, as it was read.

    Args:
        model: What predicts.
        source: The table: a path, or ``"-"`` for the standard input.
        out: The file to write, which is there only when it is whole.
        interval: Share of new rows whose target is to lie in their interval.
        encoding: What a text file is written in; found out if None.
        strict: Refuse a table with cells that cannot be used.
        safe: No cell of a CSV file is a formula.
        observer: Told after every piece how far it has come.
    """
    found: list[PredictedTable] = []

    def write(temporary: Path, rows: Iterator[_Rows]) -> None:
        with TableWriter(temporary, out.path.suffix, safe=safe) as writer:
            run = _Run(model, interval, writer, observer)
            for some in rows:
                run.add(some)
            found[:] = [run.end(strict=strict)]

    out.check()
    try:
        rows = _in_pieces(model, Path(source).expanduser(), encoding, out.path.suffix.lower())
        write_whole(out.path, lambda temporary: write(temporary, rows))
    except UnsettledError:
        cells = read_cells(source, encoding=encoding)
        rows = _at_once(model, cells, out.path.suffix.lower())
        write_whole(out.path, lambda temporary: write(temporary, rows))
    return found[0]


class _Run:
    """Predicts pieces of a table one after the other, and keeps what its scores need."""

    def __init__(
        self,
        model: Ensemble,
        interval: float | None,
        writer: TableWriter,
        observer: Callable[[TableProgress], None] | None,
    ) -> None:
        self.model, self.interval = model, interval
        self.writer, self.observer = writer, observer
        self.rows, self._start = 0, time.monotonic()
        self._unusable: dict[str, list[Unusable]] = {}
        self._known: list[pd.DataFrame] = []  # the targets, where the table has them
        self._said: list[tuple[Tensor | None, ...]] = []  # what was predicted for them

    def add(self, some: _Rows) -> None:
        """Predict some rows and write them."""
        model = self.model
        if model.preparation.encoder is not None:
            cells = find_unusable(model.preparation.encoder, some.frame, read=some.read)
            for cell in cells:
                own = replace(cell, row=cell.row + self.rows)
                self._unusable.setdefault(cell.column, []).append(own)
        found = model.predict_inputs(model.preparation(some.read), interval=self.interval)
        new = found.to_frame(some.cells)
        self.writer.write(new, some.batch, new=new.shape[1] - some.cells.shape[1])
        named = [name for name in some.frame.columns if name in (*model.targets, model.group)]
        if set(model.targets) <= set(named):
            self._known.append(some.frame[named])
            self._said.append((found.mean, found.spread, found.low, found.high))
        self.rows += len(found)
        if self.observer is not None:
            passed = time.monotonic() - self._start
            left = passed / some.done * (1.0 - some.done) if some.done else 0.0
            self.observer(TableProgress(self.rows, some.done, left))

    def end(self, *, strict: bool) -> PredictedTable:
        """Return what is to be said of all rows; refuse them if there is something wrong."""
        unusable = [cell for own in self._unusable.values() for cell in own]
        if strict and unusable:
            raise DataError(f"{describe(unusable)} Correct them, or leave out --strict.")
        none = torch.empty(0, len(self.model.targets), dtype=torch.float64)
        found = Prediction(self.model.targets, none, none)
        truth = self._truth()
        if truth is None:
            return PredictedTable(self.rows, found, unusable)
        mean, _, low, high = (_joined(parts) for parts in zip(*self._said, strict=True))
        assert mean is not None
        coverage = None if low is None or high is None else truth.coverage(low, high)
        found = replace(found, scores=truth.score(mean), coverage=coverage)
        return PredictedTable(self.rows, found, unusable)

    def _truth(self) -> Truth | None:
        import pandas as pd

        if not self._known:
            return None
        known = pd.concat(self._known, ignore_index=True)
        return Truth.find(known, self.model.targets, self.model.group)


def _joined(parts: tuple[Tensor | None, ...]) -> Tensor | None:
    known = [part for part in parts if part is not None]
    return torch.cat(known) if known else None


def _in_pieces(model: Ensemble, path: Path, encoding: str | None, ending: str) -> Iterator[_Rows]:
    """Give the rows of a file; UnsettledError if they must be looked at all at once."""
    encoder, kinds = model.preparation.encoder, dict[str, str]()
    if encoder is None or encoding is not None:
        raise UnsettledError
    is_empty = True
    for piece in read_pieces(path):
        cells, is_empty = piece.cells.frame, False
        if piece.batch is None and ending == PARQUET:
            raise UnsettledError  # which type a column of texts has all of it decides
        if piece.batch is not None and ending != PARQUET and _varies(piece.batch, cells):
            raise UnsettledError  # and how a column is written as text
        frame = read_gaps(piece.cells)
        read = _read_alone(encoder, frame, kinds)
        yield _Rows(cells, frame, read, piece.done, piece.batch)
    if is_empty:
        raise UnsettledError


def _varies(batch: Any, frame: "pd.DataFrame") -> bool:
    """Whether other rows may change how these are written: times, whole numbers with gaps."""
    import pyarrow as pa

    has_gaps = (pa.types.is_integer(own.type) and own.null_count > 0 for own in batch.itercolumns())
    return any(dtype.kind in "mM" for dtype in frame.dtypes) or any(has_gaps)


def _read_alone(encoder: Encoder, frame: "pd.DataFrame", kinds: dict[str, str]) -> "pd.DataFrame":
    """Return rows with the texts of number and date columns read, if no others decide how.

    ``kinds`` says what columns without a reading were in earlier pieces.
    """
    readings, new = by_name(encoder.readings), {}
    names = set(frame.columns)
    for column in encoder.columns:
        if isinstance(column, Category) or column.name not in names:
            continue
        series = frame[column.name]
        if not is_text(series) or series.isna().all():
            continue
        reading = readings.get(column.name)
        if reading is None:
            read = _read_clear(series) if isinstance(column, Date) else read_plain(series)
        else:
            read = read_series(series, column, reading)
        if read is None or is_text(read):
            raise UnsettledError
        if reading is None:
            kind = "number" if read.dtype.kind in "iuf" else read.dtype.kind
            if kinds.setdefault(column.name, kind) != kind:
                raise UnsettledError
        new[column.name] = read
    return frame.assign(**new) if new else frame


def _read_clear(series: "pd.Series") -> "pd.Series | None":
    """Return a column of dates that can be read in one way only; None for another."""
    texts = texts_of(series)
    days = read_clear(texts)
    if days is None:
        return None
    return as_column(series, texts.spread(days), DateFormat(str(series.name), "ymd"))


def _at_once(model: Ensemble, cells: Cells, ending: str) -> Iterator[_Rows]:
    """Give the rows of a table that was read as a whole."""
    encoder = model.preparation.encoder
    # Cells of a text file as they stand there: 007 is not 7, and NA is no gap.
    written = typed(cells) if ending == PARQUET else cells.frame
    if encoder is None:
        # It was fitted on an array: its columns have an order and no names.
        yield _Rows(written, cells.frame, typed(cells).to_numpy(), 1.0)
        return
    frame, readings = read_gaps(cells), by_name(encoder.readings)
    names, new, is_open = set(frame.columns), {}, False
    for column in encoder.columns:
        if isinstance(column, Category) or column.name not in names:
            continue
        series = frame[column.name]
        read = read_series(series, column, readings.get(column.name))
        is_open |= is_text(read) and not read.isna().all()
        if read is not series:
            new[column.name] = read
    read = frame.assign(**new) if new else frame
    if is_open or not len(frame):  # what is not read yet is read when it is encoded
        yield _Rows(written, frame, read, 1.0)
        return
    for start, end in cut(frame):
        some = slice(start, end)
        yield _Rows(written.iloc[some], frame.iloc[some], read.iloc[some], end / len(frame))
