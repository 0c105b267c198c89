"""Pages with tables between markers, and what stands between them."""

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from benchmarks import costs
from benchmarks.atlas.field import RESULTS
from benchmarks.atlas.protocol import lines
from benchmarks.methods_table import make_table
from benchmarks.tables import commands, library, measured

PROJECT = Path(__file__).parents[2]
MARKED = re.compile(
    r"^<!-- (?P<name>[a-z][a-z -]*): begin -->\n.*?^<!-- (?P=name): end -->$",
    re.DOTALL | re.MULTILINE,
)
# A link within a table, as it is written from the root of the project.
_LINK = re.compile(r"\]\(((?:docs|benchmarks)/[^)#]+)(#[^)]*)?\)")
Lines = list[str]


@cache
def _methods() -> Lines:
    return make_table(lines(RESULTS), costs.read())


#: What makes the lines of each table, by the name of its markers.
TABLES: dict[str, Callable[[], Lines]] = {
    "methods": _methods,
    "datasets": library.make_datasets,
    "licenses": library.make_licenses,
    "metrics": library.make_metrics,
    "settings": library.make_settings,
    "checks": library.make_checks,
    "sizes": library.make_sizes,
    "commands": commands.make_commands,
    **{f"options {name}": make for name, make in commands.makers().items()},
    "speed": measured.make_speed,
    "budgets": measured.make_budgets,
    "leaderboard": measured.make_leaderboard,
    "worth of fit": measured.make_worth_of_fit,
    "worth of methods": measured.make_worth_of_methods,
    "worth of models": measured.make_worth_of_models,
    "worth of steps": measured.make_worth_of_steps,
    "worth of recipes": measured.make_worth_of_recipes,
}


def pages() -> list[Path]:
    """Return the pages that have a table."""
    found = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"]
    found += sorted((PROJECT / "docs").rglob("*.md"))
    return [page for page in found if MARKED.search(page.read_text())]


def names_in(page: Path) -> Iterator[str]:
    """Yield the names of a page's tables."""
    return (found["name"] for found in MARKED.finditer(page.read_text()))


def renew(text: str, page: Path) -> str:
    """Return the text of a page with the tables as they should be."""

    def replace(found: re.Match[str]) -> str:
        name = found["name"]
        body = "\n".join(TABLES[name]()).rstrip()
        return f"<!-- {name}: begin -->\n\n{_linked(body, page)}\n\n<!-- {name}: end -->"

    return MARKED.sub(replace, text)


def _linked(text: str, page: Path) -> str:
    """Let the links of a text lead from a page."""

    def replace(found: re.Match[str]) -> str:
        path = os.path.relpath(PROJECT / found[1], page.parent)
        return f"]({Path(path).as_posix()}{found[2] or ''})"

    return _LINK.sub(replace, text)


def write() -> list[str]:
    """Write the tables of all pages; return the names of those that have changed."""
    changed = []
    for page in pages():
        text = page.read_text()
        if (new := renew(text, page)) != text:
            page.write_text(new)
            changed.append(page.relative_to(PROJECT).as_posix())
    return changed
