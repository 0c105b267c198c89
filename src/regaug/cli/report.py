"""``regaug report``: the page of a study, made anew from its folder."""

from pathlib import Path
from typing import Annotated

import typer

from regaug.cli.advice import advice_of, show_advice
from regaug.cli.options import AsJSON, print_checks, print_json
from regaug.exceptions import StoreError
from regaug.report.plots import draw_plots, save_plots
from regaug.runs.store import STUDY
from regaug.studies.study import Study


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder that `regaug compare` has written.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("report.html"),
    svg: Annotated[
        Path | None, typer.Option(help="Folder for the plots, each as an SVG file.")
    ] = None,
    as_json: AsJSON = False,
) -> None:
    """Write the report of a study as one HTML file that needs no network.

    The study may still be under way: the report is on what is finished.

    Example: regaug report runs/diabetes -o report.html
    """
    folder = _find_study(folder)
    study = Study.open(folder)
    path = study.report(out)
    saved = [] if svg is None else save_plots(draw_plots(study), svg)
    if as_json:
        found = {
            "study": str(folder),
            "report": str(path),
            "svg": [str(file) for file in saved],
            "verdict": study.verdict.text,
            "recommended": study.verdict.recommended,
            "use": study.verdict.use,
            "checks": [check.to_dict() for check in study.checks],
            **advice_of(study),
        }
        print_json(found)
        return
    typer.echo(study.verdict.text)
    print_checks(study.checks)
    show_advice(study)
    typer.echo(f"\nThe report is in {path}.")
    if saved:
        typer.echo(f"{len(saved)} plots are in {svg}.")


def _find_study(folder: Path) -> Path:
    """Return the folder of a study: this one, or the only one in it."""
    if (folder / STUDY).exists():
        return folder
    inner = sorted(file.parent for file in folder.glob(f"*/{STUDY}"))
    if len(inner) == 1:
        return inner[0]
    if inner:
        listed = ", ".join(str(place) for place in inner)
        raise StoreError(f"There are several studies in {folder}: name one of {listed}.")
    raise StoreError(
        f"There is no study in {folder}. Name the folder that `regaug compare` has written."
    )
