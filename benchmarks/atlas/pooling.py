"""What the errors of many tables say together: changes, intervals over tables, p-values.

A table counts once, whatever its size: the mean over its splits of log(error / other error). The
interval and the p-value of a mean over tables are those of Student's t. p-values of several methods
are corrected by Holm: where none of them does anything, one is called sure in 5 % of the cases.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from regaug.formatting import between
from regaug.formatting import change as told
from regaug.studies.changes import holm

LEVEL = 0.05
# Fewer have no interval worth the name.
FEWEST = 3
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Pooled:
    """What a method has changed, over tables.

    Attributes:
        name: The method.
        logs: Of every table the mean over its splits of log(error / error without the method).
        p: Two-sided p-value of no change, corrected for the number of methods.
        helps: Tables whose own study says that it helps.
        hurts: Tables whose own study says that it hurts.
    """

    name: str
    logs: tuple[float, ...]
    p: float
    helps: int = 0
    hurts: int = 0

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self.logs)

    @property
    def mean(self) -> float:
        """The mean of the logarithms."""
        return float(np.mean(self.logs))

    @property
    def better(self) -> int:
        """Tables on which the error is lower, by however little."""
        return sum(value < 0 for value in self.logs)

    @property
    def is_sure(self) -> bool:
        """Whether it is told from no change."""
        return self.p < LEVEL

    @property
    def words(self) -> tuple[str, str]:
        """The change and its interval as text."""
        low, middle, high = interval(self.logs)
        return told(middle, "percent"), between(low, high, "percent")


def change(errors: Sequence[float], others: Sequence[float]) -> float:
    """Return the mean over the splits of log(error / other error)."""
    return float(np.mean(np.log(np.array(errors) / np.array(others))))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of logarithms and its 95 % interval over tables, as percent."""
    mean, n = np.mean(values), len(values)
    half = student.ppf(1 - LEVEL / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    low, middle, high = (100 * np.expm1(v) for v in (mean - half, mean, mean + half))
    return float(low), float(middle), float(high)


def p_value(values: Sequence[float]) -> float:
    """Return the two-sided p-value of a mean of zero over tables."""
    mean, error = abs(float(np.mean(values))), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    if mean == 0.0 or error == 0.0:
        return float(mean == 0.0)
    return float(2 * student.sf(mean / error, len(values) - 1))


def changes(lines: Iterable[Line], name: str, reference: str) -> dict[str, float]:
    """Return the change by table, without those where one of the two failed or was not tried."""
    found = {}
    for line in lines:
        own, other = (line["errors"].get(each, [None]) for each in (name, reference))
        if None not in (*own, *other):
            found[line["table"]] = change(own, other)
    return found


def pool(lines: Sequence[Line], names: Iterable[str], reference: str) -> list[Pooled]:
    """Return what each method has changed over the tables that have it, as far as there are some.

    The order is that of ``names``; a method that fewer than three tables have is left out.
    """
    found = []
    for name in names:
        logs = tuple(changes(lines, name, reference).values())
        if name == reference or len(logs) < FEWEST:
            continue
        helps, hurts = (
            sum(name in line.get(key, ()) for line in lines) for key in ("helps", "hurts")
        )
        found.append(Pooled(name, logs, p_value(logs), helps, hurts))
    corrected = holm({own.name: own.p for own in found})
    return [replace(own, p=corrected[own.name]) for own in found]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        "| " + " | ".join(head) + " |",
        "| --- " * len(head) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]
