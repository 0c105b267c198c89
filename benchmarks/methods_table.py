"""The table of methods in README.md and docs/methods/index.md, and the figures of their pages.

    python -m benchmarks.methods_table

What a method does, its formula and its paper are said in ``regaug/methods/table.py`` and nowhere
else; what it costs and what it is worth come from ``python -m benchmarks.costs`` and
``python -m benchmarks.atlas.field``.
"""

from pathlib import Path

from benchmarks import costs, method_pages
from benchmarks.atlas.field import ENOUGH, RESULTS
from benchmarks.atlas.pooling import Line, Pooled, pool, table
from benchmarks.atlas.protocol import lines
from benchmarks.method_facts import call, described, paper, place
from regaug.formatting import count
from regaug.methods import MAKERS
from regaug.methods.table import OWN
from regaug.studies.config import REFERENCE

PROJECT = Path(__file__).parents[1]
PAGES = (PROJECT / "README.md", PROJECT / "docs" / "methods" / "index.md")
BEGIN, END = "<!-- methods: begin -->", "<!-- methods: end -->"
MISSING = "not measured yet"
CAPTION = (
    "`make field` writes this table. A change is the mean over real tables against plain training",
    "with as many trainings, with its 95 % interval; told apart is what remains so after a",
    "correction for the number of methods ([more](FIELD)).",
)
HEAD = ("method", "augmentation", "what it does", "formula", "paper", "acts on")


def make_table(known: list[Line], cost: costs.Costs) -> list[str]:
    """Return the table, with what was measured of each method."""
    enough = known if len(known) >= ENOUGH else []
    found = {own.name: own for own in pool(enough, OWN, REFERENCE)}
    rows = []
    for name, method in described().items():
        step = f"x{cost[name]['defaults']:.2f}" if name in cost else MISSING
        if name == REFERENCE:
            measured = ["x1.00", "what the others are compared with"]
        elif name in MAKERS:
            measured = ["makes rows, no steps", "for regressors and `regaug augment`"]
        else:
            measured = [step, _worth(found.get(name))]
        what = [call(method), method.summary, f"`{method.formula}`"]
        rows.append([f"`{name}`", *what, paper(method), place(method), *measured])
    head = [*HEAD, "step, plain training = 1", "change of the RMSE over tables"]
    return [*table(head, rows), *CAPTION, ""]


def _worth(own: Pooled | None) -> str:
    if own is None:
        return MISSING
    middle, span = own.words
    told = "told apart" if own.is_sure else "not told apart"
    return f"{middle} ({span}; {count(own.tables, 'table')}): {told}"


def put_in(text: str, rows: list[str], page: Path) -> str:
    """Return the text of a page with the table between its markers."""
    field = "docs/field.md" if page.name == "README.md" else "../field.md"
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    body = "\n".join(rows).replace("(FIELD)", f"({field})")
    return f"{text[:begin]}\n\n{body}\n{text[end:]}"


def write() -> None:
    rows = make_table(lines(RESULTS), costs.read())
    for page in PAGES:
        page.write_text(put_in(page.read_text(), rows, page))
    method_pages.write()


if __name__ == "__main__":
    write()
