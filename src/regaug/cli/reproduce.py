"""``regaug reproduce``: the paper's tables and figures, next to what is measured here."""

import sys
from contextlib import ExitStack, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regaug._registry import lookup
from regaug.cli import names
from regaug.cli.options import (
    AsJSON,
    ExecutorName,
    JobsOrAll,
    Out,
    RayAddress,
    RayRuntimeEnv,
    find_jobs,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from regaug.reproduction.experiments import Progress
    from regaug.training.bar import Bar

SETTINGS = "settings"
# The paper's own numbers: what its tables 1 to 11 show.
SHOWN = (
    "batches time in-distribution out-of-distribution ablation noise noise settings settings "
    "in-distribution out-of-distribution"
)
ALIASES = {f"table{number}": name for number, name in enumerate(SHOWN.split(), 1)}


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="in-distribution, out-of-distribution, batches, time, ablation, noise, settings, "
            "table1 to table11, figure1 to figure4, or perturbation.",
            autocompletion=names.one_of(names.EXPERIMENTS),
        ),
    ],
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--datasets",
            "-d",
            metavar="NAMES",
            help="Names with commas between them [all of WHAT].",
            autocompletion=names.some_datasets,
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "-m",
            metavar="NAMES",
            help="Names with commas [all].",
            autocompletion=names.several_of(names.METHODS),
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Repetitions in the paper's protocol.")
    ] = 3,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="paper, tuned, or both; what has one only takes no notice.",
            autocompletion=names.one_of(("paper", "tuned", "both")),
        ),
    ] = "both",
    max_minutes: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES", help="Cut epochs and settings to about so many minutes, and say so."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Epochs in the paper's protocol, at most [its own]."),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole",
            help="Cut nothing: pause after --max-minutes, and the same command goes on.",
        ),
    ] = False,
    jobs: JobsOrAll = None,
    executor: ExecutorName = "process",
    ray_address: RayAddress = None,
    ray_runtime_env: RayRuntimeEnv = None,
    out: Out = Path("runs"),
    as_json: AsJSON = False,
) -> None:
    """Repeat a table or a figure of the FOMA paper.

    What is measured stands next to what was published. Every method of a table is trained in the
    paper's protocol, with its settings, and in a tuned one, in which all get the same search.
    Finished runs are kept: the same command continues. Data that is not on this disk is named, with
    the way to get it.

    Example: regaug reproduce in-distribution --datasets airfoil --seeds 1 --max-minutes 1
    """
    from regaug.reproduction.experiments import Wanted, run_experiment, run_timing
    from regaug.reproduction.figures import FIGURES, make_figure
    from regaug.reproduction.published import settings_tables
    from regaug.reproduction.tables import EXPERIMENTS, PROTOCOLS
    from regaug.reproduction.timing import TIME
    from regaug.runs.tasks import Workforce

    name = ALIASES.get(what, what)
    lookup("table or figure", name, dict.fromkeys([*EXPERIMENTS, TIME, SETTINGS, *FIGURES]))
    known = {"both": PROTOCOLS, "paper": ("paper",), "tuned": ("tuned",)}
    protocols = lookup("protocol", protocol, known)
    wanted = Wanted(_names(datasets), _names(methods), seeds, protocols, epochs, whole)
    folder = out / "reproduction"
    if name in FIGURES:
        typer.echo(f"computing {name} ...", err=True)
        figure = make_figure(name, folder, seeds=seeds, max_minutes=max_minutes)
        found = {"figure": name, "caption": figure.caption, "files": [*map(str, figure.files)]}
        print_json(found) if as_json else typer.echo(figure)
        return
    left: list[str] = []
    if name == SETTINGS:
        tables = settings_tables()
        values = [asdict(table) for table in tables]
    else:
        # Ray tells on the standard output that a process died; that is no part of the results.
        with redirect_stdout(sys.stderr), _Progress() as progress:
            workers = find_jobs(jobs, executor, ray_address)
            workforce = Workforce(
                workers or 1,
                executor,  # type: ignore[arg-type]
                ray_address,
                max_minutes,
                ray_runtime_env=ray_runtime_env,
            )
            workforce = workforce.for_cluster() if workers is None else workforce
            measured = (
                run_timing(folder, wanted.datasets, max_minutes=max_minutes, progress=progress)
                if name == TIME
                else run_experiment(name, folder, wanted, workforce=workforce, progress=progress)
            )
        tables = [table for own in measured for table in own.tables().values()]
        values = [own.to_dict() for own in measured]
        left = [own.left for own in measured]
    if as_json:
        print_json(values)
        return
    for table in tables:
        print_table(table)
        typer.echo()
    for words in left:
        typer.echo(words)


class _Progress(ExitStack):
    """Shows how many runs are done."""

    bar: "Bar | None" = None

    def __call__(self, progress: "Progress") -> None:
        """Show how far it has come."""
        from regaug.studies.progress import announce
        from regaug.training.bar import Bar

        if self.bar is None:
            planned, left = progress.planned, progress.left
            for line in announce(planned, planned - left, progress.seconds, progress.notes):
                typer.echo(line, err=True)
            self.bar = self.enter_context(Bar("run", left, show=left > 0))
        for record in progress.records:
            self.bar.advance(f"{record.run.problem}, {record.run.method}")


def _names(given: list[str] | None) -> list[str]:
    return [name for names in given or () for name in names.split(",") if name]
