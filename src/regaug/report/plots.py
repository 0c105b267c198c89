"""All plots of a report, and their files."""

from collections.abc import Mapping
from pathlib import Path

from regaug._files import write_text
from regaug._outputs import Output, has_mark
from regaug.report import drawing
from regaug.report.drawing import Plot
from regaug.report.plots_along import draw_along
from regaug.report.plots_data import draw_singular_values, draw_two_nn
from regaug.report.plots_methods import draw_groups, draw_leaderboard, draw_splits
from regaug.report.plots_model import draw_diagnosis
from regaug.report.plots_runs import draw_learning, draw_predicted
from regaug.report.plots_steps import draw_steps
from regaug.studies.study import Study


def draw_plots(study: Study) -> dict[str, Plot]:
    """Draw all plots that a study has the numbers for, in the order of the page."""
    plots = [
        draw_leaderboard(study),
        draw_splits(study),
        draw_steps(study.steps, title=study.comparison.title),
    ]
    plots += [*draw_along(study), *draw_learning(study), *draw_predicted(study)]
    if study.facts is not None:
        plots += [draw_singular_values(study.facts), draw_two_nn(study.facts)]
        if (latent := study.facts.latent) is not None:
            plots += [draw_singular_values(latent), draw_two_nn(latent)]
    plots.append(draw_groups(study))
    found = {plot.name: plot for plot in plots if plot is not None}
    if study.diagnosis is None:
        return found
    # What is compared is drawn above; this is about one model.
    own = draw_diagnosis(study.diagnosis)
    return found | {name: own[name] for name in own if not name.startswith("model-predicted")}


def save_plots(
    plots: Mapping[str, Plot], folder: str | Path, *, force: bool = False, name: str = "folder"
) -> list[Path]:
    """Write every plot as an SVG file of its own; the folder is made if it is not there.

    A file that is no plot of regaug is replaced by ``force`` alone, and otherwise none is written.
    ``name`` is what the user calls the folder.
    """
    rules = {"force": force, "name": name, "is_own": has_mark}
    places = [Output(Path(folder, f"{own}.svg"), **rules) for own in plots]  # type: ignore[arg-type]
    for place, plot in zip(places, plots.values(), strict=True):
        write_text(place.path, drawing.as_file(plot.svg))
    return [place.path for place in places]
