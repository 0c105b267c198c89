"""From a file or a frame of any kind to a pandas frame."""

import gzip
import json
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regaug._files import MALFORMED
from regaug.data.tabular.charsets import to_utf8
from regaug.data.tabular.layout import find_header
from regaug.data.tabular.numerals import Decimal
from regaug.data.tabular.readings import translate
from regaug.data.tabular.textfile import as_texts, read_text
from regaug.data.tabular.texts import is_text, without_markers
from regaug.data.tabular.values import check_unique, column_names
from regaug.exceptions import ArgumentTypeError, DataError, DataNotFoundError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

STANDARD_INPUT = "-"
ENDINGS = ".csv, .tsv, .tab, .txt, .jsonl, .ndjson (each also .gz), .xlsx, .parquet, .feather"
PARQUET = (".parquet", ".parq", ".pq")
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ","}
# Arrow's errors are children of these; what it reads of pandas may be anything.
ARROW = (OSError, MemoryError, NotImplementedError, *MALFORMED)
# Bytes of a table that was packed; more are taken for a mistake, or for malice.
MOST_UNPACKED = 2**32
_PIECE = 2**20
_HEAD = 100  # rows that show where the header of a sheet is


@dataclass(frozen=True, eq=False)
class Cells:
    """A table before anything is made of its texts.

    Attributes:
        frame: Columns with texts as names, rows numbered from 0. Of a text file every cell is a
            text, as it is written; other files and frames have types.
        name: What it is called.
        notes: What a reader should know about the file, a sentence each.
        decimal: What the file says about decimal commas: they go with semicolons.
        has_markers: Whether texts such as ``NA`` are gaps: people and programs write them.
    """

    frame: "pd.DataFrame"
    name: str = "table"
    notes: tuple[str, ...] = ()
    decimal: Decimal | None = None
    has_markers: bool = False


def read_frame(source: object, *, encoding: str | None = None) -> "pd.DataFrame":
    """Return what :func:`read_table` takes as a pandas frame, with the plain numbers of texts."""
    return typed(read_cells(source, encoding=encoding))


def typed(cells: Cells) -> "pd.DataFrame":
    """Return the cells of a table with plain numbers where a text file has their texts."""
    frame = read_gaps(cells)
    if not cells.has_markers:
        return frame
    return frame.assign(**{name: translate(frame[name], None) for name in frame.columns})


def read_gaps(cells: Cells) -> "pd.DataFrame":
    """Return the cells of a table with gaps where texts such as ``NA`` stand for them."""
    frame = cells.frame
    if not cells.has_markers:
        return frame
    texts = [name for name in frame.columns if is_text(frame[name])]
    return frame.assign(**{name: without_markers(frame[name]) for name in texts})


def read_cells(source: object, *, encoding: str | None = None) -> Cells:
    """Return a path, ``"-"`` for the standard input, or a frame of any kind as a pandas frame.

    ``encoding`` is that of a text file; it is found out if None.
    """
    import pandas as pd

    if isinstance(source, str | Path):
        cells = _read_path(source, encoding)
    elif isinstance(source, pd.DataFrame):
        cells = Cells(source)
    elif hasattr(source, "__arrow_c_stream__"):
        cells = Cells(_from_arrow(source))
    else:
        raise ArgumentTypeError(
            "`source` must be a path, a pandas or polars frame or an Arrow table, got "
            f"{type(source).__name__}. Make a frame of it: pandas.DataFrame(source)."
        )
    frame = cells.frame.set_axis(column_names(cells.frame), axis=1).reset_index(drop=True)
    return replace(cells, frame=frame)


