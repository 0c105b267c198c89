"""What to type next: the model that a study advises, and how to use it."""

from pathlib import Path

import typer

from regaug._files import JSON
from regaug.cli.options import print_table
from regaug.formatting import TextTable, number
from regaug.metrics import METRICS
from regaug.report.recipe import OUT, about_model, command_recipe, python_recipe
from regaug.studies.details import SHOWN
from regaug.studies.study import MODEL, Study


def show_advice(study: Study) -> None:
    """Print the command and the lines of Python that make the model; nothing if there are none."""
    command, script = command_recipe(study), python_recipe(study)
    _show_targets(study)
    if not script:
        return
    typer.echo(f"\nUse it ({study.advised}):")
    if command:
        typer.echo(f"  {command}\n  regaug predict {OUT} NEW.csv -o predicted.csv\nor in Python:")
    for line in filter(None, script.splitlines()):
        typer.echo(f"  {line}")
    if about := about_model(study):
        typer.echo(about)


def _show_targets(study: Study) -> None:
    """Print the scores of every target in its own units, of the row to use."""
    own = study.details.get(study.verdict.use)
    if own is None or not own.targets:
        return
    header = [study.verdict.use, *(METRICS[name].title for name in SHOWN)]
    rows = [
        [target, *(number(scores.get(name)) for name in SHOWN)]
        for target, scores in own.targets.items()
    ]
    typer.echo()
    print_table(TextTable("", header, rows))


def advice_of(study: Study) -> dict[str, JSON]:
    """Return the same for machines."""
    folder = study.folder or Path()
    return {
        "model": str(folder / MODEL) if (folder / MODEL).is_dir() else None,
        "advised": study.advised,
        "command": command_recipe(study),
        "python": python_recipe(study),
    }
