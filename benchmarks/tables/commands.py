"""Tables of the commands and their options, as ``--help`` has them."""

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import typer

from benchmarks.atlas.pooling import table
from regaug.cli.main import app


@cache
def commands() -> dict[str, Any]:
    """Return every command by its words, ``data list`` among them."""
    return dict(_walk(typer.main.get_command(app), ()))


def _walk(own: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    inner = getattr(own, "commands", None)
    if inner is None:
        yield " ".join(words), own
        return
    for name, command in inner.items():
        yield from _walk(command, (*words, name))


def make_commands() -> list[str]:
    """Return the commands, each with what it does and an example."""
    rows = []
    for name, command in commands().items():
        first, _, rest = command.help.partition("\n")
        example = rest.rpartition("Example: ")[2].split("\n\n")[0]
        link = f"[`regaug {name}`](docs/commands.md#regaug-{name.replace(' ', '-')})"
        rows.append([link, _cell(first), f"`{_cell(example)}`"])
    return table(["command", "what it does", "example"], rows)


def makers() -> dict[str, Callable[[], list[str]]]:
    """Return what makes the table of options of every command."""
    return {name: partial(make_options, name) for name in commands()}


def make_options(name: str) -> list[str]:
    """Return the arguments and options of a command; in brackets what holds without one."""
    own = [own for own in commands()[name].params if own.help]
    rows = [[_written(option), _cell(f"{option.help}{_default(option)}")] for option in own]
    return table(["option", "what it does"], rows)


def _default(parameter: Any) -> str:
    """Return what holds without an option, where its help does not say so."""
    is_said = re.search(r"\[.+\]", parameter.help) is not None
    is_flag = isinstance(parameter.default, bool)
    return "" if parameter.default is None or is_flag or is_said else f" [{parameter.default}]"


def _written(parameter: Any) -> str:
    metavar = parameter.metavar or ""
    if parameter.param_type_name == "argument":
        return f"`{_cell(metavar or parameter.name.upper())}`"
    longest_first = sorted(parameter.opts, key=len, reverse=True)
    return ", ".join(f"`{_cell(f'{option} {metavar}')}`" for option in longest_first)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
