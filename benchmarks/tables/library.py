"""Tables of what the library has: data sets, metrics, settings, checks and sizes of a study."""

import inspect
import re
from dataclasses import MISSING, fields

from benchmarks.atlas.pooling import table
from regaug.cli import names
from regaug.data.datasets.facts import DATASETS, Named
from regaug.ensemble.entry import QUICK_ROWS
from regaug.methods.table import OWN
from regaug.metrics import METRICS
from regaug.problems import FEWEST_ROWS, MOST_NUMBERS, MOST_ROWS
from regaug.studies.checks import TITLES, anchor
from regaug.studies.plan import (
    FEWEST_RECIPES,
    QUICK_METHODS,
    QUICK_SPLITS,
    QUICK_TRIALS,
    RECIPES_PER_TRIAL,
    SPLITS,
    TRIALS,
)
from regaug.studies.rounds import BEST_RECIPES
from regaug.training.recipe import default_recipe
from regaug.training.settings import Settings

_GENERATED = "synthetic-"
_ROWS = 300  # of the table whose default recipe is shown


def make_datasets() -> list[str]:
    """Return the data sets that have a name: task, samples, split; those that are made as one."""
    own, made = _own(), [name for name in DATASETS if name.startswith(_GENERATED)]
    rows = [[f"`{name}`", *_facts(named)] for name, named in own.items()]
    listed = ", ".join(f"`{name}`" for name in made)
    rows.append([listed, *_facts(DATASETS[made[0]])])
    return table(["name", "task", "samples", "metric", "split", "note"], rows)


def _own() -> dict[str, Named]:
    return {name: DATASETS[name] for name in DATASETS if not name.startswith(_GENERATED)}


def _facts(named: Named) -> list[str]:
    info = named.info
    split = info.split if info.split.endswith(".") else f"{info.split}."
    if info.groups is not None:
        split += f" Groups: {info.groups}."
    title = METRICS[info.metric].title
    return [info.task, info.samples, title, split[:1].upper() + split[1:], named.note]


def make_licenses() -> list[str]:
    """Return whose the data sets are."""
    rows = [
        [f"`{name}`", info.license, info.citation, re.sub(r"(https://\S+)", r"<\1>", info.origin)]
        for name, info in ((name, named.info) for name, named in _own().items())
    ]
    return table(["name", "license", "cite", "from"], rows)


def make_metrics() -> list[str]:
    """Return the metrics by the names that ``--metric`` and ``metric=`` take."""
    rows = [
        [
            f"`{name}`",
            METRICS[name].title,
            words,
            "higher" if METRICS[name].higher_is_better else "lower",
            "the target's" if METRICS[name].has_unit else "none",
            "per cent" if METRICS[name].unit == "percent" else "points",
        ]
        for name, words in names.METRICS.items()
    ]
    return table(["name", "called", "what it is", "better is", "unit", "a change is told in"], rows)


def make_settings() -> list[str]:
    """Return the settings of a training, with their defaults and those of the default recipe."""
    recipe, meanings = default_recipe(rows=_ROWS), attributes(Settings)
    rows = []
    for part in fields(Settings):
        default = part.default if part.default_factory is MISSING else part.default_factory()
        chosen = getattr(recipe, part.name)
        other = "" if chosen == default else f"`{chosen!r}`"
        rows.append([f"`{part.name}`", f"`{default!r}`", other, meanings[part.name]])
    head = ["setting", "default", f"recipe for a table of {_ROWS} rows", "meaning"]
    return table(head, rows)


def attributes(own: type) -> dict[str, str]:
    """Return what the docstring of a class says of its attributes, in Markdown."""
    section = (inspect.getdoc(own) or "").partition("Attributes:\n")[2]
    found = re.findall(r"^ {4}(\w+): (.+?)(?=^ {4}\w+: |^\w|\Z)", section, re.DOTALL | re.MULTILINE)
    return {name: _markdown(" ".join(text.split())) for name, text in found}


def _markdown(text: str) -> str:
    """Write the roles and double quotes of a docstring as Markdown has them."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def make_checks() -> list[str]:
    """Return the codes of the checks, each with its place in the docs."""
    rows = [[f"[{code}]({anchor(code)})", title] for code, title in TITLES.items()]
    return table(["code", "what it is about"], rows)


def make_sizes() -> list[str]:
    """Return how large the study of a table is."""
    full = [name for name in OWN if name not in names.UNUSUAL]
    rows = [
        ["methods", str(len(full)), str(len(QUICK_METHODS))],
        ["splits", str(SPLITS), str(QUICK_SPLITS)],
        ["recipes of plain training on every split", *map(_recipes, (TRIALS, QUICK_TRIALS))],
        ["best recipes that a split goes on with", *[str(BEST_RECIPES)] * 2],
        ["runs of every method on every split (`--trials`)", str(TRIALS), str(QUICK_TRIALS)],
        ["rows that it looks at, at most", f"{MOST_ROWS:,}", f"{QUICK_ROWS:,}"],
        [f"of a table wider than {MOST_NUMBERS // MOST_ROWS} columns", _wide(), f"{QUICK_ROWS:,}"],
    ]
    return table(["", "`regaug compare`", "`--quick`"], rows)


def _wide() -> str:
    return f"{MOST_NUMBERS:,} numbers, and at least {FEWEST_ROWS:,} rows"


def _recipes(trials: int) -> str:
    return str(max(FEWEST_RECIPES, RECIPES_PER_TRIAL * trials))
