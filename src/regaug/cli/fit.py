"""``regaug fit``: a model for a table, on disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from regaug.cli import options
from regaug.cli.scores import in_words, target_table
from regaug.ensemble import Ensemble
from regaug.ensemble.candidates import FitProgress
from regaug.ensemble.contents import AUTO
from regaug.ensemble.entry import fit as fit_model
from regaug.exceptions import ArgumentError, CheckpointError
from regaug.formatting import count, duration
from regaug.metrics import Scores
from regaug.report import write_model_report
from regaug.studies.study import Study
from regaug.training.bar import bar_from_first_call

FILES = {"model.json", "model.safetensors"}


def fit(
    source: options.TableName,
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    target: options.Target = None,
    group: options.Group = None,
    time: options.Time = None,
    drop: options.Drop = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="auto blends nets and baselines (the default); nets leaves the baselines out; "
            "ridge, boosting, trees and gp are one of them; or a method's name."
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Folder of a study: fit what its verdict says to use, or the method that is "
            "named, with the settings that the study has found.",
        ),
    ] = None,
    members: Annotated[int, typer.Option(help="Nets in the ensemble of a named method.")] = 8,
    quick: Annotated[
        bool, typer.Option("--quick", help="Try less: three folds, no augmentation, 2,000 rows.")
    ] = False,
    max_minutes: Annotated[
        float | None,
        typer.Option(help="Begin nothing new after so many minutes, and use what is finished."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="An HTML file on what the model rests on, and where it is wrong."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    jobs: options.Jobs = 2,
    as_json: options.AsJSON = False,
) -> None:
    """Fit a model to a table and write it to a folder.

    Some rows are put aside to measure how good it is and to make its intervals honest. What auto
    is made of is chosen on the other rows, eight times an eighth; it says the share of each.

    Example: regaug fit houses.csv --target price --out model/

    regaug fit houses.csv --target price --method gp --out model/

    regaug fit houses.csv --target price --from runs/houses --out model/

    regaug fit houses.csv --target price --method foma-rho --members 16 --out model/
    """
    data = options.open_data(source, target=target, group=group, time=time, drop=drop)
    _check_free(out)
    if report is not None and report.suffix.lower() != ".html":
        raise ArgumentError(f"`--report` must end in .html, got {str(report)!r}.")
    found = None if study is None else Study.open(study)
    with _shown() as shown:
        how: dict[str, Any] = {
            "members": members,
            "seed": seed,
            "quick": quick,
            "jobs": jobs,
            "max_minutes": max_minutes,
            "progress": shown,
        }
        if found is None:
            model = fit_model(data, method=method or AUTO, **how)
        else:
            model = found.model(data, method=method, **how)
    model.save(out)
    diagnosis = None if report is None else model.diagnose()
    if report is not None and diagnosis is not None:
        write_model_report(diagnosis, report)
    scores = model.held_out
    if as_json:
        held_out = scores and scores.to_dict()
        options.print_json(
            {
                "model": str(out),
                "method": model.method,
                "models": len(model),
                "shares": model.shares,
                "notes": model.notes,
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
    if report is not None:
        typer.echo(f"The report is in {report}.")
    typer.echo(f"The model is in {out}. Predict with: regaug predict {out} NEW.csv -o OUT.csv")


def _print_scores(model: Ensemble, scores: Scores) -> None:
    begin = f"{model.describe()}. On {scores.n:,} rows that were put aside"
    if len(model.targets) == 1:
        typer.echo(f"{begin}: {in_words(scores)}.")
        return
    typer.echo(f"{begin}:")
    options.print_table(target_table(scores, model.targets))


@contextmanager
def _shown() -> Iterator[Callable[[FitProgress], None]]:
    """Give what says how many runs there are and how long they take, then shows a bar."""
    with bar_from_first_call("run") as show:

        def observe(progress: FitProgress) -> None:
            if not progress.done:
                planned = count(progress.total, progress.unit)
                most = "At most " if progress.unit == "epoch" else ""
                takes = f"this takes about {duration(progress.seconds_left)}"
                typer.echo(f"{most}{planned}; {takes}.", err=True)
            show(progress.done, progress.total, progress.words, progress.unit)

        yield observe


def _check_free(out: Path) -> None:
    """Say before the training, not after it, that the model cannot be written there."""
    is_file = out.exists() and not out.is_dir()
    if is_file or (out.is_dir() and {file.name for file in out.iterdir()} - FILES):
        raise CheckpointError(
            f"`--out` must be a new folder or one with a model and nothing else, got {out}. "
            "Name another."
        )
