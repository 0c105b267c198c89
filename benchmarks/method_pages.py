"""What was measured of each method, between two marks of its page in docs/methods.

    python -m benchmarks.method_pages

A page says which methods it is of: ``<!-- measured: foma, foma-rho -->``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks import costs
from benchmarks.atlas.estimators import MODELS
from benchmarks.atlas.field import ENOUGH, RESULTS
from benchmarks.atlas.pooling import Line, pool, table
from benchmarks.atlas.protocol import lines
from benchmarks.methods_table import call, described, paper, place
from regaug import methods
from regaug.formatting import count, probability
from regaug.methods import MAKERS, NO_ROWS
from regaug.studies.config import REFERENCE

FOLDER = Path(__file__).parents[1] / "docs" / "methods"
MISSING = "not measured yet"
BLOCK = re.compile(r"(<!-- measured: (?!end)([^>]*?) -->\n).*?(<!-- measured: end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that show what was measured."""
    return [page for page in sorted(FOLDER.glob("*.md")) if BLOCK.search(page.read_text())]


def names_in(text: str) -> list[str]:
    """Return the methods that a page is of."""
    return [name for found in BLOCK.finditer(text) for name in found[2].split(", ")]


def facts_part(names: Sequence[str]) -> list[str]:
    """Return what the code says of methods."""
    known = described()
    rows = [
        [
            f"`{name}`",
            call(known[name]) or f'`AugmentingSampler("{name}")`',
            place(known[name]),
            paper(known[name]),
        ]
        for name in names
    ]
    return table(["method", "augmentation", "acts on", "paper"], rows)


def nets_part(names: Sequence[str], known: Sequence[Line], cost: costs.Costs) -> list[str]:
    """Return what methods have changed for nets, over tables."""
    names = [name for name in names if name not in MAKERS]
    if not names:
        return []
    # All are pooled, as p-values are corrected for the number of methods.
    pooled = pool(known, methods.names(), REFERENCE) if len(known) >= ENOUGH else []
    found = [own for own in pooled if own.name in names]
    missing = [f"`{name}`" for name in names if name not in {own.name for own in pooled}]
    out = [f"For nets: {MISSING} ({', '.join(missing)}).", ""] if missing else []
    if not found:
        return out
    rows = []
    for own in found:
        step = f"x{cost[own.name]['defaults']:.2f}" if own.name in cost else MISSING
        better = f"{own.better} of {own.tables}"
        sure = [str(own.helps), str(own.hurts)]
        rows.append([f"`{own.name}`", *own.words, probability(own.p), better, *sure, step])
    head = ["nets", "change of the RMSE", "95 % interval", "p (Holm)", "better on"]
    head += ["surely helps on", "surely hurts on", "step"]
    told = ", ".join(own.name for own in found if own.is_sure) or "none"
    tables = count(len(known), "table")
    words = f"Against plain training with as many trainings, over {tables}; told from it: {told}."
    return [words, "", *table(head, rows), *out]


def rows_part(names: Sequence[str], of_models: dict[str, Sequence[Line]]) -> list[str]:
    """Return what rows of methods have changed for other regressors, as far as it is known."""
    tried = [*methods.names(), *MAKERS]
    pooled = {model: pool(known, tried, NO_ROWS) for model, known in of_models.items()}
    rows = []
    for name in names:
        cells = [
            next(("{} ({})".format(*own.words) for own in found if own.name == name), MISSING)
            for found in pooled.values()
        ]
        if any(cell != MISSING for cell in cells):
            rows.append([f"`{name}`", *cells])
    if not rows:
        only = [name for name in names if name in MAKERS]
        return [f"As rows for boosting and trees: {MISSING}.", ""] if only else []
    counts = [f"{model} ({len(known)} tables)" for model, known in of_models.items()]
    return [
        "As new rows for other regressors, against none:",
        "",
        *table(["rows of", *counts], rows),
    ]


def make_block(
    names: Sequence[str],
    known: Sequence[Line],
    of_models: dict[str, Sequence[Line]],
    cost: costs.Costs,
) -> str:
    """Return what stands between the marks of a page."""
    parts = [*facts_part(names), *nets_part(names, known, cost), *rows_part(names, of_models)]
    said = "`make field` writes this from `benchmarks/results`; [the field](../field.md) says how"
    return "\n".join(["", *parts, f"{said} it was measured.", "", ""])


def put_in(text: str) -> str:
    """Return the text of a page with what is known now between its marks."""
    known, cost = lines(RESULTS), costs.read()
    of_models: dict[str, Sequence[Line]] = {name: lines(f"estimators-{name}") for name in MODELS}
    return BLOCK.sub(
        lambda found: (
            f"{found[1]}{make_block(found[2].split(', '), known, of_models, cost)}{found[3]}"
        ),
        text,
    )


def write() -> None:
    """Write all pages."""
    for page in pages():
        page.write_text(put_in(page.read_text()))


if __name__ == "__main__":
    write()
