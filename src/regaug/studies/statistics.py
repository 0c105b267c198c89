"""What the errors of a study say: means, changes against plain training, tiers, pairs.

All that is computed here comes from the errors by split alone: how they came about, by single runs
or by ensembles, does not matter. The test behind it is that of :mod:`regaug.studies.changes`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regaug._checks import check_range
from regaug._registry import lookup
from regaug.exceptions import ArgumentError
from regaug.formatting import Unit
from regaug.methods import is_for_rare
from regaug.metrics import METRICS, RARE_METRICS
from regaug.studies.changes import Change, PairedTest, Values, holm, to_values, variance_factor
from regaug.studies.pairs import Pair, find_pairs
from regaug.studies.power import smallest_change
from regaug.studies.tiers import find_leaders, find_tiers


@dataclass(frozen=True)
class Row:
    """One method, one baseline or one combination of them over all splits.

    What is undefined is None. A run that diverged leaves no finite error. A method with such a run
    has no mean, no interval, no p-value and no tier, because a mean over the other splits would
    flatter it, and is not significant.

    Attributes:
        name: Name of the method.
        is_baseline: Whether it stands beside the nets: it predicts without one.
        is_combined: Whether it is made of several other rows, as an ensemble of all nets is.
        errors: The value of every split; None where it is not finite.
        mean: Mean over the splits.
        low: Lower end of the mean's interval; None with a single split.
        high: Upper end.
        tier: 1 for the row with the best mean and all that cannot be told from it; the rest forms
            the next tiers in the same way (see :mod:`regaug.studies.tiers`).
        change: Change against the reference (see :class:`regaug.studies.changes.Change`); None for
            the reference itself.
        change_low: Lower end of the change's interval.
        change_high: Upper end.
        p: Two-sided p-value of no change.
        p_holm: The same by Holm's correction for the number of augmentations; None for the
            reference, baselines and combinations, which are no part of that family.
        is_significant: Whether ``p_holm`` is below 1 - level.
        rank: Mean rank among the nets over the splits, 1 is the best; None for other rows.
        won: Share of splits in which it is the best net, a tie shared; None for other rows.
        n_failed: Number of splits without a finite value.
    """

    name: str
    is_baseline: bool
    is_combined: bool
    errors: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None
    tier: int | None
    change: float | None
    change_low: float | None
    change_high: float | None
    p: float | None
    p_holm: float | None
    is_significant: bool
    rank: float | None
    won: float | None
    n_failed: int

    @property
    def is_net(self) -> bool:
        """Whether it is a method of its own: plain training, or an augmentation."""
        return not (self.is_baseline or self.is_combined)


@dataclass(frozen=True)
class Comparison:
    """The statistics of a study.

    Attributes:
        metric: What the errors are.
        reference: The row that the others are compared with.
        unit: Of changes: ``"percent"``, or ``"points"`` for the plain differences of R2 and
            Pearson's R.
        level: Confidence level of the intervals.
        n_splits: Number of splits.
        test_share: Test rows per training row.
        independent: Whether the splits are independent draws, which need no correction.
        smallest_change: The smallest change of an augmentation that this study could have seen: one
            that is called significant in 80 % of studies like this one
            (see :func:`regaug.studies.power.smallest_change`). None if that cannot be said.
        rows: The best mean first, those without a mean last.
        targets: Number of targets; of several, errors are divided by their spread
            (:class:`regaug.metrics.Metric`).
        repeated: Whether the splits are one split, repeated with other seeds.
    """

    metric: str
    reference: str
    unit: Unit
    level: float
    n_splits: int
    test_share: float
    independent: bool
    smallest_change: float | None
    rows: tuple[Row, ...]
    targets: int = 1
    repeated: bool = False

    @property
    def case(self) -> str:
        """What there are several of: ``"split"``, or ``"repetition"`` of a single one."""
        return "repetition" if self.repeated else "split"

    @property
    def title(self) -> str:
        """What a reader knows the metric by."""
        return METRICS[self.metric].title_for(self.targets)

    @property
    def explanation(self) -> str:
        """What the metric means, in a sentence; empty for a well-known one of one target."""
        return METRICS[self.metric].explain(self.targets)

    @property
    def is_about_rare(self) -> bool:
        """Whether the metric, or a method, is meant for rare targets."""
        return self.metric in RARE_METRICS or any(is_for_rare(row.name) for row in self.rows)

    def row(self, name: str) -> Row:
        """Return the row of a method, a baseline or a combination."""
        return lookup("row", name, {row.name: row for row in self.rows})

    @property
    def augmentations(self) -> tuple[Row, ...]:
        """The rows that are compared with the reference, and corrected for their number."""
        return tuple(row for row in self.rows if row.is_net and row.name != self.reference)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every two rows, each pair once, the one with the better mean named first."""
        place = {row.name: number for number, row in enumerate(self.rows)}
        return tuple(pair for (a, b), pair in self._pairs.items() if place[a] < place[b])

    def pair(self, name: str, other: str) -> Pair:
        """Return what the table of pairs says of two rows, in this order."""
        for one in (name, other):
            self.row(one)
        if name == other:
            raise ArgumentError(f"`other` must be another row than `name`, got {other!r} twice.")
        return self._pairs[name, other]

    def paired(self, name: str, other: str) -> Change:
        """Compare any two rows; the p-value is that of this one pair, without Holm's correction."""
        values, others = (to_values(self.row(each).errors) for each in (name, other))
        return self._test.change(values, others)

    def leaders(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the best of some rows by its mean, and those of them that cannot be told from it.

        The rule is that of a tier, with these rows alone; rows that failed are left out.
        """
        for name in names:
            self.row(name)
        ranked = [row for row in self.rows if row.name in names and row.mean is not None]
        return find_leaders({row.name: to_values(row.errors) for row in ranked}, self._test)

    def without_split(self, split: int) -> "Comparison":
        """Return the statistics of the other splits."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            row["errors"] = row["errors"][:split] + row["errors"][split + 1 :]
        return self.from_dict(asdict(self) | {"rows": rows})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file; None stands for what is undefined."""
        return asdict(self) | {
            "rows": [asdict(row) for row in self.rows],
            "pairs": [asdict(pair) for pair in self.pairs],
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Comparison":
        """Return the statistics of the errors that :meth:`to_dict` wrote down.

        They are computed anew, so that a file says what this version makes of the errors in it.
        """
        rows = values["rows"]
        options = ("metric", "reference", "test_share", "independent", "level")
        return analyze(
            {row["name"]: row["errors"] for row in rows},
            baselines=[row["name"] for row in rows if row["is_baseline"]],
            combined=[row["name"] for row in rows if row.get("is_combined", False)],
            targets=values.get("targets", 1),  # earlier files do not say it
            repeated=values.get("repeated", False),  # nor this
            **{name: values[name] for name in options},
        )

    @property
    def _test(self) -> PairedTest:
        factor = variance_factor(self.n_splits, self.test_share, self.independent or self.repeated)
        return PairedTest(self.metric, factor, self.level)

    @cached_property
    def _pairs(self) -> Mapping[tuple[str, str], Pair]:
        return find_pairs({row.name: to_values(row.errors) for row in self.rows}, self._test)


def analyze(
    errors: Mapping[str, Sequence[float | None]],
    *,
    metric: str = "rmse",
    reference: str = "erm",
    baselines: Sequence[str] = (),
    combined: Sequence[str] = (),
    test_share: float,
    independent: bool = False,
    level: float = 0.95,
    targets: int = 1,
    repeated: bool = False,
) -> Comparison:
    """Compare the methods of a study with plain training.

    Every method is compared with the reference on the same splits; the p-values of all the
    augmentations are corrected together by Holm's method, so that in at most 1 - level of the
    studies in which no augmentation makes a difference any is called significant.

    Args:
        errors: For every method, the reference and the baselines among them, the value of the
            metric on the test rows of each split, the splits in the same order. None, NaN and
            infinity stand for a run that failed.
        metric: What the values are, a name of ``regaug.metrics.METRICS``.
        reference: Name of the row to compare with.
        baselines: Names of the rows that stand beside the nets.
        combined: Names of the rows that are made of other rows, such as an ensemble of all nets:
            neither augmentations, whose number the p-values are corrected for, nor baselines.
        test_share: Test rows per training row, n_test / n_train, at least 0. Validation rows have
            helped to make the models and may be counted as training rows.
        independent: Whether every split has rows of its own (independent draws of the data):
            the variance of the mean is then s^2 / J, and ``test_share`` has no effect.
        level: Confidence level of all intervals, in [0.5, 0.999].
        targets: Number of targets that the values are means over; for what they are called.
        repeated: Whether the values are of one split, trained with other seeds: seeds are
            independent draws, and the intervals say how much these vary, and nothing of other rows.

    Returns:
        A row for every name, the best mean first.

    Example:
        >>> found = analyze({"erm": [2.0, 4.0, 3.0], "mixup": [1.0, 2.0, 1.5]}, test_share=0.25)
        >>> [row.name for row in found.rows], found.row("mixup").change, found.row("erm").tier
        (['mixup', 'erm'], -50.0, 2)
    """
    test_share = check_range("test_share", test_share, 0.0)
    level = check_range("level", level, 0.5, 0.999)
    table = _table(errors, metric, reference, {"baselines": baselines, "combined": combined})
    n_splits = len(table[reference])
    factor = variance_factor(n_splits, test_share, independent or repeated)
    test = PairedTest(metric, factor, level)
    means = {name: test.mean(values) for name, values in table.items()}
    ranked = _rank(means, METRICS[metric].sign, reference)
    nets = [name for name in table if name not in (*baselines, *combined)]
    changes = {
        name: test.change(own, table[reference]) for name, own in table.items() if name != reference
    }
    tried = {name: changes[name].p for name in nets if name != reference}
    corrected = holm(tried)
    places = dict(zip(nets, _places([table[name] for name in nets], metric), strict=True))
    known = [name for name in ranked if means[name].estimate is not None]
    tiers = find_tiers({name: table[name] for name in known}, test)
    rows = []
    for name in ranked:
        values, mean = table[name], means[name]
        change, p_holm = changes.get(name, Change()), corrected.get(name)
        rank, won = places.get(name, (None, None))
        rows.append(
            Row(
                name=name,
                is_baseline=name in baselines,
                is_combined=name in combined,
                errors=tuple(float(v) if math.isfinite(v) else None for v in values),
                mean=mean.estimate,
                low=mean.low,
                high=mean.high,
                tier=tiers.get(name),
                change=change.estimate,
                change_low=change.low,
                change_high=change.high,
                p=change.p,
                p_holm=p_holm,
                is_significant=p_holm is not None and p_holm < 1.0 - level,
                rank=rank,
                won=won,
                n_failed=int(np.isnan(values).sum()),
            )
        )
    return Comparison(
        metric=metric,
        reference=reference,
        unit=METRICS[metric].unit,
        level=level,
        n_splits=n_splits,
        test_share=test_share,
        independent=independent,
        smallest_change=smallest_change(
            [table[name] for name in tried], table[reference], test, n_methods=len(tried)
        ),
        rows=tuple(rows),
        targets=targets,
        repeated=repeated,
    )


def _table(
    errors: Mapping[str, Sequence[float | None]],
    metric: str,
    reference: str,
    beside: Mapping[str, Sequence[str]],
) -> dict[str, Values]:
    """Check the errors; return them as arrays of equal length, with NaN for what failed."""
    is_ratio = lookup("metric", metric, METRICS).is_ratio
    for name in (reference, *(name for names in beside.values() for name in names)):
        lookup("row", name, errors)
    for argument, names in beside.items():
        if reference in names:
            raise ArgumentError(f"`reference` must not be one of `{argument}`, got {reference!r}.")
    if both := set(beside["baselines"]) & set(beside["combined"]):
        raise ArgumentError(
            f"`combined` must not name a baseline, got {', '.join(sorted(both))} in both."
        )
    table = {name: to_values(values) for name, values in errors.items()}
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) != 1 or lengths[reference] == 0:
        raise ArgumentError(
            f"`errors` must have a value for each split, equally many in every row, got {lengths}."
        )
    for name, values in table.items():
        if is_ratio and (values < 0).any():
            raise ArgumentError(
                f"`errors` must not be negative for {metric!r}, got {np.nanmin(values):g} of "
                f"{name!r}."
            )
    return table


def _rank(means: Mapping[str, Change], sign: float, reference: str) -> list[str]:
    """Return the names by their means, the best first; of equal ones the reference."""

    def order(name: str) -> tuple[float, bool, str]:
        mean = means[name].estimate
        return (math.inf if mean is None else sign * mean, name != reference, name)

    return sorted(means, key=order)


def _places(table: Sequence[Values], metric: str) -> list[tuple[float, float]]:
    """Return each row's mean rank and the share of splits it has won; who failed comes last."""
    from scipy.stats import rankdata

    errors = METRICS[metric].sign * np.stack(table)
    errors[np.isnan(errors)] = math.inf
    ranks: Values = rankdata(errors, axis=0)
    is_best = (errors == errors.min(axis=0)) & np.isfinite(errors)
    won = is_best / np.maximum(is_best.sum(axis=0), 1)
    return [(float(r), float(w)) for r, w in zip(ranks.mean(axis=1), won.mean(axis=1), strict=True)]
