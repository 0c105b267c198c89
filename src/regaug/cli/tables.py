"""What commands on a table share: how a user names the data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regaug.data import NAMES, load, read_table
from regaug.data.base import Data
from regaug.exceptions import ArgumentError, DataNotFoundError, UnknownNameError

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
    if source in NAMES and not Path(source).exists():
        given = [name for name, value in columns.items() if value]
        if given:
            raise ArgumentError(
                f"`{given[0]}` is for files of your own; the data set {source!r} knows its columns."
            )
        return load(source)
    if not Path(source).exists():
        near = ", ".join(NAMES)
        raise DataNotFoundError(
            f"There is no file {source!r}, and no data set of that name. Named data sets: {near}."
        )
    if not target:
        raise UnknownNameError(f"Say which column of {source} to predict: --target NAME.")
    return read_table(source, target=target, group=group, time=time, drop=drop or ())
