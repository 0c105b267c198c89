"""What was measured, for the README: the speed, the leaderboard of a study, what is worth what."""

import json
import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from benchmarks.__main__ import HISTORY
from benchmarks.__main__ import RESULTS as BUDGETS
from benchmarks.atlas.field import ALL
from benchmarks.atlas.field import RESULTS as FIELD
from benchmarks.atlas.pooling import Line, Pooled, pool, table
from benchmarks.atlas.protocol import lines
from benchmarks.leaderboard import FILE as LEADERBOARD
from regaug import formatting
from regaug.methods.table import OWN
from regaug.metrics import METRICS
from regaug.studies.config import REFERENCE
from regaug.studies.names import listed

# The page of the atlas needs the tables themselves to be written; its figures stand there.
ATLAS = Path(__file__).parents[2] / "docs" / "atlas.md"
RECIPES = Path(__file__).parents[1] / "results" / "atlas" / "recipes.md"
INGREDIENTS = (
    "no periodic features",
    "no linear part",
    "columns alike",
    "no mean of the weights",
    "none of these four",
)

# Lines of the budgets that the README shows: what is measured, and against what.
_SPEED = {
    "kernel, geometric mean of forward + backward": (
        "FOMA on a batch, forward and backward, four shapes",
        "`torch.linalg.svd` and autograd",
    ),
    "kernel 128x25089, forward + backward": (
        "the same, 128 samples of 25,088 features",
        "`torch.linalg.svd` and autograd",
    ),
    "30 runs, batch 32: erm": ("30 trainings of a net for tables at once", "one after the other"),
    "30 runs, batch 32: FOMA on inputs": ("the same with FOMA on inputs", "one after the other"),
    "nearest batches, 10,000 samples, against the matrix": (
        "an epoch of nearest batches, 10,000 samples",
        "sorting the matrix of all distances",
    ),
    "kernel pairs, 40,000 samples, against densities": (
        "partners of C-Mixup for 40,000 samples",
        "the matrix of all densities",
    ),
}


def make_speed() -> list[str]:
    """Return how much faster some parts are than the textbook way."""
    found = json.loads(BUDGETS.read_text())
    ratios = {row["name"]: row["ratio"] for row in found["rows"] if row["faster"]}
    rows = [[*words, f"{_ratio(ratios[name])} times as fast"] for name, words in _SPEED.items()]
    step = next(row for row in found["rows"] if row["name"] == "step, batch 32: FOMA on inputs")
    setting = found["machine"]
    return [
        *table(["what", "against", "measured"], rows),
        f"A training step with FOMA on inputs takes {step['ratio']:.2f} times as long as a plain",
        f"one. `{setting['command']}` measures this; here on {setting['cores']} cores",
        f"({setting['processor']}), torch {setting['torch']}, {setting['date']}:",
        "[all lines](benchmarks/results/budgets.json).",
        "",
    ]


def make_budgets() -> list[str]:
    """Return every ratio that is measured, with its budget and what it was before."""
    found, before = json.loads(BUDGETS.read_text()), _history()
    rows = []
    for row in found["rows"]:
        sign = "at least" if row["faster"] else "at most"
        bar = "" if row["budget"] is None else f"{sign} {row['budget']:g}"
        held = "" if row["budget"] is None else "yes" if row["holds"] else "**no**"
        older = [
            _ratio(line["ratios"][row["name"]]) for line in before if row["name"] in line["ratios"]
        ]
        rows.append([row["name"], _ratio(row["ratio"]), bar, held, ", ".join(older[:-1])])
    head = ["what", "ratio", "budget", "holds", "earlier, the oldest first"]
    when = ", ".join(line["date"] for line in before)
    setting = found["machine"]
    return [
        *table(head, rows),
        f"`{setting['command']}` on {setting['cores']} cores ({setting['processor']}),",
        f"torch {setting['torch']}, {setting['date']}; it was measured on {when}",
        "(benchmarks/results/history.jsonl).",
        "",
    ]


def _history() -> list[dict[str, Any]]:
    """Return what was measured, the oldest first; the last line is what is shown as such."""
    return [json.loads(line) for line in HISTORY.read_text().splitlines()]


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{round(value, -1):,.0f}"


