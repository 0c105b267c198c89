"""What the errors of a study say: means, changes against plain training, and how sure they are.

The splits of one data set share rows, so the errors on them are not independent draws, and the
usual standard error of their mean is too small. Nadeau and Bengio (2003, "Inference for the
generalization error") widen it: the variance of a mean over J splits is estimated by

    s^2 (1 / J + n_test / n_train)

in place of s^2 / J. That is exact when the values of two splits have the correlation
n_test / (n_test + n_train), the one their common test rows bring about. All intervals and p-values
here are of Student's t with J - 1 degrees of freedom and this variance. What they cannot see is how
the answer would change with other training rows: those of two splits are mostly the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regaug._checks import check_range
from regaug._registry import lookup
from regaug.exceptions import ArgumentError
from regaug.formatting import Unit
from regaug.metrics import METRICS

Values = NDArray[np.float64]

# A value beyond this is a training that diverged, whether or not it got as far as infinity.
LARGEST = 1e100
# Two errors that are as close as this have the same value, computed in another order.
ROUNDING = 1e-9
# Logarithm of the largest ratio of two errors: an error of zero must not make a mean infinite.
LONGEST = math.log(1e9)
# The values a metric can have.
BOUNDS = {"r2": (-math.inf, 1.0), "pearson": (-1.0, 1.0)}
POSITIVE = (0.0, math.inf)


@dataclass(frozen=True)
class Change:
    """How one row of a study differs from another, split by split.

    For errors it is in per cent: the mean over splits of log(error / other's error), taken back by
    the exponential. Ratios make splits with large and with small errors count alike, do not depend
    on the target's unit, and their logarithms say the same whichever of the two rows is named
    first. R2 and Pearson's R may be zero or negative and have no such ratio: theirs is the mean
    difference.

    Attributes:
        estimate: The change; negative if the value is lower than the other's. None if either of
            the two failed on a split.
        low: Lower end of the interval; None if there is no estimate, or only one split.
        high: Upper end.
        p: Two-sided p-value of no change; None where there is no interval.
    """

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class Row:
    """One method, or one baseline, over all splits. What is undefined is None.

    A run that diverged leaves no finite error. A method with such a run has no mean, no interval
    and no p-value, because a mean over the other splits would flatter it, and is not significant.

    Attributes:
        name: Name of the method.
        is_baseline: Whether it stands beside the study rather than in it.
        errors: The value of every split; None where it is not finite.
        mean: Mean over the splits.
        low: Lower end of the mean's interval; None with a single split.
        high: Upper end.
        change: Change against the reference (see :class:`Change`); None for the reference itself.
        change_low: Lower end of the change's interval.
        change_high: Upper end.
        p: Two-sided p-value of no change.
        p_holm: The same by Holm's correction for the number of augmentations; None for the
            reference and baselines, which are no part of that family.
        is_significant: Whether ``p_holm`` is below 1 - level.
        rank: Mean rank among the nets over the splits, 1 is the best; None for baselines.
        won: Share of splits in which it is the best net, a tie shared; None for baselines.
        n_failed: Number of splits without a finite value.
    """

    name: str
    is_baseline: bool
    errors: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    p: float | None
    p_holm: float | None
    is_significant: bool
    rank: float | None
    won: float | None
    n_failed: int


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
        rows: The best mean first, those without a mean last.
    """

    metric: str
    reference: str
    unit: Unit
    level: float
    n_splits: int
    test_share: float
    independent: bool
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row:
        """Return the row of a method or a baseline."""
        return lookup("row", name, {row.name: row for row in self.rows})

    def paired(self, name: str, other: str) -> Change:
        """Compare any two rows; the p-value is that of this one pair, without Holm's correction."""
        values, others = (_values(self.row(each).errors) for each in (name, other))
        factor = _variance_factor(self.n_splits, self.test_share, self.independent)
        return _change(values, others, metric=self.metric, factor=factor, level=self.level)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file; None stands for what is undefined."""
        return asdict(self) | {"rows": [asdict(row) for row in self.rows]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the statistics that :meth:`to_dict` wrote down."""
        rows = (Row(**{**row, "errors": tuple(row["errors"])}) for row in values["rows"])
        return cls(**{**values, "rows": tuple(rows)})


def analyze(
    errors: Mapping[str, Sequence[float | None]],
    *,
    metric: str = "rmse",
    reference: str = "erm",
    baselines: Sequence[str] = (),
    test_share: float,
    independent: bool = False,
    level: float = 0.95,
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
        baselines: Names of the rows that stand beside the study.
        test_share: Test rows per training row, n_test / n_train, at least 0. Validation rows have
            helped to make the models and may be counted as training rows.
        independent: Whether every split has rows of its own (independent draws of the data):
            the variance of the mean is then s^2 / J, and ``test_share`` has no effect.
        level: Confidence level of all intervals, in [0.5, 0.999].

    Returns:
        A row for every name, the best mean first.

    Example:
        >>> found = analyze({"erm": [2.0, 4.0, 3.0], "mixup": [1.0, 2.0, 1.5]}, test_share=0.25)
        >>> [row.name for row in found.rows], found.row("mixup").change
        (['mixup', 'erm'], -50.0)
    """
    test_share = check_range("test_share", test_share, 0.0)
    level = check_range("level", level, 0.5, 0.999)
    table = _table(errors, metric, reference, baselines)
    n_splits = len(table[reference])
    factor = _variance_factor(n_splits, test_share, independent)
    nets = [name for name in table if name not in baselines]
    changes = {
        name: _change(values, table[reference], metric=metric, factor=factor, level=level)
        for name, values in table.items()
        if name != reference
    }
    corrected = holm({name: changes[name].p for name in nets if name != reference})
    places = dict(zip(nets, _places([table[name] for name in nets], metric), strict=True))
    rows = []
    for name, values in table.items():
        change, p_holm = changes.get(name, Change()), corrected.get(name)
        rank, won = places.get(name, (None, None))
        mean, low, high = _mean(values, metric=metric, factor=factor, level=level)
        rows.append(
            Row(
                name=name,
                is_baseline=name in baselines,
                errors=tuple(float(v) if math.isfinite(v) else None for v in values),
                mean=mean,
                low=low,
                high=high,
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
    sign = METRICS[metric].sign

    def order(row: Row) -> tuple[float, bool, str]:
        return (math.inf if row.mean is None else sign * row.mean, row.name != reference, row.name)

    return Comparison(
        metric=metric,
        reference=reference,
        unit=METRICS[metric].unit,
        level=level,
        n_splits=n_splits,
        test_share=test_share,
        independent=independent,
        rows=tuple(sorted(rows, key=order)),
    )


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Correct p-values for their number (Holm, 1979).

    The smallest of m is multiplied by m, the next by m - 1 and so on; none may become smaller than
    the one before, or larger than 1. A missing one counts in m, because the size of the family must
    not depend on what came out.

    Example:
        >>> holm({"a": 0.5, "b": 0.25, "c": None})
        {'a': 1.0, 'b': 0.75, 'c': None}
    """
    known = sorted((p, name) for name, p in p_values.items() if p is not None)
    corrected: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for place, (p, name) in enumerate(known):
        largest = max(largest, min(1.0, (len(p_values) - place) * p))
        corrected[name] = largest
    return corrected


def _table(
    errors: Mapping[str, Sequence[float | None]],
    metric: str,
    reference: str,
    baselines: Sequence[str],
) -> dict[str, Values]:
    """Check the errors; return them as arrays of equal length, with NaN for what failed."""
    higher_is_better = lookup("metric", metric, METRICS).higher_is_better
    for name in (reference, *baselines):
        lookup("row", name, errors)
    if reference in baselines:
        raise ArgumentError(f"`reference` must not be one of `baselines`, got {reference!r}.")
    table = {name: _values(values) for name, values in errors.items()}
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) != 1 or lengths[reference] == 0:
        raise ArgumentError(
            f"`errors` must have a value for each split, equally many in every row, got {lengths}."
        )
    for name, values in table.items():
        if not higher_is_better and (values < 0).any():
            raise ArgumentError(
                f"`errors` must not be negative for {metric!r}, got {np.nanmin(values):g} of "
                f"{name!r}."
            )
    return table


def _values(errors: Sequence[float | None]) -> Values:
    values = np.array(errors, dtype=np.float64)  # None becomes NaN
    values[~(np.abs(values) < LARGEST)] = math.nan
    return values


def _variance_factor(n_splits: int, test_share: float, independent: bool) -> float:
    """Return the variance of the mean over splits as a multiple of the variance of one."""
    return 1.0 / n_splits + (0.0 if independent else test_share)


def _estimate(values: Values, factor: float, level: float) -> Change:
    """Return the mean, which does not depend on the order of the splits, and how sure it is."""
    from scipy.special import stdtr, stdtrit

    freedom, mean = len(values) - 1, math.fsum(values) / len(values)
    if freedom == 0:
        return Change(mean)
    error = math.sqrt(math.fsum((values - mean) ** 2) / freedom * factor)
    half = float(stdtrit(freedom, (1.0 + level) / 2.0)) * error
    p = 1.0 if mean == 0.0 else 0.0
    if error > 0.0:
        p = float(2.0 * stdtr(freedom, -abs(mean) / error))
    return Change(mean, mean - half, mean + half, p)


def _mean(
    values: Values, *, metric: str, factor: float, level: float
) -> tuple[float | None, float | None, float | None]:
    """Return the mean and its interval, which does not leave the values the metric can have."""
    if np.isnan(values).any():
        return None, None, None
    found = _estimate(values, factor, level)
    if found.low is None or found.high is None:
        return found.estimate, None, None
    least, most = BOUNDS.get(metric, POSITIVE)
    return found.estimate, max(found.low, least), min(found.high, most)


def _change(values: Values, others: Values, *, metric: str, factor: float, level: float) -> Change:
    if np.isnan(values).any() or np.isnan(others).any():
        return Change()
    is_ratio = not METRICS[metric].higher_is_better
    differences = _log_ratios(values, others) if is_ratio else values - others
    differences[np.abs(differences) < ROUNDING] = 0.0
    found = _estimate(differences, factor, level)

    def in_unit(value: float | None) -> float | None:
        if value is None or not is_ratio:
            return value
        return 100.0 * math.expm1(min(max(value, -LONGEST), LONGEST))

    return Change(in_unit(found.estimate), in_unit(found.low), in_unit(found.high), found.p)


def _log_ratios(values: Values, others: Values) -> Values:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(values) - np.log(others)
    ratios[values == others] = 0.0  # two errors of zero are equal as well
    return ratios.clip(-LONGEST, LONGEST)


def _places(table: Sequence[Values], metric: str) -> list[tuple[float, float]]:
    """Return each row's mean rank and the share of splits it has won; who failed comes last."""
    from scipy.stats import rankdata

    errors = METRICS[metric].sign * np.stack(table)
    errors[np.isnan(errors)] = math.inf
    ranks: Values = rankdata(errors, axis=0)
    is_best = (errors == errors.min(axis=0)) & np.isfinite(errors)
    won = is_best / np.maximum(is_best.sum(axis=0), 1)
    return [(float(r), float(w)) for r, w in zip(ranks.mean(axis=1), won.mean(axis=1), strict=True)]
