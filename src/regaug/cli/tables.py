"""What commands on a table share: how a user names the data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regaug._registry import unknown
from regaug.data import NAMES, load, read_table
from regaug.data.base import Data
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.formatting import TextTable

TableName = Annotated[
    str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, or the name of a data set.")
]
Target = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Column to predict; give it again for several."),
]
Group = Annotated[
    str | None, typer.Option(help="Column whose groups are held out whole, such as a city.")
]
Time = Annotated[str | None, typer.Option(help="Column of dates: the last rows are held out.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
AsJSON = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def open_data(
    source: str,
    *,
    target: list[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: list[str] | None = None,
) -> Data:
    """Return the table that a user means: a file, or a data set by its name."""
    columns: dict[str, Any] = {"--target": target, "--group": group, "--time": time, "--drop": drop}
    path = Path(source)
    if is_name(source):
        given = [name for name, value in columns.items() if value]
        if given:
            raise ArgumentError(
                f"`{given[0]}` is for files of your own; the data set {source!r} knows its columns."
            )
        return load(source)
    if not path.exists() and not path.suffix and path.name == source:
        raise UnknownNameError(f"There is no file {source!r}. {unknown('data set', source, NAMES)}")
    if path.is_file() and not target:
        raise UnknownNameError(f"Say which column of {source} to predict: --target NAME.")
    try:
        return read_table(source, target=target or (), group=group, time=time, drop=drop or ())
    except ArgumentError as error:  # the arguments are the names that the user typed
        raise UnknownNameError(str(error)) from error


def is_name(source: str) -> bool:
    """Whether a user means a named data set; a file of that name comes first."""
    return source in NAMES and not Path(source).exists()


def print_table(text: TextTable) -> None:
    """Print a table of text as wide as the terminal is, and what stands below it."""
    from rich.console import Console
    from rich.table import Table

    title = text.title or None
    table = Table(*text.header, title=title, title_justify="left", box=None)
    for row in text.rows:
        table.add_row(*row)
    Console().print(table)
    for note in text.notes:
        typer.echo(note)
