"""When does which method help? The tables in halves, by what they are like."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_ind

from benchmarks.atlas.pooling import FEWEST, LEVEL, Line, changes, interval, p_value, table
from regaug.formatting import between, probability
from regaug.formatting import change as told
from regaug.studies.changes import holm

# What a table is like, by the name in its line.
TRAITS = {
    "rows": "rows",
    "columns": "columns",
    "dimension": "intrinsic dimension (TwoNN)",
    "unexplained": "unexplained variance",
    "categories": "share of category columns",
    "skew": "skew of the target, either way",
}


@dataclass(frozen=True)
class Half:
    """The tables on one side of the median of a trait.

    Attributes:
        trait: The trait, as in a line of the results.
        words: Which tables these are.
        tables: Their names.
    """

    trait: str
    words: str
    tables: frozenset[str]


Pair = tuple[Half, Half]
Inside = dict[tuple[Half, str], list[float]]


def halves(lines: Sequence[Line]) -> list[Pair]:
    """Cut the tables at the median of every trait; where all are alike there is nothing to cut."""
    found = []
    for trait, words in TRAITS.items():
        values = {line["table"]: line.get(trait) for line in lines}
        known = {name: abs(value) for name, value in values.items() if value is not None}
        if not known:
            continue
        middle = float(np.median(list(known.values())))
        low = frozenset(name for name, value in known.items() if value <= middle)
        high = frozenset(known) - low
        if min(len(low), len(high)) >= FEWEST:
            at_most, above = f"{words} at most {middle:.3g}", f"{words} above {middle:.3g}"
            found.append((Half(trait, at_most, low), Half(trait, above, high)))
    return found


def map_part(lines: Sequence[Line], names: Sequence[str], reference: str) -> list[str]:
    """Say where a method is told from the reference, and where its change differs; no more."""
    pairs = halves(lines)
    logs = {name: changes(lines, name, reference) for name in names if name != reference}
    inside = {
        (half, name): values
        for pair in pairs
        for half in pair
        for name, own in logs.items()
        if len(values := [v for table, v in own.items() if table in half.tables]) >= FEWEST
    }
    if not inside:
        return ["Not measured yet: there are too few tables to cut into halves.", ""]
    return [*_inside(inside), *_across(pairs, inside)]


def _inside(inside: Inside) -> list[str]:
    """Show, for every half, the methods that are told from the reference there."""
    p = holm({key: p_value(values) for key, values in inside.items()})
    sure = [key for key in inside if p[key] < LEVEL]
    tried = f"{len(inside)} comparisons: every method in every half"
    if not sure:
        return [
            f"No method can be told from plain training in any half of the tables ({tried};",
            f"the smallest corrected p-value is {probability(min(p.values()))}).",
            "",
        ]
    rows = []
    for half in dict.fromkeys(half for half, _ in sure):
        own = {name: inside[half, name] for other, name in sure if other == half}
        lower = [f"{name} {_words(v)}" for name, v in own.items() if np.mean(v) < 0]
        higher = [f"{name} {_words(v)}" for name, v in own.items() if np.mean(v) > 0]
        cells = (", ".join(side) or "none" for side in (lower, higher))
        rows.append([half.words, str(len(half.tables)), *cells])
    return [
        f"Told from plain training in a half of the tables ({tried}, corrected by Holm); halves",
        "that are not listed tell nothing.",
        "",
        *table(["tables with", "tables", "helps", "hurts"], rows),
    ]


def _across(pairs: Sequence[Pair], inside: Inside) -> list[str]:
    """Show the methods whose change differs from half to half."""
    both = {
        ((low, high), name): (values, inside[high, name])
        for low, high in pairs
        for (half, name), values in inside.items()
        if half == low and (high, name) in inside
    }
    p = holm({key: _difference(*sides) for key, sides in both.items()})
    sure = [key for key in both if p[key] < LEVEL]
    if not sure:
        return [
            f"By none of {len(pairs)} traits does the change of a method differ between the halves",
            f"({len(both)} comparisons; the smallest corrected p-value is "
            f"{probability(min(p.values(), default=1.0))}).",
            "",
        ]
    rows = []
    for pair, name in sure:
        sides = zip(pair, both[pair, name], strict=True)
        cells = (f"{half.words}: {_words(values)}" for half, values in sides)
        rows.append([name, *cells, probability(p[pair, name])])
    return [
        f"Changes that differ between the halves ({len(both)} comparisons, corrected by Holm):",
        "",
        *table(["method", "one half", "the other", "p (Holm)"], rows),
    ]


def _words(values: Sequence[float]) -> str:
    low, middle, high = interval(values)
    return f"{told(middle, 'percent')} ({between(low, high, 'percent')})"


def _difference(low: Sequence[float], high: Sequence[float]) -> float:
    """Return the p-value of equal means by Welch's test: one half may vary more than the other."""
    if np.std([*low, *high]) == 0.0:
        return 1.0
    return float(ttest_ind(low, high, equal_var=False).pvalue)
