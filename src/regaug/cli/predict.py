"""``regaug predict``: apply a model to a new table."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regaug.cli.tables import AsJSON
from regaug.cli.writing import write_table
from regaug.data.sources import read_frame
from regaug.ensemble import Ensemble


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a fitted model.")],
    source: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A CSV or Parquet file to write.")],
    interval: Annotated[
        float, typer.Option(help="Share of rows whose target is to lie in its interval.")
    ] = 0.9,
    as_json: AsJSON = False,
) -> None:
    """Predict every row of a table; its own columns are kept.

    New columns: the mean of the nets, how far they disagree, and the ends of an interval.

    Example: regaug predict model/ new.csv -o predicted.csv
    """
    ensemble = Ensemble.load(model)
    frame = read_frame(source)
    prediction = ensemble.predict(frame, interval=interval)
    write_table(prediction.to_frame(frame), out)
    if as_json:
        typer.echo(json.dumps({"rows": len(frame), "written": str(out)}, indent=2))
    else:
        typer.echo(f"{len(frame):,} rows predicted; written to {out}.")
