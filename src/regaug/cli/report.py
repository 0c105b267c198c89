"""``regaug report``: the page of a study, made anew from its folder."""

from pathlib import Path
from typing import Annotated

import typer

from regaug.cli.options import AsJSON, Force, print_checks, print_json
from regaug.formatting import sentences


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A folder that `regaug compare` has written; of a table the newest study.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file.")] = Path(
        "report.html"
    ),
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the plots, each as an SVG file."),
    ] = None,
    force: Force = False,
    as_json: AsJSON = False,
) -> None:
    """Write the report of a study as one HTML file.

    It needs no network. The study may still be under way: the report is on what is finished.

    Example: regaug report runs/diabetes -o report.html
    """
    from regaug.cli.advice import advice_of, show_advice
    from regaug.report.plots import draw_plots, save_plots
    from regaug.report.template import report_output
    from regaug.studies.study import Study

    place = report_output(out, force=force, name="--out")
    study = Study.open(folder)
    saved = []
    if svg is not None:  # first, as it may be refused
        saved = save_plots(draw_plots(study), svg, force=force, name="--svg")
    path = study.report(place.path, force=force)
    if as_json:
        found = {
            "study": str(study.folder),
            "report": str(path),
            "replaces": place.replaces,
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
    typer.echo(sentences(f"\nThe report is in {path}.", place.remark))
    if saved:
        typer.echo(f"{len(saved)} plots are in {svg}.")
