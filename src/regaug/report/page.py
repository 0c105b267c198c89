"""The page of a study: one HTML file with everything in it."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from statistics import median

from regaug import formatting
from regaug.ensemble.contents import NETS
from regaug.formatting import count, number, percent
from regaug.report.plots import draw_plots
from regaug.report.plots_methods import worst_groups
from regaug.report.recipe import about_model, command_recipe, net_recipe, python_recipe
from regaug.report.snippets import (
    is_of_network,
    kept_nets,
    lightning_recipe,
    loop_recipe,
    weights_recipe,
)
from regaug.report.tables import detail_table, gap_table, pair_table, target_tables
from regaug.report.template import render_template, write_page
from regaug.runs.record import RunRecord
from regaug.studies.amounts import amount
from regaug.studies.changes import Change
from regaug.studies.checks import TITLES
from regaug.studies.leaderboard import about_cases, show_cells
from regaug.studies.names import full_name, reference_name
from regaug.studies.power import POWER
from regaug.studies.study import Study

TEMPLATE = "page.html.j2"


def write_report(study: Study, path: str | Path, *, force: bool = False) -> Path:
    """Write the report of a study: a page that needs no network and runs no script.

    Args:
        study: What was found; see :meth:`regaug.studies.study.Study.open`.
        path: The HTML file; its folder is made.
        force: Replace a file that is no report of regaug.

    Returns:
        The path.
    """
    return write_page(path, partial(render, study), force=force)


def render(study: Study) -> str:
    """Return the page as text; the same study gives the same text."""
    comparison, recommended = study.comparison, study.verdict.recommended
    return render_template(
        TEMPLATE,
        name=study.config.problem,
        metric=comparison.title,
        explanation=comparison.explanation,
        case=comparison.case,
        about_cases=about_cases(comparison),
        verdict=_headline(study.verdict.text),
        tiles=_tiles(study),
        warning=_warning(study),
        rows=[
            (row, full_name(row, comparison.reference), show_cells(comparison, row))
            for row in comparison.rows
        ],
        details=detail_table(study),
        by_target=target_tables(study),
        pairs=pair_table(comparison),
        checks=[(check, TITLES[check.code]) for check in study.checks],
        level=percent(comparison.level),
        splits=[(row.name, [*map(number, row.errors)]) for row in comparison.rows],
        groups=[
            (name, number(mean), number(worst), group)
            for name, (mean, worst, group) in worst_groups(study).items()
        ],
        plots=draw_plots(study),
        facts=study.facts,
        done=_how(study),
        recommended=recommended,
        plain=reference_name(comparison.reference),
        makes_rows=study.config.kind == "estimator",
        use=study.verdict.use,
        alpha=f"{1.0 - comparison.level:.2g}",
        advised=study.advised,
        command=command_recipe(study),
        python=python_recipe(study),
        about_model=about_model(study),
        net="" if study.config.kind == "estimator" else net_recipe(study, recommended),
        gaps=gap_table(study),
        is_network=is_of_network(study),
        snippets=[
            (
                name,
                loop_recipe(study, name),
                lightning_recipe(study, name),
                weights_recipe(study, name),
            )
            for name in dict.fromkeys((recommended, *reversed(study.looked_at)))
        ],
        nets=[(own, number(own.validation), number(own.test)) for own in kept_nets(study)],
        diagnosis=study.diagnosis,
        versions=_versions(study),
    )


def _headline(verdict: str) -> tuple[str, str]:
    """Part a verdict into what is said first, and the rest.

    Example:
        >>> _headline("a lowers RMSE by 5.1 %; b makes it worse by 2 %. Use a.")
        ('a lowers RMSE by 5.1 %', 'b makes it worse by 2 %. Use a.')
    """
    end = re.search(r"[;.] ", verdict)
    if end is None:
        return verdict, ""
    return verdict[: end.start()] + end[0].strip(" ;"), verdict[end.end() :]


def _tiles(study: Study) -> list[tuple[str, str, str]]:
    """Return the few numbers to see first: what, how much, and a remark."""
    comparison, recommended = study.comparison, study.verdict.recommended
    metric = comparison.title
    use, names = comparison.row(study.verdict.use), (comparison.reference, recommended)
    plain = {comparison.reference: reference_name(comparison.reference)}
    tiles = [("Use", use.name, plain.get(use.name, ""))]
    if use.name != recommended:
        what = "Recommended rows" if study.config.kind == "estimator" else "Recommended net"
        tiles.append((what, recommended, plain.get(recommended, "")))
    best = (row for row in comparison.rows if row.is_baseline and row.mean is not None)
    shown = [row for row in comparison.rows if row.name in names or row is use]
    shown += [row for row in islice(best, 1) if row not in shown]
    for row in shown:
        title = f"{metric} of {full_name(row, comparison.reference)}"
        remark = "" if row.change is None else formatting.change(row.change, comparison.unit)
        tiles.append((title, number(row.mean), remark))
    return tiles


def _warning(study: Study) -> str:
    if study.is_complete:
        return ""
    finished, config = study.comparison.n_splits, study.config
    told = f"{study.trials} of {config.trials} settings of every method"
    if finished < config.splits:
        told = f"{finished} of {count(config.splits, study.comparison.case)}"
    return (
        f"The study is not complete: {told} are finished, and only these are compared. The same "
        "command continues it."
    )


def _how(study: Study) -> list[tuple[str, str]]:
    """Say how the study was done, as terms and what they mean here."""
    config, comparison = study.config, study.comparison
    rows = f"{config.rows:,} rows, {config.columns:,} inputs, {count(config.targets, 'target')}"
    if study.facts is not None:
        parts = study.facts.rows
        rows += f"; {parts['train']:,} to train, {parts['validation']:,} to choose, "
        rows += f"{parts['test']:,} to test"
    nets = [row for row in comparison.rows if row.is_net]
    runs = (len(nets) * study.trials + config.recipes) * comparison.n_splits
    chosen = [own for row in nets for own in study.chosen[row.name]]
    fits = "fits" if config.kind == "estimator" else "trainings"
    what = "independent draws" if comparison.independent else "repeated splits of the same rows"
    is_plain = comparison.independent or comparison.repeated
    correction = "" if is_plain else ", widened for the rows that splits share"
    if comparison.repeated:
        what = "repetitions of one split with other seeds; other test rows are not covered"
    time = formatting.seconds(median(own.seconds for own in chosen))
    return [
        ("Data", f"{config.problem}: {rows}"),
        ("Repetitions" if comparison.repeated else "Splits", f"{comparison.n_splits}, {what}"),
        *_stages(study, chosen),
        ("Runs", f"{runs:,} {fits}; the chosen ones took {time} each (median)"),
        _model(study, chosen),
        *_fairness(study),
        *([("Plan", " ".join(study.planned))] if study.planned else []),
        (
            "Statistics",
            f"Student's t over the {comparison.case}s{correction}; p-values corrected by Holm's "
            f"method for the {count(len(nets) - 1, 'augmentation')}" + _smallest(study),
        ),
        ("Seed", f"{config.seed}: the same seed gives the same table"),
        ("Versions", _versions(study)),
    ]


def _model(study: Study, chosen: Sequence[RunRecord]) -> tuple[str, str]:
    """Say what was trained."""
    config = study.config
    if config.kind == "estimator":
        whole = ", whole numbers kept" if config.keep_integers else ""
        return "Regressor", f"{config.model}; new rows from the training rows of each split{whole}"
    hidden = ", ".join(str(width) for width in config.hidden)
    settings = [own.run.settings for own in chosen if own.run.settings is not None]
    epochs = f"at most {max(own.epochs for own in settings)} epochs"
    net = f"fully connected, hidden layers {hidden}" if hidden else "the problem's own"
    return "Net", f"{net}; {epochs}"


def _fairness(study: Study) -> list[tuple[str, str]]:
    """Say what every method got the same of, where that was chosen."""
    config = study.config
    if not config.epochs:
        return []
    if config.fair == "epochs":
        return [("Fairness", f"every method got the same epochs: {config.epochs[0]}")]
    own = ", ".join(f"{name} {n}" for name, n in zip(config.methods, config.epochs, strict=True))
    said = f"every method got about the same time, slower ones fewer epochs: {own}"
    return [("Fairness", said)]


def _stages(study: Study, chosen: Sequence[RunRecord]) -> list[tuple[str, str]]:
    """Say what was tried, and what is compared of it."""
    logs = [own.run.log for own in chosen]
    log = f"; {sum(logs)} of the {len(logs)} chosen runs fit the target's logarithm"
    plain = reference_name(study.config.reference)
    tried = f"{study.trials} of every method, {plain} included, the same for every split"
    at, recipes = "", []
    if study.config.recipes:
        at = ", at the recipes that are best on its own validation rows"
        said = f"{study.config.recipes} on every {study.comparison.case}, with plain training"
        if study.config.rungs:
            after = " and after ".join(str(rung) for rung in study.config.rungs)
            said += f"; the worse half ended after {after} epochs"
        recipes = [("Recipes", said)]
    judged = "each split chooses by its own validation error, and only that run's test error counts"
    if NETS in study.scores:
        judged = (
            "what counts is the test error of the ensemble of a method's runs, weighted by the "
            "split's own validation rows"
        )
    return [*recipes, ("Settings", f"{tried}{at}; {judged}{log if any(logs) else ''}")]


def _smallest(study: Study) -> str:
    """Say what the study could have seen."""
    smallest, unit = study.comparison.smallest_change, study.comparison.unit
    if smallest is None:
        return ""
    size = amount(Change(smallest), unit)
    return f"; a change of {size} would have been found in {percent(POWER)} of such studies"


def _versions(study: Study) -> str:
    """Return the versions that the runs were made with; several if they differ."""
    found: dict[str, dict[str, None]] = {}
    for own in chain.from_iterable(study.chosen.values()):
        for name, version in own.made_by.items():
            found.setdefault(name, {})[version] = None
    return ", ".join(f"{name} {' and '.join(known)}" for name, known in found.items())
