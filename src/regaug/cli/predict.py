"""``regaug predict``: apply a model to a new table."""

from pathlib import Path
from typing import Annotated

import typer

from regaug.cli.options import AsJSON, Encoding, print_json, write_table
from regaug.data.tabular.sources import read_cells, read_gaps, typed
from regaug.ensemble import Ensemble


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a fitted model.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A table (CSV, Excel, Parquet, Feather, JSON lines), or - for CSV from the "
            "standard input.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A CSV or Parquet file to write.")],
    interval: Annotated[
        float | None,
        typer.Option(
            help="Share of rows whose target is to lie in its interval; 0.9 if the model has "
            "intervals."
        ),
    ] = None,
    encoding: Encoding = None,
    as_json: AsJSON = False,
) -> None:
    """Predict every row of a table; its own columns are kept.

    New columns: the mean of the nets, how far they disagree, and the ends of an interval. A model
    that was trained on all its rows has no intervals.

    Example: regaug predict model/ new.csv -o predicted.csv
    """
    ensemble = Ensemble.load(model)
    if interval is None and ensemble.calibration is not None:
        interval = 0.9
    cells = read_cells(source, encoding=encoding)
    # A model of a named data set was fitted on an array: its columns have an order and no names.
    rows = read_gaps(cells) if ensemble.preparation.encoder else typed(cells).to_numpy()
    prediction = ensemble.predict(rows, interval=interval)
    # Cells of a text file as they stand there: 007 is not 7, and NA is no gap.
    frame = typed(cells) if out.suffix.lower() == ".parquet" else cells.frame
    write_table(prediction.to_frame(frame), out)
    if as_json:
        print_json({"rows": len(frame), "written": str(out)})
    else:
        typer.echo(f"{len(frame):,} rows predicted; written to {out}.")
