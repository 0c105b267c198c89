"""What to type next: the model that a study advises, and how to use it."""

from pathlib import Path

import typer

from regaug._files import JSON
from regaug.cli.options import print_table
from regaug.formatting import TextTable, number
from regaug.metrics import METRICS
from regaug.report.recipe import OUT, about_model, command_recipe, python_recipe
from regaug.report.snippets import is_of_network, lightning_recipe, loop_recipe, weights_recipe
from regaug.studies.details import SHOWN
from regaug.studies.study import MODEL, Study


def show_advice(study: Study) -> None:
    """Print the command and the lines of Python that make the model; nothing if there are none."""
    command, script = command_recipe(study), python_recipe(study)
    _show_targets(study)
    if is_of_network(study):
        _show_network(study)
    if not script:
        return
    typer.echo(f"\nUse it ({study.advised}):")
    if command:
        typer.echo(f"  {command}\n  regaug predict {OUT} NEW.csv -o predicted.csv\nor in Python:")
    for line in filter(None, script.splitlines()):
        typer.echo(f"  {line}")
    if about := about_model(study):
        typer.echo(about)


def _show_network(study: Study) -> None:
    """Say where the settings are, for a loop of one's own and for Lightning, and the weights."""
    name = study.verdict.recommended
    typer.echo(
        f"\nUse it: the report ends with the settings of {name} as Python, for a loop of your own "
        "and for Lightning."
    )
    if (file := study.weights(name)) is not None:
        typer.echo(f"Weights of the net that the first split has chosen: {file}")


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
        **_network_advice(study),
    }


def _network_advice(study: Study) -> dict[str, JSON]:
    if not is_of_network(study):
        return {}
    name = study.verdict.recommended
    file = study.weights(name)
    return {
        "loop": loop_recipe(study, name),
        "lightning": lightning_recipe(study, name),
        "load": weights_recipe(study, name),
        "weights": None if file is None else str(file),
    }