def make_leaderboard() -> list[str]:
    """Return the leaderboard of the study that the README shows, and what the study says of it."""
    found = json.loads(LEADERBOARD.read_text())
    title = METRICS[found["metric"]].title
    head = ["method", "tier", title, "against plain training", "95 % interval", "p (Holm)"]
    setting, took = found["machine"], formatting.duration(found["seconds"])
    cores = f"{setting['cores']} {'busy ' if found['busy'] else ''}cores"
    return [
        *table(head, [_row(own) for own in found["leaderboard"]]),
        "> " + found["verdict"],
        "",
        f"`{found['command']}`, {found['rows']} rows, {found['splits']} splits: {took} on {cores},",
        f"{setting['date']} (`{setting['command']}`).",
        "",
    ]


def _row(own: dict[str, Any]) -> list[str]:
    kind = "baseline" if own["is_baseline"] else "combined" if own["is_combined"] else ""
    return [
        f"{own['name']} ({kind})" if kind else own["name"],
        str(own["tier"]),
        formatting.number(own["mean"]),
        "" if own["change"] is None else formatting.change(own["change"], "percent"),
        formatting.between(own["change_low"], own["change_high"], "percent"),
        "" if own["p_holm"] is None else formatting.probability(own["p_holm"]),
    ]


def make_worth_of_fit() -> list[str]:
    """Say what ``regaug fit`` is worth on the tables of the atlas, in a sentence."""
    page = ATLAS.read_text()
    tables = _found(r"^## Fitted models: (\d+) tables", page)[0]
    mean, median = _found(r"^\| `fit`: the blend \| (\S+) \| \S+ to \S+ \| (\S+) \|", page)
    return [
        f"On the {tables} real tables of [the atlas](docs/atlas.md) its error is "
        f"{float(mean):.2f} of",
        f"that of CatBoost's defaults, geometric mean; the median is {float(median):.2f}.",
        "",
    ]


def _found(pattern: str, page: str) -> tuple[str, ...]:
    found = re.search(pattern, page, re.MULTILINE)
    if found is None:
        raise ValueError(f"{ATLAS.name} has no line like {pattern}")
    return found.groups()


def make_worth_of_methods() -> list[str]:
    """Say whether a method is told from plain training over the tables of the field."""
    known = lines(FIELD)
    return _worth_of_methods(known, pool(known, OWN, REFERENCE))


def _worth_of_methods(known: Sequence[Line], found: Sequence[Pooled]) -> list[str]:
    helps = [own.name for own in found if own.is_sure and own.mean < 0]
    hurts = [own.name for own in found if own.is_sure and own.mean > 0]
    what = "no method can be told from plain training with as many trainings"
    if helps or hurts:
        parts = [f"lower errors with {listed(helps)}"] if helps else []
        parts += [f"higher ones with {listed(hurts)}"] if hurts else []
        what = f"plain training with as many trainings can be told from: {', '.join(parts)}"
    yet = " so far" if len(known) < ALL else ""
    return [f"On the {len(known)} real tables of [the field](docs/field.md){yet}, {what}.", ""]


def make_worth_of_models() -> list[str]:
    """Return the fitted models of the atlas, the best first."""
    rows = _rows_of(ATLAS, "RMSE, CatBoost = 1")
    rows = [row[:4] for row in rows if "revision" not in row[0]]
    return table(["model", "RMSE", "95 % interval", "median"], sorted(rows, key=lambda row: row[1]))


def make_worth_of_steps() -> list[str]:
    """Return what the steps of a study bring: rows that are more than the name of a baseline."""
    # Not the table above it, whose changes are against an earlier revision.
    found = _rows_of(ATLAS, "row of the study | change of the RMSE | 95 % interval | best on")
    rows = [row[:3] for row in found if len(row[0].split()) > 1]
    return table(["", "change of the RMSE", "95 % interval"], rows)


def make_worth_of_recipes() -> list[str]:
    """Return what is lost without an ingredient of the default recipe."""
    rows = {row[0]: row for row in _rows_of(RECIPES, "| change | RMSE |")}
    return table(
        ["left out of the recipe", "change of the RMSE", "standard error"],
        [[name, *rows[name][1:3]] for name in INGREDIENTS],
    )


def _rows_of(page: Path, head: str) -> list[list[str]]:
    """Return the cells of the table of a page whose first line has these words."""
    after = iter(page.read_text().partition(head)[2].splitlines()[2:])
    lines = takewhile(lambda line: line.startswith("| "), after)
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