def _read_path(source: str | Path, encoding: str | None) -> Cells:
    if str(source) == STANDARD_INPUT:
        return _read_csv(sys.stdin.buffer.read(), "standard input", ",", encoding)
    path = _check_path(Path(source).expanduser())
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_packed = suffixes[-1:] == [".gz"]
    ending = "".join(suffixes[:-1][-1:] if is_packed else suffixes[-1:])
    try:
        if not is_packed and ending in _TABLES:
            return Cells(_TABLES[ending](path), path.name)
        if ending in DELIMITERS or ending in (".jsonl", ".ndjson"):
            data = _unpack(path) if is_packed else path.read_bytes()
            if ending in DELIMITERS:
                return _read_csv(data, path, DELIMITERS[ending], encoding)
            return Cells(_read_json_lines(data, path, encoding), path.name)
        if not is_packed and ending == ".xlsx":
            return _read_workbook(path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    other = " Save it as .xlsx." if ending == ".xls" else " Read it with pandas and pass the frame."
    raise DataError(f"`source` must end in {ENDINGS}, got {path.name!r}.{other}")


def _unpack(path: Path) -> bytes:
    """Return what a gzip file holds; a few bytes can stand for more than there is memory."""
    data = bytearray()
    with gzip.open(path) as file:  # a read of so many bytes at once would ask for all the memory
        while len(data) <= MOST_UNPACKED and (piece := file.read(_PIECE)):
            data += piece
    if len(data) > MOST_UNPACKED:
        raise DataError(
            f"{path} must hold at most {MOST_UNPACKED:,} bytes when it is unpacked, and holds "
            "more. Unpack it (gunzip) and name the file that comes out, if that is meant."
        )
    return bytes(data)


def _check_path(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        mode = path.stat().st_mode
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and path.resolve().parent != Path("/dev/pts")):
            raise DataError(f"`source` must be a file, got the device {path}.")
    if path.is_file():
        return path
    if path.is_dir():
        raise DataError(f"`source` must be a file, got the folder {path}.")
    if path.exists():  # a pipe, such as /dev/stdin
        return path
    if not path.parent.is_dir():
        raise DataNotFoundError(f"There is no file {path}: there is no folder {path.parent}.")
    names = sorted(entry.name for entry in path.parent.iterdir())
    near = get_close_matches(path.name, names, n=3)
    hint = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    raise DataNotFoundError(f"There is no file {path}.{hint}")


def _read_csv(data: bytes, path: Path | str, delimiter: str, encoding: str | None) -> Cells:
    frame, notes, found = read_text(data, str(path), delimiter=delimiter, encoding=encoding)
    name = path.name if isinstance(path, Path) else path
    return Cells(frame, name, tuple(notes), "," if found == ";" else None, has_markers=True)


def _read_json_lines(data: bytes, path: Path, encoding: str | None) -> "pd.DataFrame":
    """Read a file with a JSON object per line."""
    import pandas as pd

    text, _ = to_utf8(data, str(path), encoding=encoding)
    rows = []
    for number, line in enumerate(text.decode().splitlines(), 1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise DataError(
                f"{path} cannot be read: line {number:,} is no JSON ({error})."
            ) from None
        if row is not None and not isinstance(row, dict):
            raise DataError(
                f'{path} must have a JSON object such as {{"size": 50}} on every line, got '
                f"{line[:60]!r} on line {number:,}."
            )
        rows += [] if row is None else [row]
    if not rows:
        raise DataError(f"{path} is empty. It must have a JSON object per line.")
    return pd.DataFrame(rows)


def _read_workbook(path: Path) -> Cells:
    """Read the first sheet of an Excel file that holds anything."""
    import pandas as pd

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtraError('Excel files need an extra: pip install "regaug[excel]".') from None
    try:
        book = load_workbook(BytesIO(path.read_bytes()), read_only=True, data_only=True)
    except Exception as error:  # zip files, XML and its own errors: all say that it is none
        raise DataError(f"{path} cannot be read as an Excel file: {error}") from error
    notes = []
    for sheet in book.worksheets:
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        rows = [row for row in rows if any(cell is not None for cell in row)]
        if rows:
            break
    else:
        raise DataError(f"{path} is empty. It must have a row of names and a row per sample.")
    if len(book.worksheets) > 1:
        notes.append(f"Read the sheet {sheet.title!r}, one of {len(book.worksheets)}.")
    width = max(map(len, rows))
    rows = [row + [None] * (width - len(row)) for row in rows]
    used = [place for place in range(width) if any(row[place] is not None for row in rows)]
    rows = [[row[place] for place in used] for row in rows]
    header = find_header(as_texts(rows[:_HEAD]))
    check_unique(list(header.names))
    body = [row[: len(header.names)] for row in rows[header.end :]]
    frame = pd.DataFrame(body, columns=list(header.names), dtype=object).infer_objects()
    return Cells(frame, path.name, (*notes, *header.notes), has_markers=True)


def _read_parquet(path: Path) -> "pd.DataFrame":
    import pyarrow.parquet as pq

    try:
        return checked(pq.read_table(path)).to_pandas()
    except ARROW as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error


def _read_arrow(path: Path) -> "pd.DataFrame":
    """Read a Feather file, or an Arrow file or stream."""
    import pyarrow as pa

    data = path.read_bytes()
    try:
        try:
            table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        except pa.ArrowInvalid:
            table = pa.ipc.open_stream(pa.BufferReader(data)).read_all()
        return _from_arrow(checked(table))
    except DataError:
        raise
    except ARROW as error:
        raise DataError(f"{path} cannot be read as a Feather or Arrow file: {error}") from error


def checked(table: Any) -> Any:
    """Return an Arrow table, or batch, of a file whose texts lie where it says that they do.

    Arrow takes a file at its word: a place beyond its end would be read from whatever is there.
    """
    table.validate(full=True)
    return table


def _from_arrow(source: object) -> "pd.DataFrame":
    import pyarrow as pa

    table = pa.table(source)
    check_unique(table.column_names)
    return table.to_pandas()


_TABLES: dict[str, Callable[[Path], "pd.DataFrame"]] = {
    **dict.fromkeys(PARQUET, _read_parquet),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), _read_arrow),
}
