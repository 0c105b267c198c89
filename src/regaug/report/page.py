"""The page of a study: one HTML file with everything in it."""

import re
from pathlib import Path
from statistics import median
from typing import Any

from regaug._files import write_text
from regaug.report import drawing, words
from regaug.report.plots import draw_plots
from regaug.report.plots_methods import worst_groups
from regaug.report.recipe import command_recipe, python_recipe
from regaug.studies.facts import Facts
from regaug.studies.statistics import Row
from regaug.studies.study import Study

TEMPLATE = "page.html.j2"


def write_report(study: Study, path: str | Path, *, facts: Facts | None = None) -> Path:
    """Write the report of a study: a page that needs no network and runs no script.

    Args:
        study: What was found; see :meth:`regaug.studies.study.Study.open`.
        path: The HTML file; it is replaced if it is there, and its folder is made.
        facts: What is known of the data; see :func:`regaug.studies.facts.read_facts`. Without it
            the page says nothing of the columns, the singular values and the dimension.

    Returns:
        The path.
    """
    path = Path(path)
    write_text(path, render(study, facts))
    return path


def render(study: Study, facts: Facts | None = None) -> str:
    """Return the page as text; the same study gives the same text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("regaug.report", package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    comparison = study.comparison
    recommended = study.verdict.recommended
    page = environment.get_template(TEMPLATE).render(
        name=study.configuration["data"]["name"],
        metric=words.metric_name(comparison.metric),
        verdict=_headline(study.verdict.text),
        tiles=_tiles(study),
        warning=_warning(study),
        rows=[_board_row(study, row) for row in comparison.rows],
        level=f"{comparison.level:.0%}".replace("%", " %"),
        splits=[_split_row(row) for row in comparison.rows],
        groups=_group_rows(study),
        plots=draw_plots(study, facts),
        svg=Markup,  # the plots escape what they write
        facts=facts,
        done=_how(study, facts),
        recommended=recommended,
        python=python_recipe(study, recommended, facts),
        command=command_recipe(study, recommended, facts),
        colors={"light": drawing.LIGHT, "dark": drawing.DARK},
        style=Markup(drawing.page_style()),
        versions=_versions(study),
    )
    return re.sub(drawing.FORBIDDEN, "\ufffd", page)


def _headline(verdict: str) -> tuple[str, str]:
    """Part a verdict into what is said first, and the rest.

    Example:
        >>> _headline("a lowers RMSE by 5.1 %; b makes it worse; recommended: a.")
        ('a lowers RMSE by 5.1 %', 'b makes it worse; recommended: a.')
    """
    end = re.search(r"[;.] ", verdict)
    if end is None:
        return verdict, ""
    return verdict[: end.start()] + end[0].strip(" ;"), verdict[end.end() :]


def _tiles(study: Study) -> list[tuple[str, str, str]]:
    """Return the few numbers to see first: what, how much, and a remark."""
    comparison = study.comparison
    metric = words.metric_name(comparison.metric)
    recommended = study.verdict.recommended
    remark = "plain training" if recommended == comparison.reference else ""
    tiles = [("Recommended net", recommended, remark)]
    for row in comparison.rows:
        if row.name in (comparison.reference, recommended):
            title = f"{metric} of {words.full_name(row, comparison.reference)}"
            remark = "" if row.change is None else words.change(row.change, comparison)
            tiles.append((title, words.number(row.mean), remark))
    best = next((row for row in comparison.rows if row.is_baseline and row.mean is not None), None)
    if best is not None:
        title = f"{metric} of {words.full_name(best, comparison.reference)}"
        tiles.append((title, words.number(best.mean), words.change(best.change, comparison)))
    return tiles


def _warning(study: Study) -> str:
    asked = study.configuration["trials"]
    if study.trials == asked:
        return ""
    return (
        f"The study is not complete: {study.trials} of {asked} settings of every method are "
        "finished, and only these are compared. The same command continues it."
    )


def _board_row(study: Study, row: Row) -> dict[str, Any]:
    comparison = study.comparison
    seconds = [float(run.result["seconds"]) for run in study.chosen[row.name]]
    failed = f"failed on {row.n_failed} of {comparison.n_splits} splits" if row.n_failed else ""
    has_interval = row.low is not None and row.high is not None
    return {
        "name": row.name,
        "full": words.full_name(row, comparison.reference),
        "is_baseline": row.is_baseline,
        "is_recommended": row.name == study.verdict.recommended,
        "is_significant": row.is_significant,
        "mean": words.number(row.mean),
        "interval": f"{words.number(row.low)} to {words.number(row.high)}" if has_interval else "",
        "failed": failed,
        "change": "" if row.change is None else words.change(row.change, comparison),
        "change_interval": words.between(row.change_low, row.change_high, comparison),
        "p": "" if row.p_holm is None else words.probability(row.p_holm),
        "rank": "" if row.rank is None else f"{row.rank:.1f}",
        "won": "" if row.won is None else f"{row.won:.0%}".replace("%", " %"),
        "seconds": words.seconds(median(seconds)),
    }


def _split_row(row: Row) -> tuple[str, list[str]]:
    return row.name, [words.number(error) for error in row.errors]


def _group_rows(study: Study) -> list[tuple[str, str, str, str]]:
    found = worst_groups(study).items()
    return [
        (name, words.number(mean), words.number(worst), group)
        for name, (mean, worst, group) in found
    ]


def _how(study: Study, facts: Facts | None) -> list[tuple[str, str]]:
    """Say how the study was done, as terms and what they mean here."""
    configuration, comparison = study.configuration, study.comparison
    data = configuration["data"]
    targets = "1 target" if data["targets"] == 1 else f"{data['targets']:,} targets"
    rows = f"{data['rows']:,} rows, {data['columns']:,} inputs, {targets}"
    if facts is not None:
        parts = facts.rows
        rows += f"; {parts['train']:,} to train, {parts['validation']:,} to choose, "
        rows += f"{parts['test']:,} to test"
    nets = [row for row in comparison.rows if not row.is_baseline]
    runs = len(nets) * study.trials * comparison.n_splits
    seconds = [float(run.result["seconds"]) for row in nets for run in study.chosen[row.name]]
    kind = "independent draws" if comparison.independent else "repeated splits of the same rows"
    correction = "" if comparison.independent else ", widened for the rows that splits share"
    hidden = ", ".join(str(width) for width in configuration["hidden"])
    time = words.seconds(median(seconds))
    logs = [bool(run.run.get("log")) for row in nets for run in study.chosen[row.name]]
    log = f"; {sum(logs)} of the {len(logs)} chosen runs fit the target's logarithm"
    return [
        ("Data", f"{data['name']}: {rows}"),
        ("Splits", f"{comparison.n_splits}, {kind}"),
        (
            "Settings",
            f"{study.trials} of every method, plain training included, the same for every split; "
            "each split chooses by its own validation error, and only that run's test error counts"
            + (log if any(logs) else ""),
        ),
        ("Runs", f"{runs:,} trainings; the chosen ones took {time} each (median)"),
        (
            "Net",
            f"fully connected, hidden layers {hidden}; at most {configuration['epochs']} epochs, "
            f"stopped after {configuration['patience']} without progress",
        ),
        (
            "Statistics",
            f"Student's t over the splits{correction}; p-values corrected by Holm's method for the "
            f"{len(nets) - 1} augmentations",
        ),
        ("Seed", f"{configuration['seed']}: the same seed gives the same table"),
        ("Versions", _versions(study)),
    ]


def _versions(study: Study) -> str:
    """Return the versions that the runs were made with; several if they differ."""
    made = [run.result.get("made_by", {}) for runs in study.chosen.values() for run in runs]
    found: dict[str, list[str]] = {}
    for versions in made:
        for name, version in versions.items():
            known = found.setdefault(str(name), [])
            if str(version) not in known:
                known.append(str(version))
    return ", ".join(f"{name} {' and '.join(known)}" for name, known in found.items())
