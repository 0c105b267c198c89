"""The table of pairs: any two rows of a study, compared on the same splits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from regaug.metrics import METRICS
from regaug.studies.changes import PairedTest, Values, holm


@dataclass(frozen=True)
class Pair:
    """One row of a study beside another.

    Attributes:
        name: Name of the row.
        other: Name of the one it is compared with.
        won: Share of splits in which the row is better than the other, a tie shared. Who failed on
            a split has lost it.
        change: Change against the other (see :class:`regaug.studies.changes.Change`); None if
            either failed on a split.
        low: Lower end of the change's interval; None with a single split.
        high: Upper end.
        p: Two-sided p-value of no change, of this pair alone.
        p_holm: The same by Holm's correction for the number of all pairs.
        is_significant: Whether ``p_holm`` is below 1 - level.
    """

    name: str
    other: str
    won: float
    change: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    is_significant: bool


def find_pairs(rows: Mapping[str, Values], test: PairedTest) -> dict[tuple[str, str], Pair]:
    """Return every pair of rows, named either way; the p-values are corrected over all pairs."""
    forward = {}
    for name, other in combinations(rows, 2):
        found = test.change(rows[name], rows[other])
        won = _won(rows[name], rows[other], METRICS[test.metric].sign)
        ends = found.estimate, found.low, found.high
        forward[name, other] = Pair(name, other, won, *ends, found.p, None, False)
    corrected = holm({key: pair.p for key, pair in forward.items()})
    pairs: dict[tuple[str, str], Pair] = {}
    for (name, other), pair in forward.items():
        p = corrected[name, other]
        whole = replace(pair, p_holm=p, is_significant=p is not None and p < 1.0 - test.level)
        back = test.change(rows[other], rows[name])
        pairs[name, other] = whole
        pairs[other, name] = replace(
            whole,
            name=other,
            other=name,
            won=1.0 - pair.won,
            change=back.estimate,
            low=back.low,
            high=back.high,
        )
    return pairs


def _won(values: Values, others: Values, sign: float) -> float:
    """Return the share of splits that the first of two rows has won."""
    own, other = (np.where(np.isnan(v), math.inf, sign * v) for v in (values, others))
    return float(((own < other) + 0.5 * (own == other)).mean())
