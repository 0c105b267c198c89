"""``regaug fit``: a model for a table, on disk."""

import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regaug.cli import names, options
from regaug.formatting import count, duration, sentences
from regaug.runs.processes import begin_early

if TYPE_CHECKING:
    from regaug.ensemble import Ensemble
    from regaug.ensemble.candidates import FitProgress
    from regaug.metrics import Scores


# Seconds between two looks at the clock, and between two lines while nothing is trained yet.
_LOOK, _PAUSE = 2.0, 10.0


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
            help="Folder of a study, such as runs/houses: fit what its verdict says to use, or the "
            "method that is named, with the settings that the study has found.",
        ),
    ] = None,
    members: Annotated[
        int, typer.Option(metavar="N", help="Nets in the ensemble of a named method.")
    ] = 8,
    quick: Annotated[
        bool, typer.Option("--quick", help="Try less: three folds, no augmentation, 2,000 rows.")
    ] = False,
    max_minutes: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            help="Begin nothing new after so many minutes, and use what is finished.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="An HTML file on what the model rests on, and where it is wrong."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same model.")] = 0,
    jobs: options.Jobs = 2,
    force: options.Force = False,
    as_json: options.AsJSON = False,
) -> None:
    """Fit a model to a table and write it to a folder.

    Some rows are put aside to measure how good it is and to make its intervals honest. What auto
    is made of is chosen on the other rows, eight times an eighth; it says the share of each. Press
    Ctrl-C once to get the best that was found so far.

    Example: regaug fit houses.csv --target price --out model/

    regaug fit houses.csv --target price --method gp --out model/

    regaug fit houses.csv --target price --from runs/houses --out model/

    regaug fit houses.csv --target price --method foma-rho --members 16 --out model/
    """
    if jobs > 1 and (method is None or method in names.MODELS):
        begin_early()
    from regaug.data.tabular.table import Table
    from regaug.ensemble import entry
    from regaug.ensemble.contents import AUTO
    from regaug.ensemble.folder import model_output
    from regaug.report import write_model_report
    from regaug.report.template import report_output
    from regaug.studies.study import Study
    from regaug.training.deadline import stoppable

    inputs = options.files_of(source)
    place = model_output(out, inputs=inputs, force=force, name="--out")
    page = None
    if report is not None:
        page = report_output(report, inputs=inputs, force=force, name="--report")
    if method is not None:
        entry.check_method(method)
    data = options.open_data(
        source, target=target, group=group, time=time, drop=drop, encoding=encoding
    )
    found = None if study is None else Study.open(study)
    if isinstance(data, Table):  # what was read, and what may be wrong with it, comes first
        typer.echo(data.summary, err=True)
    with stoppable(_say_stopped) as stop, _shown() as shown:
        how: dict[str, Any] = {
            "members": members,
            "seed": seed,
            "quick": quick,
            "jobs": jobs,
            "max_minutes": max_minutes,
            "stop": stop,
            "progress": shown,
        }
        if found is None:
            model = entry.fit(data, method=method or AUTO, **how)
        else:
            model = found.model(data, method=method, **how)
        is_stopped = stop.exists()
    model.save(place.path, force=force)
    diagnosis = None if page is None else model.diagnose()
    if page is not None and diagnosis is not None:
        write_model_report(diagnosis, page.path, force=force)
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
                "notes": model.notes,
                "is_stopped": is_stopped,
                "held_out": held_out,
                "report": None if report is None else str(report),
                "diagnosis": None if diagnosis is None else diagnosis.summary(),
            }
        )
        return
    if scores is not None:
        _print_scores(model, scores)
    for note in model.notes:
        typer.echo(note)
    if is_stopped:
        typer.echo("It was stopped: this is the best that was found until then.")
    if page is not None:
        typer.echo(sentences(f"The report is in {page.path}.", page.remark))
    use = f"Predict with: regaug predict {place.path} NEW.csv -o OUT.csv"
    typer.echo(sentences(f"The model is in {place.path}.", place.remark, use))


def _print_scores(model: "Ensemble", scores: "Scores") -> None:
    from regaug.cli.scores import in_words, target_table

    begin = f"{model.describe()}. On {scores.n:,} rows that were put aside"
    if len(model.targets) == 1:
        typer.echo(f"{begin}: {in_words(scores)}.")
        return
    typer.echo(f"{begin}:")
    options.print_table(target_table(scores, model.targets))


def _say_stopped() -> None:
    typer.echo("Stopping: what is under way ends, and the best so far is saved ...", err=True)


@contextmanager
def _shown() -> Iterator[Callable[["FitProgress"], None]]:
    """Give what says how many runs there are and how long they take, then shows a bar.

    On many rows a run takes minutes, so now and then it says how long it has been at it.
    """
    from regaug.training.bar import bar_from_first_call

    is_over, begin = threading.Event(), clock.monotonic()
    said = begin
    last: list[tuple[FitProgress, float]] = []
    with bar_from_first_call("run") as show:

        def observe(progress: "FitProgress") -> None:
            if not progress.done:
                planned = count(progress.total, progress.unit)
                most = "At most " if progress.unit == "epoch" else ""
                takes = f"this takes about {duration(progress.seconds_left)}"
                typer.echo(f"{most}{planned}; {takes}.", err=True)
            last[:] = [(progress, clock.monotonic())]
            show(progress.done, progress.total, progress.words, progress.unit)

        def go_on() -> None:
            nonlocal said
            while not is_over.wait(_LOOK):
                now = clock.monotonic()
                if not last and now - said >= _PAUSE:
                    said = now
                    words = f"Getting the rows ready: {duration(now - begin)} passed."
                    typer.echo(words, err=True)
                for progress, told in last:
                    left = duration(max(0.0, progress.seconds_left - (now - told)))
                    words = f"{duration(now - begin)} passed, about {left} left"
                    show(progress.done, progress.total, words, progress.unit)

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        try:
            yield observe
        finally:
            is_over.set()
            thread.join()
