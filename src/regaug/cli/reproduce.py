"""``regaug reproduce``: the paper's tables and figures, next to what is measured here."""

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from regaug._files import write_json
from regaug._registry import lookup
from regaug.cli.options import ExecutorName, Jobs, Out, RayAddress
from regaug.cli.tables import AsJSON
from regaug.formatting import duration as say_time
from regaug.runs.record import RunRecord

TIME, SETTINGS = "time", "settings"
# The paper's own numbers.
ALIASES = {
    "table1": "batches",
    "table2": TIME,
    "table3": "in-distribution",
    "table4": "out-of-distribution",
    "table5": "ablation",
    "table6": "noise",
    "table7": "noise",
    "table8": SETTINGS,
    "table9": SETTINGS,
    "table10": "in-distribution",
    "table11": "out-of-distribution",
}


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="in-distribution, out-of-distribution, batches, time, ablation, noise, settings, "
            "table1 to table11, figure1 to figure4, or perturbation.",
        ),
    ],
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", "-d", help="Names with commas between them [all of WHAT]."),
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--methods", "-m", help="Names with commas [all].")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Repetitions in the paper's protocol.")] = 3,
    protocol: Annotated[
        str, typer.Option(help="paper, tuned, or both; what has one only takes no notice.")
    ] = "both",
    budget: Annotated[
        float | None,
        typer.Option(help="Minutes: cut epochs and settings to about that, and say so."),
    ] = None,
    jobs: Jobs = 2,
    executor: ExecutorName = "process",
    ray_address: RayAddress = None,
    out: Out = Path("runs"),
    as_json: AsJSON = False,
) -> None:
    """Repeat a table or a figure of the FOMA paper, next to the published one.

    Every method of a table is trained in the paper's protocol, with its settings, and in a tuned
    one, in which all get the same search. Finished runs are kept: the same command continues. Data
    that is not on this disk is named, with the way to get it.

    Example: regaug reproduce in-distribution --datasets airfoil --seeds 1 --budget 1
    """
    from regaug.reproduction import words
    from regaug.reproduction.figures import FIGURES
    from regaug.reproduction.running import run_experiment, run_timing
    from regaug.reproduction.tables import EXPERIMENTS, PROTOCOLS
    from regaug.reproduction.timing import DATASETS

    name = ALIASES.get(what, what)
    lookup("table or figure", name, dict.fromkeys([*EXPERIMENTS, TIME, SETTINGS, *FIGURES]))
    known = {"both": PROTOCOLS, "paper": ("paper",), "tuned": ("tuned",)}
    protocols = lookup("protocol", protocol, known)
    folder, wanted = out / "reproduction", _names(datasets)
    found: list[Any]
    if name in FIGURES:
        _draw(name, folder, seeds, budget, as_json)
        return
    if name == SETTINGS:
        tables = list(words.settings_tables())
        found = [vars(table) for table in tables]
    elif name == TIME:
        for data in wanted:
            lookup("data set of the paper's table 2", data, dict.fromkeys(DATASETS))
        found = run_timing(folder, datasets=wanted, budget=budget, say=_say)
        tables = [words.time_table(times) for times in found]
    else:
        with redirect_stdout(sys.stderr), _Watch() as watch:
            measured = run_experiment(
                name,
                folder,
                datasets=wanted,
                methods=_names(methods),
                seeds=seeds,
                protocols=protocols,
                budget=budget,
                jobs=jobs,
                executor=executor,  # type: ignore[arg-type]
                ray_address=ray_address,
                announce=watch.announce,
                watch=watch.update,
                say=_say,
            )
        found = [table.to_dict() for table in measured]
        tables = [text for table in found for text in words.measured_tables(table)]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _print(tables)


class _Watch:
    """Shows how many runs are done."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> "_Watch":
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def announce(self, planned: int, left: int, seconds: float) -> None:
        from regaug.training.bar import Bar

        already = f", {planned - left:,} of them done" if left < planned else ""
        _say(f"{planned:,} runs{already}; this takes about {say_time(seconds)}.")
        self._bar = Bar("run", left, show=left > 0).__enter__()

    def update(self, outcome: list[RunRecord]) -> None:
        for _, run, _ in outcome:
            self._bar.advance(f"{run['data']}, {run['method']}")


def _draw(name: str, folder: Path, seeds: int, budget: float | None, as_json: bool) -> None:
    from regaug.reproduction.figures import FIGURES

    figure = FIGURES[name]
    _say(f"computing {name} ...")
    data = figure.compute(seeds=seeds, budget=budget)
    write_json(folder / f"{name}.json", data, indent=1)
    paths = [str(path) for path in figure.draw(data, folder / name)]
    if as_json:
        caption = figure.caption(data)
        typer.echo(json.dumps({"figure": name, "caption": caption, "files": paths}, indent=2))
        return
    typer.echo(figure.caption(data))
    for path in paths:
        typer.echo(path)


def _print(tables: list[Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for text in tables:
        table = Table(*text.header, title=text.title, title_justify="left", box=None)
        for row in text.rows:
            table.add_row(*row)
        console.print(table)
        for note in text.notes:
            typer.echo(note)
        typer.echo()


def _names(given: list[str] | None) -> list[str]:
    return [name for names in given or () for name in names.split(",") if name]


def _say(text: str) -> None:
    typer.echo(text, err=True)
