"""A text file as a frame of texts, each cell as it is written."""

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regaug.data.tabular.charsets import to_utf8
from regaug.data.tabular.layout import Header, Layout, find_layout, is_number
from regaug.data.tabular.texts import quoted
from regaug.data.tabular.values import check_unique
from regaug.exceptions import DataError
from regaug.formatting import count

if TYPE_CHECKING:
    import pandas as pd

_HEAD, _LINES = 2**20, 200  # bytes and lines that show the layout
_LARGEST = 2**30  # bytes that are parsed at a time, at most
_ENDS = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|$)")


def read_text(
    data: bytes, name: str, *, delimiter: str = ",", encoding: str | None = None
) -> tuple["pd.DataFrame", list[str], str]:
    """Read the content of a text file with a header line.

    Args:
        data: The content.
        name: What the file is called in errors.
        delimiter: What its name promises between the columns; another one is found.
        encoding: What it is written in; found out if None.

    Returns:
        A frame whose cells are texts, as they are written; what a reader should know; and the
        delimiter.
    """
    text, notes = to_utf8(data, name, encoding=encoding)
    lines = _first_lines(text)
    layout = find_layout([line.decode() for line in lines], delimiter, name)
    _check_names(layout.header.names)
    frame = _parse(memoryview(text)[sum(map(len, lines[: layout.lines])) :], layout, name)
    frame, more = _without_leftovers(frame, layout.header)
    return frame, [*notes, *layout.header.notes, *more], layout.delimiter


class UnsettledError(Exception):
    """Rows of a file do not decide how it is read: that takes all of them."""


def read_text_pieces(
    path: Path, *, delimiter: str, size: int, of_column: int
) -> Iterator[tuple["pd.DataFrame", float]]:
    """Give the rows of a text file a piece at a time, as :func:`read_text` reads all of them.

    Args:
        path: The file.
        delimiter: What its name promises between the columns; another one is found.
        size: Bytes of a piece, at least.
        of_column: Bytes of a piece for each of its columns, at least.

    Returns:
        Frames of texts, each with the share of the file that has been read with it.

    Raises:
        UnsettledError: The file is not in UTF-8, its rows are of unequal lengths, or it has columns
            or rows that may have to be left out.
    """
    import pyarrow as pa

    with open(path, "rb") as file:
        head = file.read(_HEAD + 1)
        text = head.removeprefix(codecs.BOM_UTF8)
        _check_utf8(text)
        lines = _first_lines(text)
        layout = find_layout([line.decode() for line in lines], delimiter, str(path))
        names = layout.header.names
        _check_names(names)
        start = len(head) - len(text) + sum(map(len, lines[: layout.lines]))
        if layout.header.unnamed or not head[start:].strip():
            raise UnsettledError
        whole = file.seek(0, 2)
        file.seek(start)
        odd = list[Any]()
        try:
            block = min(max(size, of_column * len(names)), _LARGEST)
            done = start
            for batch in _open_csv(file, layout, odd, block):
                frame = pa.Table.from_batches([batch]).to_pandas()
                done += _text_bytes(batch)
                if odd or (frame[names[0]].str.strip() == names[0]).any():
                    raise UnsettledError
                yield frame, min(done / whole, 1.0)
        except pa.ArrowInvalid as error:
            raise UnsettledError from error


def _text_bytes(batch: Any) -> int:
    """Return about how many bytes of a file some rows are: their texts, and a sign after each."""
    import pyarrow.compute as pc

    lengths = map(pc.binary_length, batch.itercolumns())
    texts: int = sum(pc.sum(own).as_py() or 0 for own in lengths)
    signs: int = batch.num_rows * batch.num_columns
    return texts + signs


def _check_utf8(head: bytes) -> None:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise UnsettledError from error
    if b"\0" in head:
        raise UnsettledError


def _open_csv(source: Any, layout: Layout, odd: list[Any], block: int) -> Any:
    """Open a file at its first row; rows of another length than most are noted and left out."""
    from pyarrow import csv as arrow_csv

    names = list(layout.header.names)
    return arrow_csv.open_csv(source, **_options(names, layout.delimiter, odd, block_size=block))


