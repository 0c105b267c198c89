"""Tiers: which rows of a study cannot be told from the best one.

A leaderboard numbered 1, 2, 3 says more than its splits can know. A tier holds the rows that
cannot be told from its head:

1. The head of the first tier is the row with the best mean.
2. Every other row is compared with the head by the corrected test on the same splits, and the
   p-values of these comparisons are corrected together by Holm's method. A row that is not
   significantly worse than the head joins its tier.
3. What is left forms the next tiers in the same way.

This is a multiple comparison with the best (Hsu, 1981): a row that is truly as good as any other is
left out of the first tier in about 2 % of studies. The head is the luckiest row as well, so of nine
equal ones at least one is left out in about 15 % of studies. (Holm's correction over all pairs, as
in the table of pairs, would make that 3 %, but a difference would have to be a quarter larger to be
seen.) A tier may have gaps in the order of the means: a row whose errors vary much may share the
tier of the best when a steadier one with a better mean does not.
"""

from collections.abc import Mapping

from regaug.metrics import METRICS
from regaug.studies.changes import Change, PairedTest, Values, holm


def find_tiers(ranked: Mapping[str, Values], test: PairedTest) -> dict[str, int]:
    """Return the tier of every row, counted from 1; see the module for the rule.

    ``ranked`` has the values of the rows without a failure, the best mean first.
    """
    tiers: dict[str, int] = {}
    left = dict(ranked)
    while left:
        number = max(tiers.values(), default=0) + 1
        tiers |= dict.fromkeys(find_leaders(left, test), number)
        left = {name: values for name, values in left.items() if name not in tiers}
    return tiers


def find_leaders(ranked: Mapping[str, Values], test: PairedTest) -> tuple[str, ...]:
    """Return the first of some rows, and those that cannot be told from it, in their order."""
    if not ranked:
        return ()
    head = next(iter(ranked))
    changes = {name: test.change(own, ranked[head]) for name, own in ranked.items() if name != head}
    corrected = holm({name: change.p for name, change in changes.items()})
    sign = METRICS[test.metric].sign

    def is_worse(change: Change, p: float | None) -> bool:
        # The mean and the log ratios may disagree: a row that is better by these is not left out.
        return p is not None and p < 1.0 - test.level and sign * (change.estimate or 0.0) > 0.0

    joined = [name for name, change in changes.items() if not is_worse(change, corrected[name])]
    return (head, *joined)
