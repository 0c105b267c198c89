"""``regaug predict``: apply a model to a new table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regaug.cli.options import AsJSON, Force, output, print_json, write_table
from regaug.formatting import sentences

DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".tab": "\t"}  # as in reading, the first that fits


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a fitted model.")],
    source: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="A new CSV or Parquet file to write."),
    ],
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of rows whose target is to lie in its interval; 0.9 if the model has "
            "intervals.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJSON = False,
) -> None:
    """Predict every row of a table; its own columns are kept.

    New columns: the mean of the nets, how far they disagree, and the ends of an interval. A model
    that was trained on all its rows has no intervals.

    Example: regaug predict model/ new.csv -o predicted.csv
    """
    from regaug.data.tabular.sources import read_frame
    from regaug.ensemble import Ensemble

    place = output(out, Path(source), model, force=force)
    ensemble = Ensemble.load(model)
    if interval is None and ensemble.calibration is not None:
        interval = 0.9
    frame = read_frame(source)
    # A model of a named data set was fitted on an array: its columns have an order and no names.
    rows = frame if ensemble.preparation.encoder else frame.to_numpy()
    prediction = ensemble.predict(rows, interval=interval)
    if place.path.suffix.lower() != ".parquet":
        frame = _as_written(Path(source).expanduser(), frame)
    write_table(prediction.to_frame(frame), place)
    if as_json:
        found = {"rows": len(frame), "written": str(place.path), "replaces": place.replaces}
        print_json(found)
    else:
        written = f"{len(frame):,} rows predicted; written to {place.path}."
        typer.echo(sentences(written, place.remark))


def _as_written(path: Path, frame: Any) -> Any:
    """Return the cells of a text file as they stand there: 007 is not 7, and NA is no gap."""
    import pandas as pd

    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    options = {"dtype": str, "keep_default_na": False, "index_col": False, "encoding": "utf-8-sig"}
    for delimiter in DELIMITERS.get(ending, ""):
        header = pd.read_csv(path, sep=delimiter, nrows=0, **options)
        if header.shape[1] == frame.shape[1]:
            return pd.read_csv(path, sep=delimiter, **options).set_axis(frame.columns, axis=1)
    return frame
