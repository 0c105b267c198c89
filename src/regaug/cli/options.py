"""What commands share: options, how a user names the data, how results are shown and written.

Nothing here imports torch or pandas before a command needs them: a help must be quick.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regaug._outputs import Output
from regaug._registry import unknown
from regaug.cli import names
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.formatting import TextTable, printable

if TYPE_CHECKING:
    import pandas as pd

    from regaug.data.base import Data
    from regaug.studies.checks import Check

TableName = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table (CSV, Excel, Parquet, Feather, JSON lines), - for CSV from the standard "
        "input, or the name of a data set.",
        autocompletion=names.dataset,
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target", "-t", metavar="COLUMN", help="Column to predict; give it again for several."
    ),
]
Group = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column whose groups are held out whole, such as a city."),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of dates: the last rows are held out."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to leave out; may be repeated."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What a text file is written in, such as cp1250 [found out]."
    ),
]
AsJSON = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", metavar="N", help="Worker processes.")]
JobsOrAll = Annotated[
    int | None,
    typer.Option("-j", "--jobs", metavar="N", help="Workers [2; all CPUs of a Ray cluster]."),
]
ExecutorName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Who works: process, or ray (an extra).",
        autocompletion=names.one_of(("process", "ray")),
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Where a Ray cluster listens [RAY_ADDRESS; else Ray runs here].",
    ),
]
RayRuntimeEnv = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAMES",
        help="What Ray gives to its nodes, such as regaug where there is none: a JSON file as Ray "
        "has it, a wheel or a folder to send there, or packages for pip.",
    ),
]
GPUsPerRun = Annotated[
    float,
    typer.Option(metavar="N", help="Graphics cards that Ray gives to a run, such as 0.5."),
]
Out = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder that keeps every finished run, below it.")
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace what is there, even if it is not regaug's own; never an input."
    ),
]
SafeCSV = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="Put ' before texts that begin with =, +, - or @, which spreadsheets take for "
        "formulas; numbers stay as they are.",
    ),
]
TABLES = (".csv", ".tsv", ".parquet")
_LARGE = 2e7  # bytes of a table that takes seconds to be read


def open_data(
    source: str,
    *,
    target: list[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: list[str] | None = None,
    encoding: str | None = None,
    relevance: str | None = None,
) -> "Data":
    """Return the table that a user means: a file, or a data set by its name."""
    from regaug.data import NAMES, load, read_table
    from regaug.data.tabular.sources import STANDARD_INPUT

    columns: dict[str, Any] = {"--target": target, "--group": group, "--time": time, "--drop": drop}
    columns |= {"--encoding": encoding, "--focus COLUMN": relevance}
    path = Path(source)
    if is_name(source):
        refuse(columns, f"the data set {source!r} knows its columns")
        return load(source)
    is_piped = source == STANDARD_INPUT
    if not path.exists() and not path.suffix and path.name == source and not is_piped:
        known = unknown("data set", source, NAMES)
        raise UnknownNameError(f"There is no file {source!r}. {known}")
    if (path.is_file() or is_piped) and not target:
        named = "the standard input" if is_piped else source
        raise UnknownNameError(f"Say which column of {named} to predict: --target NAME.")
    if path.is_file() and path.stat().st_size >= _LARGE:
        typer.echo(f"Reading {source}: {path.stat().st_size / 1e6:,.0f} MB.", err=True)
    try:
        return read_table(
            source,
            target=target or (),
            group=group,
            time=time,
            drop=drop or (),
            relevance=relevance,
            encoding=encoding,
        )
    except ArgumentError as error:  # the arguments are the names that the user typed
        ends = "`--focus` must be high, low, both or a column"
        raise UnknownNameError(str(error).replace("`relevance`", ends)) from error


def find_jobs(jobs: int | None, executor: str, ray_address: str | None) -> int | None:
    """Return how many workers there are; None for as many as a Ray cluster has CPUs."""
    is_cluster = executor == "ray" and bool(ray_address or os.environ.get("RAY_ADDRESS"))
    return 2 if jobs is None and not is_cluster else jobs


def as_relevance(focus: str | None) -> str | None:
    """Return the column that a user names as a focus; None for an end of the target."""
    return None if focus in names.FOCUSES else focus


def refuse(given: Mapping[str, Any], reason: str) -> None:
    """Refuse options of tables for what is none."""
    for name, value in given.items():
        if value:
            raise ArgumentError(f"`{name}` is for files of your own; {reason}.")


def is_name(source: str) -> bool:
    """Whether a user means a named data set; a file of that name comes first."""
    from regaug.data import NAMES

    return source in NAMES and not Path(source).exists()


def output(path: Path, *sources: str | Path, **rules: Any) -> Output:
    """Return where a command writes, after checking that it may; sources are what it reads."""
    rules = {"name": "--out", "endings": TABLES} | rules
    return Output(path, [file for source in sources for file in files_of(source)], **rules)


def files_of(source: str | Path) -> list[Path]:
    """Return the files or folders that a user's data is read from."""
    if not isinstance(source, str) or not is_name(source):
        return [Path(source)]
    from regaug.data import where

    found = where(source)
    return [] if found is None else [found]


def print_json(value: object) -> None:
    """Print a result for machines."""
    typer.echo(json.dumps(value, indent=2))


def print_table(text: TextTable, *, wide: TextTable | None = None) -> None:
    """Print a table of text and what stands below it.

    ``wide`` has more columns and is printed instead where the terminal has room for them. In a pipe
    or a file there is always room: a line stays a line.
    """
    if not sys.stdout.isatty():
        typer.echo(wide or text)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if wide is not None and Console().width > max(map(len, str(wide).splitlines())):
        text = wide
    title = Text(printable(text.title)) if text.title else None
    table = Table(title=title, title_justify="left", box=None)
    for name in text.header:
        table.add_column(Text(printable(name)))
    for row in text.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console().print(table)
    for note in text.notes:
        typer.echo(printable(note))


def print_checks(checks: "Sequence[Check]") -> None:
    """Print what should make a reader careful, and where it is explained."""
    if checks:
        typer.echo()
    for check in checks:
        typer.echo(str(check))


def write_table(frame: "pd.DataFrame", out: Output, *, safe: bool = False) -> None:
    """Write a pandas frame as CSV (``.csv``, ``.tsv``) or Parquet (``.parquet``).

    With ``safe`` no cell of a CSV file is a formula: see
    :func:`regaug.data.tabular.formulas.as_text`.
    """
    from regaug._files import write_whole
    from regaug.data.tabular.writer import TableWriter

    def write(temporary: Path) -> None:
        with TableWriter(temporary, out.path.suffix, safe=safe) as writer:
            writer.write(frame)

    out.check()
    write_whole(out.path, write)
