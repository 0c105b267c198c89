"""``regaug compare``: which augmentation helps on some data?"""

import re
import sys
import time as clock
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from regaug._files import JSON
from regaug.cli import options
from regaug.cli.advice import advice_of, show_advice
from regaug.cli.live import Live
from regaug.formatting import duration
from regaug.studies.compare import compare as run_study
from regaug.studies.leaderboard import leaderboard
from regaug.studies.study import REPORT, Study


def compare(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA]...", help="CSV or Parquet files, or names of data sets."),
    ] = None,
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    split: Annotated[
        str | None,
        typer.Option(help="random, group or time [by group or time if there is such a column]."),
    ] = None,
    metric: Annotated[str, typer.Option(help="rmse, mae, mape, r2 or pearson.")] = "rmse",
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "-m", help="Names with commas between them [all nine]."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Settings of every method [6].")] = None,
    splits: Annotated[int | None, typer.Option(help="Repeated splits of the data [10].")] = None,
    search: Annotated[
        str, typer.Option(help="random, or tpe, which learns from earlier settings.")
    ] = "random",
    quick: Annotated[bool, typer.Option(help="Five methods, 4 settings, 5 splits.")] = False,
    max_minutes: Annotated[
        float | None, typer.Option(help="Start nothing new after so many minutes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    jobs: options.Jobs = 2,
    executor: options.ExecutorName = "process",
    ray_address: options.RayAddress = None,
    out: options.Out = Path("runs"),
    as_json: options.AsJSON = False,
) -> None:
    """Compare the methods on your data, and say which of them helps.

    First it looks for good recipes of plain training, then it runs every method equally often at
    the best of them on the same splits of the data, and compares the ensembles. Without DATA it
    takes a built-in table. Press Ctrl-C once to stop and get a report on what is finished; the same
    command continues.

    Example: regaug compare houses.csv --target price --quick
    """
    names = [name for given in methods or () for name in given.split(",")]
    found = []
    for source in sources or ["diabetes"]:
        data = options.open_data(source, target=target, group=group, time=time, drop=drop)
        start = clock.perf_counter()
        # Ray tells on the standard output that a process died; that is no part of the results.
        with redirect_stdout(sys.stderr), Live() as live:
            study = run_study(
                data,
                methods=names or None,
                trials=trials,
                splits=splits,
                split=split,  # type: ignore[arg-type]
                metric=metric,  # type: ignore[arg-type]
                seed=seed,
                quick=quick,
                search=search,  # type: ignore[arg-type]
                jobs=jobs,
                executor=executor,  # type: ignore[arg-type]
                ray_address=ray_address,
                max_minutes=max_minutes,
                out=out / re.sub(r"[^\w-]+", "-", Path(data.info.name).stem),
                progress=live,
            )
        typer.echo(f"done in {duration(clock.perf_counter() - start)}", err=True)
        for note in study.notes:
            typer.echo(note, err=True)
        found.append(_as_dict(study))
        if not as_json:
            options.print_table(
                leaderboard(study.comparison),
                wide=leaderboard(study.comparison, details=study.details),
            )
            typer.echo(f"\n{study.verdict.text}")
            options.print_checks(study.checks)
            show_advice(study)
            _show_files(study)
    if as_json:
        options.print_json(found)


def _show_files(study: Study) -> None:
    if study.folder is None:
        return
    typer.echo(f"\nreport: {study.folder / REPORT}")
    typer.echo(f"runs:   {study.folder}")


def _as_dict(study: Study) -> dict[str, JSON]:
    folder = study.folder or Path()
    found = {"folder": str(folder), "report": str(folder / REPORT)}
    return {**found, **advice_of(study), **study.to_dict()}
