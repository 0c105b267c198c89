"""``regaug predict``: apply a model to a new table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regaug.cli.options import AsJSON, print_json, write_table
from regaug.cli.scores import as_plain, show_scores
from regaug.data.tabular.sources import read_frame
from regaug.ensemble import Ensemble
from regaug.formatting import percent

DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".tab": "\t"}  # as in reading, the first that fits


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a fitted model.")],
    source: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A CSV or Parquet file to write.")],
    interval: Annotated[
        float | None,
        typer.Option(
            help="Share of rows whose target is to lie in its interval; 0.9, or what the rows that "
            "were put aside allow."
        ),
    ] = None,
    as_json: AsJSON = False,
) -> None:
    """Predict every row of a table; its own columns are kept.

    New columns: the mean of the models, how far they disagree, and the ends of an interval. A model
    that was trained on all its rows has no intervals. If the table has the target, it says how good
    the predictions are, by group if the model was fitted with --group.

    Example: regaug predict model/ new.csv -o predicted.csv
    """
    ensemble = Ensemble.load(model)
    level = ensemble.usual_interval if interval is None else interval
    frame = read_frame(source)
    # A model of a named data set was fitted on an array: its columns have an order and no names.
    rows = frame if ensemble.preparation.encoder else frame.to_numpy()
    prediction = ensemble.predict(rows, interval=level)
    if out.suffix.lower() != ".parquet":
        frame = _as_written(Path(source).expanduser(), frame)
    write_table(prediction.to_frame(frame), out)
    if as_json:
        found = {"rows": len(frame), "written": str(out), "interval": level}
        print_json(found | as_plain(prediction))
        return
    typer.echo(f"{len(frame):,} rows predicted; written to {out}.")
    if interval is None and level is not None and level < 0.9:
        typer.echo(
            f"The intervals hold for {percent(level)} of new rows: the model has put aside too few "
            "for more."
        )
    show_scores(prediction, level, group=ensemble.group)


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
