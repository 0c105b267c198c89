"""From a file or a frame of any kind to a pandas frame."""

import csv
import gzip
import zlib
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from regaug.data.tabular.values import check_unique, column_names
from regaug.exceptions import ArgumentTypeError, DataError, DataNotFoundError

if TYPE_CHECKING:
    import pandas as pd

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".parq", ".pq")


def read_frame(source: object) -> "pd.DataFrame":
    """Return what :func:`read_table` takes as a pandas frame, columns as they are."""
    return read_source(source)[0]


def read_source(source: object) -> tuple["pd.DataFrame", str, list[str]]:
    """Return a frame with text as column names and rows numbered from 0, its name, and notes."""
    import pandas as pd

    name, notes = "table", list[str]()
    if isinstance(source, str | Path):
        path = _check_path(Path(source).expanduser())
        name = path.name
        frame, notes = _read_file(path)
    elif isinstance(source, pd.DataFrame):
        frame = source
    elif hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa

        table = pa.table(source)
        check_unique(table.column_names)
        frame = table.to_pandas()
    else:
        raise ArgumentTypeError(
            "`source` must be a path, a pandas or polars frame or an Arrow table, got "
            f"{type(source).__name__}. Make a frame of it: pandas.DataFrame(source)."
        )
    return frame.set_axis(column_names(frame), axis=1).reset_index(drop=True), name, notes


def _check_path(path: Path) -> Path:
    if path.is_file():
        return path
    if path.is_dir():
        raise DataError(f"`source` must be a file, got the folder {path}.")
    if not path.parent.is_dir():
        raise DataNotFoundError(f"There is no file {path}: there is no folder {path.parent}.")
    names = sorted(entry.name for entry in path.parent.iterdir())
    near = get_close_matches(path.name, names, n=3)
    hint = f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    raise DataNotFoundError(f"There is no file {path}.{hint}")


def _read_file(path: Path) -> tuple["pd.DataFrame", list[str]]:
    """Read a file by the ending of its name."""
    import pandas as pd

    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PARQUET:
        try:
            return pd.read_parquet(path), []
        except (OSError, ValueError) as error:  # Arrow's errors are children of these
            raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    packed = suffixes[-1:] == [".gz"]
    ending = "".join(suffixes[:-1][-1:] if packed else suffixes[-1:])
    if ending not in _DELIMITERS:
        raise DataError(
            f"`source` must end in .csv, .tsv or .tab (each also .gz) or .parquet, got "
            f"{path.name!r}. Read it with pandas and pass the frame."
        )
    try:
        return _read_text(path, _DELIMITERS[ending], packed)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not text in UTF-8 ({error}). Save it as UTF-8, or read it with "
            "pandas.read_csv(..., encoding=...) and pass the frame."
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _read_text(path: Path, delimiter: str, packed: bool) -> tuple["pd.DataFrame", list[str]]:
    """Read a text file with a header line, finding out what is between its columns."""
    header = _header(path, delimiter, packed)
    notes = []
    if len(header) == 1:
        found = [d for d in (";", "\t") if delimiter == "," and d in header[0]]
        if not found:
            raise DataError(
                f"{path} must have at least two columns with {delimiter!r} between them, got the "
                f"header {header[0][:80]!r}. Save it with that delimiter, or read it with "
                "pandas.read_csv(..., sep=...) and pass the frame."
            )
        delimiter = found[0]
        header = _header(path, delimiter, packed)
        notes.append(f"Read with {delimiter!r} between the columns.")
    names = [name.strip() or f"Unnamed: {place}" for place, name in enumerate(header)]
    check_unique(names)
    frame = _parse(path, delimiter, ".")
    if delimiter == ";" and _has_decimal_commas(frame):
        frame = _parse(path, delimiter, ",")
        notes.append("Read with decimal commas.")
    return frame.set_axis(names, axis=1), notes


def _header(path: Path, delimiter: str, packed: bool) -> list[str]:
    """Return the first line that is not empty, cut at the delimiter."""
    with gzip.open(path) if packed else path.open("rb") as file:
        if b"\0" in file.read(8192):
            raise DataError(f"{path} is not a text file: it holds zero bytes (binary, or UTF-16).")
        file.seek(0)
        lines = csv.reader(
            TextIOWrapper(file, encoding="utf-8-sig", newline=""), delimiter=delimiter
        )
        try:
            row = next((row for row in lines if row), None)
        except csv.Error as error:
            raise DataError(f"{path} has no header line that can be read: {error}.") from error
    if row is None:
        raise DataError(f"{path} is empty. It must have a header line and a line per row.")
    return row


def _parse(path: Path, delimiter: str, decimal: str) -> "pd.DataFrame":
    import warnings

    import pandas as pd

    options = {"sep": delimiter, "decimal": decimal, "index_col": False, "encoding": "utf-8-sig"}
    try:
        with warnings.catch_warnings():
            # pandas cuts lines that are longer than the header, with a warning only.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            warnings.simplefilter("error", pd.errors.DtypeWarning)
            try:
                return pd.read_csv(path, **options)
            except pd.errors.DtypeWarning:  # text after many numbers: read the column as one
                return pd.read_csv(path, low_memory=False, **options)
    except UnicodeDecodeError:
        raise
    except (pd.errors.ParserWarning, ValueError) as error:
        raise DataError(
            f"{path} cannot be read with {delimiter!r} between the columns: "
            f"{str(error).strip()} Is that the delimiter, and has every line as many values as "
            "the header?"
        ) from error


def _has_decimal_commas(frame: "pd.DataFrame") -> bool:
    columns = [column for _, column in frame.items() if column.dtype.kind == "O"]
    texts = [column.dropna().head(100).astype(str) for column in columns]
    return any(len(t) and t.str.fullmatch(r"\s*[-+]?\d+(,\d+)?\s*").all() for t in texts)
