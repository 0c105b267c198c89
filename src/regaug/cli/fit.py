"""``regaug fit``: a model for a table, on disk."""

from pathlib import Path
from typing import Annotated

import typer

from regaug.cli import options
from regaug.cli.live import Live
from regaug.exceptions import CheckpointError
from regaug.studies.auto import AUTO
from regaug.studies.auto import fit as fit_model

FILES = {"model.json", "model.safetensors"}


def fit(
    source: options.TableName,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    method: Annotated[
        str, typer.Option(help="A method's name; auto takes what a quick study recommends.")
    ] = AUTO,
    members: Annotated[int, typer.Option(help="Nets in the ensemble.")] = 8,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    jobs: options.Jobs = 2,
    as_json: options.AsJSON = False,
) -> None:
    """Fit an ensemble of nets to a table and write it to a folder.

    Some rows are put aside to measure how good it is and to make its intervals honest.

    Example: regaug fit houses.csv --target price --out model/
    """
    data = options.open_data(source, target=target, group=group, time=time, drop=drop)
    _check_free(out)
    if method == AUTO:
        typer.echo("A quick study chooses the method; this takes a minute or so.", err=True)
    with Live() as live:
        model = fit_model(data, method=method, members=members, seed=seed, jobs=jobs, progress=live)
    model.save(out)
    scores = model.held_out
    if as_json:
        held_out = scores and scores.to_dict()
        options.print_json({"model": str(out), "method": model.method, "held_out": held_out})
        return
    if scores is not None:
        explained = "" if scores.r2 is None else f", R2 {scores.r2:.3f}"
        typer.echo(
            f"{model.method}, {len(model.members)} nets; on {scores.n} rows that were put aside: "
            f"RMSE {scores.rmse:.4g}{explained}."
        )
    typer.echo(f"The model is in {out}. Predict with: regaug predict {out} NEW.csv -o OUT.csv")


def _check_free(out: Path) -> None:
    """Say before the training, not after it, that the model cannot be written there."""
    is_file = out.exists() and not out.is_dir()
    if is_file or (out.is_dir() and {file.name for file in out.iterdir()} - FILES):
        raise CheckpointError(
            f"`--out` must be a new folder or one with a model and nothing else, got {out}. "
            "Name another."
        )
