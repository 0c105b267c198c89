"""``regaug augment``: new rows for a table, in its own units."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regaug.cli import names, options
from regaug.exceptions import ArgumentError
from regaug.formatting import sentences


def augment(
    source: options.TableName,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="New rows to make.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="A new CSV or Parquet file to write."),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A method that acts on inputs, such as foma-rho or cems; or smogn, for rows where "
            "targets are rare [epbeta-mixup, which keeps the spread of the table].",
            show_default=False,
            autocompletion=names.one_of(names.METHODS, names.MAKERS),
        ),
    ] = "epbeta-mixup",
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    encoding: options.Encoding = None,
    focus: Annotated[
        str | None,
        typer.Option(
            metavar="END|COLUMN",
            help="Which targets are rare to smogn: the tenth with the highest (high), the lowest "
            "(low) or both; or a column that says from 0 to 1 how much each row matters, and is no "
            "input [by their box plot].",
            autocompletion=names.one_of(names.FOCUSES),
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Write the table's own rows too, before the new ones.")
    ] = False,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="The same seed gives the same rows.")
    ] = 0,
    safe_csv: options.SafeCSV = False,
    force: options.Force = False,
    as_json: options.AsJSON = False,
) -> None:
    """Make new rows for a table, in its own units and column names.

    The rows are for training only, and made from all rows of the table: put test rows aside before.
    Columns that are no inputs are left out: groups, times, dropped ones, and those that tell rows
    apart.

    Example: regaug augment train.csv --target price --method cems --rows 2000 -o more.csv
    """
    from regaug.data.tabular.generation import generate
    from regaug.data.tabular.moments import Moments
    from regaug.data.tabular.table import Table
    from regaug.methods import is_for_rare

    if focus is not None and method != "smogn":
        raise ArgumentError(
            f"`--focus` must be left out for the method {method!r}, which does not look for rare "
            "targets. Take --method smogn."
        )
    place = options.output(out, source, force=force)
    columns: dict[str, Any] = {"target": target, "group": group, "time": time, "drop": drop}
    columns |= {"encoding": encoding, "relevance": options.as_relevance(focus)}
    data = options.open_data(source, **columns)
    changes = {} if focus is None else {"focus": focus}
    new = generate(
        data, method=method, rows=rows, seed=seed, method_settings=changes, append=append
    )
    options.write_table(new, place, safe=safe_csv)
    columns = data.frame.columns if isinstance(data, Table) else new.columns
    left_out = [name for name in columns if name not in new.columns]
    own_rows, moments = len(new) - rows, Moments.of(data, new.tail(rows))
    if as_json:
        made = {"new_rows": rows, "own_rows": own_rows, "left_out": left_out}
        made["moments"] = moments.to_dict()
        head = {"written": str(place.path), "replaces": place.replaces, "method": method}
        options.print_json({**head, **made})
        return
    own = f"{own_rows:,} rows of the table and " if append else ""
    written = f"{own}{rows:,} new rows, made by {method}, written to {place.path}."
    typer.echo(sentences(written, place.remark))
    if left_out:
        typer.echo(f"Left out, as they are no inputs: {', '.join(map(repr, left_out))}.")
    for line in moments.lines():
        typer.echo(line)
    # Rows where targets are rare are meant to be others.
    if not is_for_rare(method) and (advice := moments.advice(method)):
        typer.echo(advice)
    typer.echo("They are for training only: measure errors on rows that they were not made from.")