def _options(names: list[str], delimiter: str, odd: list[Any], **more: Any) -> dict[str, Any]:
    """Return how Arrow reads a text file: every cell as a text, odd rows noted and left out."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def note(row: Any) -> str:
        odd.append(row)
        return "skip"

    return {
        "read_options": arrow_csv.ReadOptions(column_names=names, use_threads=False, **more),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False
        ),
    }


def _check_names(names: Sequence[str]) -> None:
    try:
        check_unique(list(names))
    except DataError as error:
        if not any(is_number(name) for name in names):
            raise
        raise DataError(
            f"{error} The first line holds numbers: does the file lack a header line?"
        ) from None


def _first_lines(text: bytes) -> list[bytes]:
    """Return the first lines with their ends; a last one that is cut is left out."""
    head = text[:_HEAD]
    lines: list[bytes] = []
    for match in _ENDS.finditer(head):
        if len(lines) == _LINES or not match[0]:
            break
        lines.append(match[0])
    is_cut = len(head) < len(text) and len(lines) > 1 and sum(map(len, lines)) == len(head)
    return lines[:-1] if is_cut else lines


def _parse(body: memoryview, layout: Layout, name: str) -> "pd.DataFrame":
    """Parse the rows of a table; rows that are too short end with gaps."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names, odd = list(layout.header.names), list[Any]()

    if not bytes(body[:_HEAD]).strip() and not bytes(body).strip():
        return pd.DataFrame({name: pd.Series([], dtype="str") for name in names})
    try:
        source = pa.BufferReader(pa.py_buffer(body))
        table = arrow_csv.read_csv(source, **_options(names, layout.delimiter, odd))
    except pa.ArrowInvalid:  # a row longer than a block
        odd.append(None)
    if odd:
        return _parse_slowly(bytes(body).decode(), layout, name)
    return table.to_pandas()


def _parse_slowly(text: str, layout: Layout, name: str) -> "pd.DataFrame":
    """Parse rows of unequal lengths."""
    import pandas as pd

    width = len(layout.header.names)
    reader = csv.reader(StringIO(text, newline=""), delimiter=layout.delimiter, strict=True)
    rows = []
    try:
        for row in reader:
            if len(row) > width and any(cell.strip() for cell in row[width:]):
                _refuse(
                    name,
                    layout,
                    f"but line {layout.lines + reader.line_num:,} has {len(row)} values.",
                )
            if row:
                rows.append([*row, *[""] * (width - len(row))][:width])
    except csv.Error as error:
        is_open = "end of data" in str(error)
        reason = "a quote that is opened is never closed" if is_open else str(error)
        _refuse(name, layout, f"and {reason} (line {layout.lines + reader.line_num:,}).")
    return pd.DataFrame(rows, columns=list(layout.header.names), dtype="str")


def _refuse(name: str, layout: Layout, reason: str) -> None:
    raise DataError(
        f"{name} cannot be read with {layout.delimiter!r} between the columns: the header has "
        f"{count(len(layout.header.names), 'name')}, {reason} Is that the delimiter, and has every "
        "line as many values as the header?"
    )


def _without_leftovers(frame: "pd.DataFrame", header: Header) -> tuple["pd.DataFrame", list[str]]:
    """Leave out columns without a name or a value at the end, and headers among the rows."""
    names = list(header.names)
    last = len(names)
    while last - 1 in header.unnamed and not frame[names[last - 1]].str.strip().any():
        last -= 1
    frame, notes = frame[names[:last]], []
    unnamed = [names[place] for place in header.unnamed if place < last]
    if unnamed:
        verb = "is called" if len(unnamed) == 1 else "are called"
        notes.append(f"{count(len(unnamed), 'column')} without a name {verb} {quoted(unnamed)}.")
    is_header = frame[names[0]].str.strip() == names[0]
    if is_header.any():
        cells = frame[is_header].apply(lambda column: column.str.strip() == column.name)
        again = cells.index[cells.all(axis=1)]
        if len(again):
            rows = f"{count(len(again), 'row')} that repeat{'s' * (len(again) == 1)} the header"
            return frame.drop(index=again), [*notes, f"{rows} left out."]
    return frame, notes


def as_texts(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    """Return cells as texts, nothing as an empty one."""
    return [["" if cell is None else str(cell) for cell in row] for row in rows]
