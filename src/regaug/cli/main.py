"""The command ``regaug``: where the commands come together and errors become one line."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from regaug._version import __version__
from regaug.cli import data
from regaug.cli.augment import augment
from regaug.cli.compare import compare
from regaug.cli.dimension import dimension
from regaug.cli.fit import fit
from regaug.cli.lacks import say_lack
from regaug.cli.predict import predict
from regaug.cli.report import report
from regaug.cli.reproduce import reproduce
from regaug.cli.waiting import wait_asleep
from regaug.cli.wording import reword
from regaug.exceptions import RegaugError, ScriptError, UnknownNameError
from regaug.formatting import printable

FAILED, WRONG_USAGE = 1, 2


class Commands(TyperGroup):
    """Commands whose errors a user reads as one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        given = [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return super().invoke(ctx)
        except ScriptError as error:  # about the user's own code, in its own words
            typer.echo(f"Error: {printable(str(error))}", err=True)
            raise typer.Exit(FAILED) from error
        except RegaugError as error:
            message = printable(reword(str(error), self._options(ctx, given)))
            typer.echo(f"Error: {message}", err=True)
            is_misspelled = isinstance(error, UnknownNameError)
            raise typer.Exit(WRONG_USAGE if is_misspelled else FAILED) from error
        except (MemoryError, ImportError, OSError) as error:
            if (lack := say_lack(error)) is None:
                raise
            typer.echo(f"Error: {printable(lack)}", err=True)
            raise typer.Exit(FAILED) from error

    def _options(self, ctx: Any, given: list[str]) -> dict[str, str]:
        """Return what the options of the command that is run are called, by argument."""
        parameters = getattr(self.commands.get(ctx.invoked_subcommand), "params", ())
        found = {"data": "DATA", "source": "DATA"}
        for parameter in parameters:
            # The longest name is the one that says what it is: --out, not -o.
            found[parameter.name] = max(parameter.opts, key=len)
            if parameter.param_type_name == "argument":
                found[parameter.name] = parameter.metavar or parameter.name
        if not any(word.startswith("--model") for word in given):
            found.pop("model", None)  # the one that a file of the user's speaks of
        return found


class Command(TyperCommand):
    """A command whose help says what an argument is, not of which type in Python."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = lambda ctx: None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (compare, fit, predict, augment, dimension, report, reproduce):
    app.command(cls=Command)(command)
for inner in (data.list_, data.fetch, data.path):
    data.app.command(inner.__name__.rstrip("_"), cls=Command)(inner)
app.add_typer(data.app, name="data")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"regaug {__version__}")
        raise typer.Exit


@app.callback()
def regaug(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Data augmentation for regression."""


def main() -> None:
    """Run the command line of this process."""
    wait_asleep()
    sys.exit(app())


if __name__ == "__main__":
    main()
