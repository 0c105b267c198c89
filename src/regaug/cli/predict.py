"""``regaug predict``: apply a model to a new table."""

from pathlib import Path
from typing import Annotated

import typer

from regaug.cli.options import AsJSON, Encoding, Force, SafeCSV, output, print_json
from regaug.formatting import percent, sentences


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
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="A new CSV or Parquet file to write."),
    ],
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of rows whose target is to lie in its interval; 0.9, or what the rows that "
            "were put aside allow.",
        ),
    ] = None,
    encoding: Encoding = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse a table with cells that are no numbers or dates where the model needs "
            "such; otherwise they count as missing.",
        ),
    ] = False,
    safe_csv: SafeCSV = False,
    force: Force = False,
    as_json: AsJSON = False,
) -> None:
    """Predict every row of a table; its own columns are kept.

    New columns: the mean of the models, how far they disagree, and the ends of an interval. A model
    that was trained on all its rows has no intervals. If the table has the target, it says how good
    the predictions are, by group if the model was fitted with --group.

    Example: regaug predict model/ new.csv -o predicted.csv
    """
    from regaug.cli.scores import as_plain, show_scores
    from regaug.data.tabular.unusable import describe
    from regaug.ensemble import Ensemble
    from regaug.ensemble.table_file import TableProgress, predict_table
    from regaug.training.bar import bar_from_first_call

    place = output(out, Path(source), model, force=force)
    ensemble = Ensemble.load(model)
    level = ensemble.usual_interval if interval is None else interval
    with bar_from_first_call("percent") as show:

        def observe(progress: TableProgress) -> None:
            show(int(100 * progress.share), 100, progress.words)

        found = predict_table(
            ensemble,
            source,
            place,
            interval=level,
            encoding=encoding,
            strict=strict,
            safe=safe_csv,
            observer=observe,
        )
    unusable, prediction = found.unusable, found.prediction
    if as_json:
        facts = {"rows": found.rows, "written": str(place.path), "replaces": place.replaces}
        named = [cell.to_dict() for cell in unusable]
        print_json({**facts, "interval": level, "unusable": named, **as_plain(prediction)})
        return
    written = f"{found.rows:,} rows predicted; written to {place.path}."
    typer.echo(sentences(written, place.remark))
    if unusable:
        typer.echo(f"{describe(unusable)} Counted as missing; --strict refuses them.")
    if interval is None and level is not None and level < 0.9:
        typer.echo(
            f"The intervals hold for {percent(level)} of new rows: the model has put aside too few "
            "for more."
        )
    show_scores(prediction, level, group=ensemble.group)
