"""``regaug compare``: which augmentation helps on some data?"""

import json
import re
import sys
import time as clock
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from regaug.cli.live import Live, say_time
from regaug.cli.options import ExecutorName, Jobs, Out, RayAddress
from regaug.cli.tables import AsJSON, Drop, Group, Target, Time, open_data
from regaug.data.base import Data
from regaug.exceptions import RegaugError
from regaug.report import describe, read_facts, write_facts, write_report
from regaug.runs.store import Store
from regaug.studies.auto import fit_recommended
from regaug.studies.compare import Plan, estimate_seconds, make_plan, run_plan
from regaug.studies.study import Study

Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DATA]...", help="CSV or Parquet files, or names of data sets."),
]


def compare(
    sources: Sources = None,
    target: Target = None,
    group: Group = None,
    time: Time = None,
    drop: Drop = None,
    split: Annotated[
        str | None,
        typer.Option(help="random, group or time [by group or time if there is such a column]."),
    ] = None,
    metric: Annotated[str, typer.Option(help="rmse, mae or mape.")] = "rmse",
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", "-m", help="Names with commas between them [all nine]."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Settings tried of every method [20].")] = None,
    splits: Annotated[int | None, typer.Option(help="Repeated splits of the data [10].")] = None,
    search: Annotated[
        str, typer.Option(help="random, or tpe, which learns from earlier settings.")
    ] = "random",
    quick: Annotated[bool, typer.Option(help="Five methods, 8 settings, 5 splits.")] = False,
    max_minutes: Annotated[
        float | None, typer.Option(help="Start nothing new after so many minutes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    jobs: Jobs = 2,
    executor: ExecutorName = "process",
    ray_address: RayAddress = None,
    out: Out = Path("runs"),
    as_json: AsJSON = False,
) -> None:
    """Compare the methods on your data, and say which of them helps.

    Every method, plain training included, gets the same number of settings on the same splits of
    the data. Without DATA it takes a built-in table. Press Ctrl-C once to stop and get a report on
    what is finished; the same command continues.

    Example: regaug compare houses.csv --target price --quick
    """
    names = [name for given in methods or () for name in given.split(",")]
    found = []
    for source in sources or ["diabetes"]:
        given = {"target": target, "group": group, "time": time, "drop": drop}
        data = open_data(source, **given)  # type: ignore[arg-type]
        plan = make_plan(
            data,
            methods=names or None,
            trials=trials,
            splits=splits,
            kind=split,  # type: ignore[arg-type]
            metric=metric,  # type: ignore[arg-type]
            seed=seed,
            quick=quick,
            search=search,  # type: ignore[arg-type]
        )
        folder = out / re.sub(r"[^\w-]+", "-", Path(data.info.name).stem)
        store = Store(folder, plan.configuration)
        summary = "\n".join([getattr(data, "summary", data.info.name), *plan.notes])
        write_facts(folder, describe(plan.splits[0], summary, given={"source": source, **given}))
        _announce(plan, summary, store, jobs)
        start = clock.perf_counter()
        done = Counter(stored.run["method"] for stored in store.results().values())
        # Ray tells on the standard output that a process died; that is no part of the results.
        with redirect_stdout(sys.stderr), Live(plan, done) as live:
            is_complete = run_plan(
                plan,
                store,
                jobs=jobs,
                executor=executor,  # type: ignore[arg-type]
                ray_address=ray_address,
                max_minutes=max_minutes,
                watch=live.update,
            )
        typer.echo(f"done in {say_time(clock.perf_counter() - start)}", err=True)
        study = Study.read(plan.configuration, list(store.results().values()))
        report = write_report(study, folder / "report.html", facts=read_facts(folder))
        model = _fit_model(data, study, folder / "model", seed) if is_complete else None
        found.append(_as_dict(folder, study, report, model))
        if not as_json:
            _show(study)
            _show_files(folder, report, model, study)
    if as_json:
        typer.echo(json.dumps(found, indent=2))


def _fit_model(data: Data, study: Study, folder: Path, seed: int) -> Path | None:
    typer.echo(f"fitting the model, with {study.verdict.recommended} ...", err=True)
    try:
        fit_recommended(data, study, seed=seed).save(folder)
    except RegaugError as error:  # the study is worth telling all the same
        typer.echo(f"No model was made: {error}", err=True)
        return None
    return folder


def _announce(plan: Plan, summary: str, store: Store, jobs: int) -> None:
    # Not by key: the plan of a search that learns does not know all settings yet.
    done = {_place(stored.run) for stored in store.results().values()}
    left = [run for run in plan.runs if _place(run.describe()) not in done]
    typer.echo(summary, err=True)
    for damage in store.damaged:
        typer.echo(f"Note: {damage}", err=True)
    already = len(plan.runs) - len(left)
    before = f", {already:,} of them done" if already else ""
    time_left = say_time(estimate_seconds(plan, left) / jobs)
    typer.echo(f"{len(plan.runs):,} runs{before}; this takes about {time_left}.", err=True)


def _place(run: Mapping[str, Any]) -> tuple[str, int | None, int]:
    return run["method"], run.get("trial"), run["split"]


def _show(study: Study) -> None:
    from rich.console import Console
    from rich.table import Table

    metric = study.configuration["metric"]
    unit = " %" if study.comparison.unit == "percent" else ""
    table = Table(
        "method", metric, "95 % interval", "against erm", "95 % interval", "won", box=None
    )
    for row in study.comparison.rows:
        table.add_row(
            row.name + (" *" if row.is_significant else ""),
            "failed" if row.mean is None else f"{row.mean:.4g}",
            _between(row.low, row.high, "{:.4g}"),
            "" if row.change is None else f"{row.change:+.3g}{unit}",
            _between(row.change_low, row.change_high, "{:+.3g}"),
            "" if row.won is None else f"{row.won:.0%}",
        )
    Console().print(table)
    if any(row.is_significant for row in study.comparison.rows):
        typer.echo("* differs from plain training, all comparisons taken together")
    typer.echo(f"\n{study.verdict.text}")


def _show_files(folder: Path, report: Path, model: Path | None, study: Study) -> None:
    typer.echo(f"\nreport: {report}")
    if model is not None:
        typer.echo(
            f"model:  {model} ({study.verdict.recommended}; its intervals are measured on rows "
            "that took part in the choice: `regaug fit` keeps them apart)"
        )
    typer.echo(f"runs:   {folder}")


def _between(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f"{form.format(low)} to {form.format(high)}"


def _as_dict(folder: Path, study: Study, report: Path, model: Path | None) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "report": str(report),
        "model": None if model is None else str(model),
        "configuration": dict(study.configuration),
        "trials": study.trials,
        "verdict": study.verdict.text,
        "recommended": study.verdict.recommended,
        "rows": study.comparison.to_dict()["rows"],
        "settings": {name: dict(run) for name, run in study.settings.items()},
    }
