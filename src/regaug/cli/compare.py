"""``regaug compare``: which augmentation helps on some data?"""

import sys
import time as clock
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regaug._scripts import blaming
from regaug.cli import names, options, problems
from regaug.formatting import duration
from regaug.runs.processes import begin_early

if TYPE_CHECKING:
    from regaug._files import JSON
    from regaug.studies.study import Study

SPLITS = ("random", "group", "time")


def compare(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="Tables (CSV, Excel, Parquet, Feather, JSON lines), - for CSV from the standard "
            "input, names of data sets, or Python files of your own, study.py:problem.",
            autocompletion=names.dataset,
        ),
    ] = None,
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    encoding: options.Encoding = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="random, group or time [by group or time if there is such a column].",
            autocompletion=names.one_of(SPLITS),
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"What chooses and is compared: {names.describe(names.METRICS)} [rmse, or that "
            "of the problem].",
            autocompletion=names.one_of(names.METRICS),
        ),
    ] = None,
    focus: Annotated[
        str | None,
        typer.Option(
            metavar="END|COLUMN",
            help="Which targets tail-rmse is of: high, low or both [both]; with another metric a "
            "column that says from 0 to 1 how much each row matters to smogn, and is no input.",
            autocompletion=names.one_of(names.FOCUSES),
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="NAMES",
            help=f"Names with commas between them [all before {names.UNUSUAL[0]}]: "
            f"{', '.join(names.METHODS)}; of a regressor {', '.join(names.MAKERS)} too.",
            autocompletion=names.several_of(names.METHODS, names.MAKERS),
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"What is trained [nets]: {', '.join(names.TRAINED)}, or where a function makes a "
            "regressor of scikit-learn or a network: module:make, file.py:make. For a regressor "
            "every method makes new training rows.",
            autocompletion=names.one_of(names.TRAINED),
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows of the same columns that were made elsewhere: one more method, for a "
            "regressor.",
        ),
    ] = None,
    keep_integers: Annotated[
        bool,
        typer.Option("--keep-integers", help="Whole numbers stay whole in a regressor's new rows."),
    ] = False,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Settings of every method [6].")
    ] = None,
    splits: Annotated[
        int | None, typer.Option(metavar="N", help="Repeated splits of the data [10].")
    ] = None,
    search: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="random, or tpe, which learns from earlier settings.",
            autocompletion=names.one_of(("random", "tpe")),
        ),
    ] = "random",
    quick: Annotated[
        bool, typer.Option("--quick", help="Five methods, 3 settings, 5 splits.")
    ] = False,
    max_minutes: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            help="Start nothing new after so many minutes; a network's study is planned to fit.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Epochs of every training of a network [chosen]."),
    ] = None,
    fair: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What every method gets the same of, for a network: epochs or time.",
            autocompletion=names.one_of(("epochs", "time")),
        ),
    ] = "epochs",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same table.")] = 0,
    jobs: options.JobsOrAll = None,
    executor: options.ExecutorName = "process",
    ray_address: options.RayAddress = None,
    ray_runtime_env: options.RayRuntimeEnv = None,
    gpus_per_run: options.GPUsPerRun = 0.0,
    out: options.Out = Path("runs"),
    as_json: options.AsJSON = False,
) -> None:
    """Compare the methods on your data, and say which of them helps.

    First it looks for good recipes of plain training, then it runs every method equally often at
    the best of them on the same splits of the data, and compares the ensembles. Without DATA it
    takes a built-in table. Images, series and pairs have a network of their own; study.py:problem
    is a function in a file of yours that returns a regaug.Problem, with any network. Press Ctrl-C
    once to stop and get a report on what is finished; the same command continues.

    Example: regaug compare houses.csv --target price --quick
    """
    jobs = options.find_jobs(jobs, executor, ray_address)
    if jobs != 1 and executor == "process":
        begin_early()
    from regaug.cli.advice import show_advice
    from regaug.cli.live import Live
    from regaug.metrics import focused
    from regaug.studies.compare import compare as run_study
    from regaug.studies.inputs import check_relevance
    from regaug.studies.leaderboard import leaderboard

    wanted = [name for given in methods or () for name in given.split(",")]
    found = []
    for source in sources or ["diabetes"]:
        columns: dict[str, Any] = {"target": target, "group": group, "time": time}
        relevance = options.as_relevance(focus)
        columns |= {"drop": drop, "encoding": encoding, "relevance": relevance}
        others = {**columns, "split": split}
        wish = metric
        if relevance is not None:
            check_relevance(relevance, metric or "rmse", wanted)
        elif focus:
            wish = focused(metric or "rmse", focus)  # type: ignore[arg-type]
        problem = problems.open_problem(source, others, metric=wish, splits=splits, quick=quick)
        data = problem or options.open_data(source, **columns)
        start = clock.perf_counter()
        # Ray tells on the standard output that a process died; that is no part of the results.
        with redirect_stdout(sys.stderr), Live() as live, blaming():
            study = run_study(
                data,
                methods=wanted or None,
                trials=trials,
                splits=splits,
                split=split,  # type: ignore[arg-type]
                metric=wish or "rmse",  # type: ignore[arg-type]
                seed=seed,
                quick=quick,
                search=search,  # type: ignore[arg-type]
                jobs=jobs,
                executor=executor,  # type: ignore[arg-type]
                ray_address=ray_address,
                ray_runtime_env=ray_runtime_env,
                gpus_per_run=gpus_per_run,
                max_minutes=max_minutes,
                epochs=epochs,
                fair=fair,  # type: ignore[arg-type]
                out=out,
                progress=live,
                model=model,
                rows=rows,
                keep_integers=keep_integers,
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


def _show_files(study: "Study") -> None:
    from regaug.studies.latest import LATEST, REPORT

    if study.folder is None:
        return
    report, latest = study.folder / REPORT, study.folder.with_name(LATEST) / REPORT
    is_linked = latest.exists() and latest.samefile(report)
    typer.echo(f"\nreport: {report}{f' (now also {latest})' if is_linked else ''}")
    typer.echo(f"runs:   {study.folder}")


def _as_dict(study: "Study") -> "dict[str, JSON]":
    from regaug.cli.advice import advice_of
    from regaug.studies.latest import REPORT

    folder = study.folder or Path()
    found = {"folder": str(folder), "report": str(folder / REPORT)}
    return {**found, **advice_of(study), **study.to_dict()}
