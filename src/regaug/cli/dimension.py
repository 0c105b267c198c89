"""``regaug dimension``: how many dimensions a table really has."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regaug._outputs import MARK, Output, has_mark
from regaug._registry import lookup
from regaug.cli import options
from regaug.formatting import sentences

if TYPE_CHECKING:
    from torch import Tensor

    from regaug.data.base import Data
    from regaug.dimension import TwoNN

# Rows that TwoNN looks at; more change hardly anything.
MOST_POINTS = 20_000
SHARES = (0.9, 0.95, 0.99)
PICTURES = (".svg", ".png", ".pdf")


def dimension(
    source: options.TableName,
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    encoding: options.Encoding = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the plot: .svg, .png or .pdf.")
    ] = None,
    force: options.Force = False,
    as_json: options.AsJSON = False,
) -> None:
    """Estimate the intrinsic dimension of a table.

    Inputs and target, if it is named, are taken together. TwoNN looks at how far each row's two
    nearest neighbors are; the linear dimension counts the leading directions that hold at most 90,
    95 and 99 % of the sum of singular values, as FOMA's rho does. Columns are standardized; with a
    target, the training rows of the first split are used, without one all rows.

    Example: regaug dimension houses.csv --target price --plot dimension.svg
    """
    from regaug.dimension import linear_dimension, two_nn

    rules = {"name": "--plot", "endings": PICTURES, "is_own": has_mark, "force": force}
    place = None if plot is None else options.output(plot, source, **rules)
    if target or options.is_name(source):
        data = options.open_data(
            source, target=target, group=group, time=time, drop=drop, encoding=encoding
        )
        rows = _joint_rows(data)
    else:
        rows = _all_columns(source, [*(drop or ()), *filter(None, (group, time))], encoding)
    found = two_nn(rows, max_points=MOST_POINTS)
    looked_at = min(len(rows), MOST_POINTS)
    linear = dict(zip(SHARES, linear_dimension(rows, shares=SHARES), strict=True))
    if place is not None:
        _save_plot(found, place)
    if as_json:
        values = {
            "rows": len(rows),
            "looked_at": looked_at,
            "columns": rows.shape[1],
            "two_nn": found.dimension,
            "two_nn_ml": found.dimension_ml,
            "dropped": found.n_dropped,
            "linear": {str(share): value for share, value in linear.items()},
        }
        options.print_json(values)
        return
    typer.echo(f"{len(rows):,} rows, {rows.shape[1]} columns (inputs and targets)")
    typer.echo(f"TwoNN: {found.dimension:.2f} (maximum likelihood: {found.dimension_ml:.2f})")
    if looked_at < len(rows):
        typer.echo(f"TwoNN has looked at {looked_at:,} rows, drawn at random; linear at all.")
    if found.n_dropped:
        typer.echo(f"{found.n_dropped} rows were left out: another row is equal to them.")
    listed = ", ".join(f"{value} at {share:.0%}" for share, value in linear.items())
    typer.echo(f"linear: {listed}")
    if place is not None:
        typer.echo(sentences(f"The plot is in {place.path}.", place.remark))


def _joint_rows(data: "Data") -> "Tensor":
    import torch

    from regaug.data.scaling import standardize

    split = standardize(data.split(seed=0))
    return torch.cat([torch.as_tensor(split.train.x[:]).flatten(1), split.train.y], dim=1)


def _all_columns(source: str, left_out: list[str], encoding: str | None) -> "Tensor":
    import torch

    from regaug.data.scaling import Scaler
    from regaug.data.tabular.discovery import read_columns
    from regaug.data.tabular.encoding import Encoder
    from regaug.data.tabular.sources import read_cells, read_gaps

    frame = read_gaps(read_cells(source, encoding=encoding))
    for name in left_out:
        lookup("column", name, dict.fromkeys(frame.columns))
    kept = [name for name in frame.columns if name not in left_out]
    read = read_columns(frame[kept])
    encoder = Encoder.fit(read.frame, readings=read.readings)
    rows = torch.from_numpy(encoder.transform(read.frame))
    return Scaler.fit(rows).transform(rows)


def _save_plot(found: "TwoNN", out: Output) -> None:
    from matplotlib.figure import Figure

    from regaug._files import write_whole

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(found.log_mu, found.neg_log_survival, ".", markersize=4, label="rows")
    reach = float(found.log_mu.max())
    axes.plot([0, reach], [0, found.dimension * reach], label=f"slope {found.dimension:.2f}")
    axes.set(title="TwoNN: the slope is the dimension", ylabel="-log(1 - F)")
    axes.set(xlabel="log(r2 / r1): distance to the second and the first neighbor")
    axes.legend()
    form = out.path.suffix[1:].lower()
    mark = {"Software" if form == "png" else "Creator": MARK}
    out.check()
    write_whole(out.path, lambda file: figure.savefig(file, format=form, metadata=mark))
