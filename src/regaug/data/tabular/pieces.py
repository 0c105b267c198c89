"""A table file a piece at a time, where that comes to the same as reading all of it at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regaug.data.tabular.sources import ARROW, DELIMITERS, PARQUET, Cells, checked
from regaug.data.tabular.textfile import UnsettledError, read_text_pieces
from regaug.data.tabular.values import column_names

if TYPE_CHECKING:
    import pandas as pd

# Cells of a Parquet file, and bytes of a text file, that are read at a time. A table with very many
# columns is read in pieces of so many rows at least, or bytes for a column: a column costs as much
# for a few rows as for thousands.
_CELLS, _BYTES = 2**20, 2**23
_ROWS, _COLUMN = 2**10, 2**11


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a table file, in its order.

    Attributes:
        cells: The rows, before anything is made of their texts.
        done: What share of the file has been read with it.
        batch: The same rows as Parquet has them; None from another file.
    """

    cells: Cells
    done: float
    batch: Any = None


def read_pieces(path: Path) -> Iterator[Piece]:
    """Give the rows of a Parquet file, or of a text file in UTF-8 with equally long rows.

    Raises:
        UnsettledError: It is another file, or what has been seen so far does not decide how all of
            it is read: then it has to be read at once.
    """
    ending = path.suffix.lower()
    if not path.is_file():  # a pipe can be read once
        raise UnsettledError
    if ending in PARQUET:
        pieces = _read_parquet(path)
    elif ending in DELIMITERS:
        pieces = _read_text(path, DELIMITERS[ending])
    else:
        raise UnsettledError
    for piece in pieces:
        frame = piece.cells.frame
        frame = frame.set_axis(column_names(frame), axis=1).reset_index(drop=True)
        yield replace(piece, cells=replace(piece.cells, frame=frame))


def cut(frame: "pd.DataFrame") -> Iterator[tuple[int, int]]:
    """Give where the pieces of a frame begin and end, one after the other.

    Example:
        >>> import pandas as pd
        >>> list(cut(pd.DataFrame({"a": range(2**20 + 5)})))
        [(0, 1048576), (1048576, 1048581)]
    """
    size = _rows(frame.shape[1])
    for start in range(0, len(frame), size):
        yield start, min(start + size, len(frame))


def _rows(columns: int) -> int:
    return max(_ROWS, _CELLS // max(1, columns))


def _read_parquet(path: Path) -> Iterator[Piece]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            size, seen = _rows(len(file.schema_arrow)), 0
            for batch in file.iter_batches(size):
                seen += len(batch)
                frame = checked(pa.Table.from_batches([batch])).to_pandas()
                if not {str(name) for name in frame.columns} <= set(batch.schema.names):
                    raise UnsettledError
                yield Piece(Cells(frame, path.name), seen / file.metadata.num_rows, batch)
    except ARROW as error:  # who reads all of it says what is wrong
        raise UnsettledError from error


def _read_text(path: Path, delimiter: str) -> Iterator[Piece]:
    pieces = read_text_pieces(path, delimiter=delimiter, size=_BYTES, of_column=_COLUMN)
    for frame, done in pieces:
        yield Piece(Cells(frame, path.name, has_markers=True), done)
