"""``regaug fit``: a model for a table, on disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regaug.cli import names, options
from regaug.formatting import number, sentences

if TYPE_CHECKING:
    from regaug.ensemble.candidates import FitProgress


def fit(
    source: options.TableName,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder for the model.")],
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    encoding: options.Encoding = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="auto blends nets and baselines (the default); nets leaves the baselines out; "
            "ridge, boosting, trees and gp are one of them; or a method's name.",
            autocompletion=names.one_of(names.MODELS, names.METHODS),
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Folder of a study, such as runs/houses: fit what its verdict says to use.",
        ),
    ] = None,
    members: Annotated[
        int, typer.Option(metavar="N", help="Nets in the ensemble of a named method.")
    ] = 8,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same model.")] = 0,
    jobs: options.Jobs = 2,
    force: options.Force = False,
    as_json: options.AsJSON = False,
) -> None:
    """Fit a model to a table and write it to a folder.

    Some rows are put aside to measure how good it is and to make its intervals honest. What auto
    is made of is chosen on the other rows, eight times an eighth; it says the share of each.

    Example: regaug fit houses.csv --target price --out model/

    regaug fit houses.csv --target price --method gp --out model/

    regaug fit houses.csv --target price --method foma-rho --members 16 --out model/
    """
    if method is not None and study is not None:
        raise typer.BadParameter("`--method` and `--from` both say what to fit. Give one of them.")
    from regaug.data.tabular.table import Table
    from regaug.ensemble import entry
    from regaug.ensemble.contents import AUTO
    from regaug.ensemble.folder import model_output
    from regaug.studies.study import Study

    place = model_output(out, inputs=options.files_of(source), force=force, name="--out")
    data = options.open_data(
        source, target=target, group=group, time=time, drop=drop, encoding=encoding
    )
    chosen = entry.check_method(method or (AUTO if study is None else Study.open(study).advised))
    if isinstance(data, Table):  # what was read, and what may be wrong with it, comes first
        typer.echo(data.summary, err=True)
    with _shown() as shown:
        model = entry.fit(
            data, method=chosen, members=members, seed=seed, jobs=jobs, progress=shown
        )
    model.save(place.path, force=force)
    scores = model.held_out
    if as_json:
        held_out = scores and scores.to_dict()
        options.print_json(
            {
                "model": str(place.path),
                "replaces": place.replaces,
                "method": model.method,
                "models": len(model),
                "shares": model.shares,
                "held_out": held_out,
            }
        )
        return
    if scores is not None:
        explained = "" if scores.r2 is None else f", R2 {scores.r2:.3f}"
        typer.echo(
            f"{model.describe()}. On {scores.n} rows that were put aside: "
            f"RMSE {number(scores.rmse)}{explained}."
        )
    use = f"Predict with: regaug predict {place.path} NEW.csv -o OUT.csv"
    typer.echo(sentences(f"The model is in {place.path}.", place.remark, use))


@contextmanager
def _shown() -> Iterator[Callable[["FitProgress"], None]]:
    """Give what says how many runs there are and how long they take, then shows a bar."""
    from regaug.cli.live import announce
    from regaug.training.bar import bar_from_first_call

    with bar_from_first_call("run") as show:

        def observe(progress: "FitProgress") -> None:
            if not progress.done:
                announce(progress.total, 0, progress.seconds_left, ())
            show(progress.done, progress.total, progress.method)

        yield observe
