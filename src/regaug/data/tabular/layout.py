"""Where the header of a table stands, and what is between its columns."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from regaug.exceptions import DataError
from regaug.formatting import count

DELIMITERS = (",", ";", "\t", "|")
_MOST_TITLES = 10  # lines above the header
_NUMBER = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?\s*")
_ENTRY = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel's way to say what is between columns

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Header:
    """The names of a table's columns.

    Attributes:
        names: The names, in order; none is empty.
        end: How many rows end before the first one of the table itself.
        unnamed: Places of the columns without a name of their own.
        is_fitting: Whether most rows have as many cells as there are names.
        notes: What a reader should know.
    """

    names: tuple[str, ...]
    end: int
    unnamed: tuple[int, ...] = ()
    is_fitting: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """How a text file is laid out.

    Attributes:
        delimiter: What is between its columns.
        header: Its names.
        lines: How many lines end before its first row.
    """

    delimiter: str
    header: Header
    lines: int


def find_layout(lines: Sequence[str], preferred: str, name: str) -> Layout:
    """Find out how a text file is laid out, from its first lines.

    Lines that begin with ``#`` are comments. The delimiter is one with which the rows have as many
    cells as the header, most of them if not all, and of several such the one with the most cells.

    Args:
        lines: The first lines, with their ends.
        preferred: The delimiter that the file's name promises.
        name: What it is called in errors.
    """
    start = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    if start < len(lines) and (entry := _ENTRY.fullmatch(lines[start])):
        preferred, start = entry[1], start + 1
    comments = []
    while start < len(lines) and (not lines[start].strip() or lines[start].startswith("#")):
        comments += [lines[start]] if lines[start].strip() else []
        start += 1
    if start == len(lines):
        raise DataError(f"{name} is empty. It must have a header line and a line per row.")
    signs = dict.fromkeys((preferred, *DELIMITERS))
    found = [own for sign in signs if (own := _lay_out(lines[start:], sign, comments))]
    if not found:
        raise DataError(
            f"{name} must have at least two columns with {preferred!r} between them, got the "
            f"header {lines[start].strip()[:80]!r}. Save it with a comma, a semicolon, a tab or | "
            "between the columns."
        )
    layout = max(found, key=lambda own: own[0])[1]
    notes = list(layout.header.notes)
    if comments:
        notes.insert(0, f"{count(len(comments), 'comment line')} left out.")
    if layout.delimiter != preferred:
        notes.insert(0, f"Read with {layout.delimiter!r} between the columns.")
    header = replace(layout.header, notes=tuple(notes))
    return Layout(layout.delimiter, header, layout.lines + start)


def find_header(rows: Rows, comments: Rows = ()) -> Header:
    """Find the row with the names of the columns among the first rows of a table.

    It is the first one, but for rows with hardly any cell above one that is full of words: those
    are titles. If the first row holds nothing but numbers, and they do not count up, there is no
    header: the columns are then called 1, 2, and so on. ``comments`` may hold the header, if the
    rows have none.

    Example:
        >>> find_header([["Sales", ""], ["size", "price"], ["50", "1.5"], ["60", "2.5"]]).names
        ('size', 'price')
    """
    sizes = Counter(map(_size, rows))
    width = sizes.most_common(1)[0][0] if sizes else 0
    titles = _titles(rows, width)
    cells = [cell.strip() for cell in rows[titles][: _size(rows[titles])]] if rows else []
    below = rows[titles + 1 :]
    notes = []
    if titles:
        words = [cell.strip() for row in rows[:titles] for cell in row if cell.strip()]
        shown = f": {words[0][:60]!r}" if words else ""
        notes.append(f"{count(titles, 'line')} above the header left out{shown}.")
    if _are_values(cells):
        named = [own for own in comments if len(own) == len(cells) and not _are_values(own)]
        if not named:
            names = tuple(str(place) for place in range(1, len(cells) + 1))
            note = (
                f"The first line holds numbers, no names: the columns are called 1 to {len(cells)}."
            )
            return Header(names, titles, notes=(*notes, note))
        cells, below = [cell.strip(" #\r\n") for cell in named[-1]], rows[titles:]
        return _named(cells, below, titles, [*notes, "The names stand in a comment line."])
    return _named(cells, below, titles + 1, notes)


def _named(cells: list[str], below: Rows, end: int, notes: list[str]) -> Header:
    """Make the header of some cells, in keeping with the rows below it."""
    lengths = Counter(map(len, below))
    width = lengths.most_common(1)[0][0] if lengths else len(cells)
    more = width - len(cells)
    if more > 0 and not any(cell.strip() for row in below for cell in row[len(cells) :]):
        cells = [*cells, *[""] * more]  # delimiters at the ends of lines
    elif more == 1 and len({row[0] for row in below if row}) == len(below):
        cells = ["", *cells]  # the names of rows, as R writes them
    unnamed = tuple(place for place, cell in enumerate(cells) if not cell)
    names = tuple(cell or f"Unnamed: {place}" for place, cell in enumerate(cells))
    return Header(names, end, unnamed, not below or width <= len(cells), tuple(notes))


def _lay_out(
    lines: Sequence[str], delimiter: str, comments: Sequence[str]
) -> tuple[tuple[bool, float, int], Layout] | None:
    """Return how well a delimiter fits, and the layout; None if it does not at all."""
    reader = csv.reader(lines, delimiter=delimiter)
    rows, ends = list[list[str]](), list[int]()
    try:
        for row in reader:
            if row:
                rows.append(row)
                ends.append(reader.line_num)
        remarks = list(csv.reader(comments, delimiter=delimiter))
    except csv.Error:
        return None
    lengths = Counter(map(len, rows))
    width, often = lengths.most_common(1)[0] if lengths else (0, 0)
    if width < 2:
        return None
    header = find_header(rows, remarks)
    share = often / len(rows)
    fit = header.is_fitting and len(header.names) >= 2, share, width
    return fit, Layout(delimiter, header, ends[header.end - 1] if header.end else 0)


def _titles(rows: Rows, width: int) -> int:
    """Return how many rows stand above the header."""
    for place, row in enumerate(rows[: _MOST_TITLES + 1]):
        filled = [cell for cell in row if cell.strip()]
        is_full = len(filled) >= max(2, width - 1) and _size(row) >= width - 1
        if is_full:
            is_named = place == 0 or not any(map(is_number, filled))
            return place if is_named else 0
        if len(filled) > max(1, width // 2):
            return 0
    return 0


def _are_values(cells: Sequence[str]) -> bool:
    """Whether cells that could be names are numbers which do not count up, as years would."""
    if not cells or not all(map(is_number, cells)):
        return False
    if not all(cell.strip().isdigit() for cell in cells):
        return True
    steps = {int(b) - int(a) for a, b in pairwise(cells)}
    return len(steps) != 1 or steps == {0}


def is_number(cell: str) -> bool:
    """Whether a cell holds a plain number."""
    return _NUMBER.fullmatch(cell) is not None


def _size(row: Sequence[str]) -> int:
    """Return how many cells a row has up to the last one that is not empty."""
    return max((place for place, cell in enumerate(row, 1) if cell.strip()), default=0)
