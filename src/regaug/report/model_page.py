"""The page of a fitted model: one HTML file with everything in it."""

from functools import partial
from pathlib import Path

from regaug.ensemble.diagnosis import Diagnosis
from regaug.formatting import number, percent
from regaug.metrics import METRICS
from regaug.report.plots_model import draw_diagnosis
from regaug.report.template import render_template, write_page

TEMPLATE = "model.html.j2"
# What a table of targets or groups shows.
SHOWN = ("rmse", "mae", "r2")
# The level whose coverage is told at the top.
LEVEL = 0.9
# Groups of the table, the worst first.
MOST_GROUPS = 30


def write_model_report(diagnosis: Diagnosis, path: str | Path, *, force: bool = False) -> Path:
    """Write the page of a model: a page that needs no network and runs no script.

    Args:
        diagnosis: What was found.
        path: The HTML file; its folder is made.
        force: Replace a file that is no report of regaug.

    Returns:
        The path.
    """
    return write_page(path, partial(render_model, diagnosis), force=force)


def render_model(diagnosis: Diagnosis) -> str:
    """Return the page as text; the same diagnosis gives the same text."""
    scores, targets = diagnosis.scores, len(diagnosis.targets)
    titles = [METRICS[metric].title for metric in SHOWN]
    groups = sorted(scores.groups.items(), key=lambda item: -item[1].rmse)[:MOST_GROUPS]
    return render_template(
        TEMPLATE,
        name=", ".join(diagnosis.targets),
        diagnosis=diagnosis,
        tiles=_tiles(diagnosis),
        plots=draw_diagnosis(diagnosis),
        titles=titles,
        by_target=[
            (name, [number(own.value(metric)) for metric in SHOWN])
            for name, own in zip(diagnosis.targets, scores.by_target, strict=True)
        ],
        group_titles=[METRICS[metric].title_for(targets) for metric in SHOWN],
        groups=[
            (name, own.n, [number(own.value(metric)) for metric in SHOWN]) for name, own in groups
        ],
        left_groups=len(scores.groups) - len(groups),
        explanation=METRICS["rmse"].explain(targets),
    )


def _tiles(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return the few numbers to see first: what, how much, and a remark."""
    scores, targets = diagnosis.scores, len(diagnosis.targets)
    tiles = [
        (METRICS[metric].title_for(targets), number(scores.value(metric)), "") for metric in SHOWN
    ]
    tiles.append(("Rows", f"{scores.n:,}", ""))
    for own in diagnosis.coverage:
        if own.level == LEVEL:
            share = sum(own.inside) / (own.rows * targets)
            tiles.append((f"In their {percent(LEVEL)} intervals", percent(share), ""))
    return tiles
