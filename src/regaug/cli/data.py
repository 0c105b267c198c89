"""``regaug data``: the named data sets, which of them are here, and how to get the others."""

import sys
from typing import Annotated, Any

import typer

from regaug.cli import names
from regaug.cli.options import AsJSON, print_json
from regaug.exceptions import DataNotFoundError, RegaugError

app = typer.Typer(no_args_is_help=True, help="List and fetch the named data sets.")

Row = dict[str, Any]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name that `regaug data list` shows.",
        autocompletion=names.dataset,
    ),
]
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME", help="Names that `regaug data list` shows.", autocompletion=names.dataset
    ),
]


def list_(as_json: AsJSON = False) -> None:
    """List the named data sets, and say which are on this disk.

    In a pipe: a line each, with name, task, yes or no, path, and how to get it, between tabs.

    Example: regaug data list | grep image
    """
    from regaug.data import NAMES

    rows = [_describe(name) for name in NAMES]
    if as_json:
        print_json(rows)
    elif sys.stdout.isatty():
        _print_table(rows)
    else:
        for row in rows:
            typer.echo("\t".join([*_first(row), row["path"] or "-", row["get"]]))


def fetch(wanted: Names, as_json: AsJSON = False) -> None:
    """Fetch data sets into the cache and verify them.

    What is already here is left as it is. The cache is the folder that REGAUG_CACHE names, or the
    one the system has for caches. For a data set that cannot be fetched it says how to get it by
    hand, and the exit code is 1.

    Example: regaug data fetch airfoil no2
    """
    from regaug.data import info

    for name in wanted:
        info(name)  # a misspelled name is told before anything is fetched
    rows = [_fetch_one(name, as_json) for name in dict.fromkeys(wanted)]
    if as_json:
        print_json(rows)
    if any(row["error"] for row in rows):
        raise typer.Exit(1)


def path(name: Name, as_json: AsJSON = False) -> None:
    """Print where a data set is: its file or folder.

    Nothing is fetched; a data set that is not on this disk gives exit code 1.

    Example: head -n 3 "$(regaug data path airfoil)"
    """
    from regaug.data.datasets import named

    place = named.where(name)
    if place is None and named.is_here(name):
        raise DataNotFoundError(f"{name} has no file: it {named.how(name)}.")
    if place is None:
        raise DataNotFoundError(f"{name} is not on this disk. How to get it: {named.how(name)}")
    if as_json:
        print_json({"name": name, "path": str(place)})
    else:
        typer.echo(place)


def _describe(name: str) -> Row:
    from regaug.data.datasets import named

    try:
        place, info = named.where(name), named.info(name)
    except RegaugError as error:  # of a package that cannot be imported, say
        empty = dict.fromkeys(("license", "citation", "origin"), "")
        own = {"name": name, "task": "-", "here": False, "path": None, "get": str(error)}
        return own | empty
    return {
        "name": name,
        "task": info.task,
        "here": named.is_here(name),
        "path": None if place is None else str(place),
        "get": named.how(name),
        "license": info.license,
        "citation": info.citation,
        "origin": info.origin,
    }


def _fetch_one(name: str, as_json: bool) -> Row:
    from regaug.data.datasets import named

    try:
        paths = [str(place) for place in named.fetch(name)]
    except RegaugError as error:
        typer.echo(f"Error: {name}: {error}", err=True)
        return {"name": name, "paths": [], "error": str(error)}
    if not as_json:
        typer.echo(f"{name}\t{' '.join(paths) or named.how(name)}")
    return {"name": name, "paths": paths, "error": None}


def _first(row: Row) -> list[str]:
    return [row["name"], row["task"], "yes" if row["here"] else "no"]


def _print_table(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("name", "task", "here", "where, or how to get it", box=None, pad_edge=False)
    for row in rows:
        # A path is to be copied: it is folded, never cut.
        table.add_row(*_first(row), Text(row["path"] or row["get"], overflow="fold"))
    Console().print(table)
