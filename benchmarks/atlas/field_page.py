"""The table of the field: which method helps on real tables, for nets, boosting and trees.

python -m benchmarks.atlas.field_page        writes docs/field.md
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks import costs
from benchmarks.atlas.estimators import MODELS, beside_repeats, makers
from benchmarks.atlas.field import PAPER, RESULTS, TRIALS, unfinished
from benchmarks.atlas.halves import map_part
from benchmarks.atlas.pooling import Line, Pooled, pool, table
from benchmarks.atlas.protocol import SPLITS, lines
from regaug import methods
from regaug.formatting import count, percent, probability
from regaug.methods import MAKERS, NO_ROWS
from regaug.studies.config import REFERENCE
from regaug.studies.plan import QUICK_METHODS

PAGE = Path(__file__).parents[2] / "docs" / "field.md"
MISSING = "not measured yet"


def make_page(
    known: Sequence[Line], of_models: dict[str, Sequence[Line]], cost: costs.Costs
) -> str:
    """Return the page of some studies, those of regressors and what steps cost."""
    found = pool(known, methods.names(), REFERENCE)
    parts = [
        "# The field: which method helps on real tables",
        "",
        "*Written from `benchmarks/results` by the last of these commands.*",
        "",
        "```sh",
        "python -m benchmarks.atlas.field           # hours; goes on where it was stopped",
        "python -m benchmarks.atlas.estimators run  # boosting and trees",
        "python -m benchmarks.costs                 # on a quiet machine",
        "make field                                 # writes this page, and the tables of methods",
        "```",
        "",
        *nets_part(known, found, cost),
        *defaults_part(found),
        "## When does which one help?",
        "",
        "Every trait of a table cuts the tables at its median.",
        "",
        *map_part(known, methods.names(), REFERENCE),
        *models_part(of_models),
    ]
    return "\n".join(parts).rstrip() + "\n"


def nets_part(known: Sequence[Line], found: Sequence[Pooled], cost: costs.Costs) -> list[str]:
    if not found:
        return ["## Nets", "", f"{MISSING.capitalize()}: {count(len(known), 'table')}.", ""]
    rows = []
    for own in sorted(found, key=lambda own: own.mean):
        step = f"x{cost[own.name]['defaults']:.2f}" if own.name in cost else MISSING
        told = [f"{percent(n / own.tables)} ({n})" for n in (own.helps, own.hurts)]
        better = f"{own.better} of {own.tables}"
        rows.append(
            [own.name, *own.words, probability(own.p), better, *told, step, _list(own.name)]
        )
    head = ["method", "change of the RMSE", "95 % interval over tables", "p (Holm)", "better on"]
    head += ["surely helps on", "surely hurts on", "step", "tried by default"]
    return [
        f"## Nets: {count(len(known), 'table')}, {SPLITS} splits each",
        "",
        f"The tables are those of [the atlas](atlas.md){_and_others(known)}, by its protocol.",
        *unfinished(known),
        f"`regaug compare` with every method and {TRIALS} settings of each: a method's ensemble",
        "against that of plain training, with as many trainings at the same recipes. The change is",
        "the geometric mean over splits and tables, and its p-value is corrected for the number of",
        "methods. Surely is what the study of a single table says, corrected likewise: where no",
        "method does anything, up to one table in twenty says so of one. A step is that of stacked",
        "runs with the method's defaults, plain training = 1.",
        "",
        *table(head, rows),
        *_told(found, "plain training"),
        *_rare_part(found),
        *_tables_part(known),
    ]


def _and_others(known: Sequence[Line]) -> str:
    named = sorted({line["table"] for line in known} & set(PAPER))
    return f" and {', '.join(named)}" if named else ""


def _told(found: Sequence[Pooled], what: str) -> list[str]:
    """Say which methods are told from none, over all tables."""
    helps = [own.name for own in found if own.is_sure and own.mean < 0]
    hurts = [own.name for own in found if own.is_sure and own.mean > 0]
    words = f"Told from {what} over all tables: lower errors with {', '.join(helps) or 'none'},"
    return [words, f"higher ones with {', '.join(hurts) or 'none'}.", ""]


def _rare_part(found: Sequence[Pooled]) -> list[str]:
    names = [own.name for own in found if methods.is_for_rare(own.name)]
    words = "meant for rare targets, which an error of all rows hardly sees: no judgment of it."
    return [f"{', '.join(names)}: {words}", ""] if names else []


def _tables_part(known: Sequence[Line]) -> list[str]:
    """Show the tables whose own study tells a method from plain training."""
    rows = [
        [line["table"], *(", ".join(line.get(key, ())) or "none" for key in ("helps", "hurts"))]
        for line in sorted(known, key=lambda line: str(line["table"]))
        if line.get("helps") or line.get("hurts")
    ]
    if not rows:
        return ["On no single table does its study tell a method from plain training.", ""]
    return ["Tables whose own study tells:", "", *table(["table", "helps", "hurts"], rows)]


def _list(name: str) -> str:
    if name in QUICK_METHODS:
        return "yes, and quickly"
    return "yes" if methods.get(name).usual else "by name"


def defaults_part(found: Sequence[Pooled]) -> list[str]:
    """Say what the field means for the methods that are tried by themselves."""
    sure = [own for own in found if own.is_sure]
    leave = [own.name for own in sure if own.mean > 0 and is_default(own.name)]
    come = [own.name for own in sure if own.mean < 0 and not is_default(own.name)]
    if not found:
        said = [f"{MISSING.capitalize()}."]
    elif not leave and not come:
        said = ["None does: both lists stay."]
    else:
        said = [f"Leaves: {', '.join(leave) or 'none'}. Comes: {', '.join(come) or 'none'}."]
    usual, quick = (", ".join(own) for own in (methods.usual(), QUICK_METHODS))
    return [
        "## What a study tries by itself",
        "",
        f"By default {usual};",
        f"with `--quick` {quick}.",
        "All others are there by name. A method leaves a list if it is surely worse than plain",
        "training over all tables, and comes if it is surely better: within the intervals a place",
        "in the table is chance, and a study that tries more methods sees less of each.",
        *said,
        "",
    ]


def is_default(name: str) -> bool:
    return name in QUICK_METHODS or methods.get(name).usual


def models_part(of_models: dict[str, Sequence[Line]]) -> list[str]:
    """Return what new rows do for regressors, a column for each."""
    out = ["## New rows for other models", ""]
    names = [*methods.names(), *MAKERS]
    pooled = {model: pool(known, names, NO_ROWS) for model, known in of_models.items()}
    cells = {
        model: {own.name: "{} ({})".format(*own.words) for own in found}
        for model, found in pooled.items()
    }
    tried = [name for name in names if any(name in own for own in cells.values())]
    if not tried:
        return [*out, f"{MISSING.capitalize()}.", ""]
    rows = [[name, *(own.get(name, MISSING) for own in cells.values())] for name in tried]
    out += [
        "Change of the RMSE against the same regressor without new rows (`--model`), with the 95 %"
    ]
    out += ["interval over tables. `repeats` are training rows once more.", ""]
    out += table(["rows of", *cells], rows)
    for model, found in pooled.items():
        if found:
            words = f"{model}, {count(len(of_models[model]), 'table')}"
            out += [f"- {words}: {' '.join(_told(found, 'no new rows')).strip()}"]
            beside = beside_repeats(of_models[model])
            if beside and any(own.is_sure for own in found):
                out += [f"  {' '.join(_told(beside, '`repeats`')).strip()}"]
        else:
            out += [f"- {model}: {MISSING}."]
    left = [name for name in makers() if name not in tried]
    return [*out, *([f"- {MISSING.capitalize()}: {', '.join(left)}."] if left else []), ""]


def make_known_page() -> str:
    """Return the page of what is in the results."""
    of_models = {model: lines(f"estimators-{model}") for model in MODELS}
    return make_page(lines(RESULTS), of_models, costs.read())


if __name__ == "__main__":
    PAGE.write_text(make_known_page())
