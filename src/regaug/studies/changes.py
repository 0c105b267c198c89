"""How one row of a study differs from another: the corrected test on the splits' errors.

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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from regaug.metrics import METRICS

Values = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

# A value beyond this is a training that diverged, whether or not it got as far as infinity.
LARGEST = 1e100
# Two errors that are as close as this have the same value, computed in another order.
ROUNDING = 1e-9
# Logarithm of the largest ratio of two errors: an error of zero must not make a mean infinite.
LONGEST = math.log(1e9)
# The values a metric can have.
BOUNDS = {"r2": (-math.inf, 1.0), "pearson": (-1.0, 1.0)}
POSITIVE, ANY = (0.0, math.inf), (-math.inf, math.inf)


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
class PairedTest:
    """The corrected test, with all that it needs to know beside the values.

    Attributes:
        metric: What the values are.
        factor: The variance of a mean over the splits, as a multiple of the variance of one split.
        level: Confidence level of the intervals.
    """

    metric: str
    factor: float
    level: float

    def change(self, values: Values, others: Values) -> Change:
        """Compare two rows, each with a value for every split, NaN for what failed."""
        differences = self.differences(values, others)
        if differences is None:
            return Change()
        found = self._estimate(differences)
        if not self.is_ratio:
            return found
        ends = (found.estimate, found.low, found.high)
        estimate, low, high = (None if end is None else to_percent(end) for end in ends)
        return Change(estimate, low, high, found.p)

    def mean(self, values: Values) -> Change:
        """Return the mean and its interval, which does not leave the values a metric can have."""
        if np.isnan(values).any():
            return Change()
        found = self._estimate(values)
        if found.low is None or found.high is None:
            return Change(found.estimate)
        least, most = BOUNDS.get(self.metric, POSITIVE if self.is_ratio else ANY)
        return Change(found.estimate, max(found.low, least), min(found.high, most))

    def differences(self, values: Values, others: Values) -> Values | None:
        """Return log ratios of errors, or plain differences; None if either failed on a split."""
        if np.isnan(values).any() or np.isnan(others).any():
            return None
        differences = _log_ratios(values, others) if self.is_ratio else values - others
        differences[np.abs(differences) < ROUNDING] = 0.0
        return differences

    @property
    def is_ratio(self) -> bool:
        """Whether a change is one of ratios, told in per cent."""
        return METRICS[self.metric].is_ratio

    def _estimate(self, values: Values) -> Change:
        """Return the mean, which does not depend on the order of the splits, and how sure it is."""
        from scipy.special import stdtr, stdtrit

        freedom, mean = len(values) - 1, math.fsum(values) / len(values)
        if freedom == 0:
            return Change(mean)
        error = math.sqrt(math.fsum((values - mean) ** 2) / freedom * self.factor)
        half = float(stdtrit(freedom, (1.0 + self.level) / 2.0)) * error
        p = 1.0 if mean == 0.0 else 0.0
        if error > 0.0:
            p = float(2.0 * stdtr(freedom, -abs(mean) / error))
        return Change(mean, mean - half, mean + half, p)


def holm(p_values: Mapping[Key, float | None]) -> dict[Key, float | None]:
    """Correct p-values for their number (Holm, 1979).

    The smallest of m is multiplied by m, the next by m - 1 and so on; none may become smaller than
    the one before, or larger than 1. A missing one counts in m, because the size of the family must
    not depend on what came out.

    Example:
        >>> holm({"a": 0.5, "b": 0.25, "c": None})
        {'a': 1.0, 'b': 0.75, 'c': None}
    """
    known = [(p, name) for name, p in p_values.items() if p is not None]
    known.sort(key=lambda own: own[0])  # equal ones become equal in any order
    corrected: dict[Key, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for place, (p, name) in enumerate(known):
        largest = max(largest, min(1.0, (len(p_values) - place) * p))
        corrected[name] = largest
    return corrected


def to_values(errors: Sequence[float | None]) -> Values:
    """Return a row as an array, with NaN for what failed."""
    values = np.array(errors, dtype=np.float64)  # None becomes NaN
    values[~(np.abs(values) < LARGEST)] = math.nan
    return values


def to_percent(log_ratio: float) -> float:
    """Return the change in per cent that a log ratio is."""
    return 100.0 * math.expm1(min(max(log_ratio, -LONGEST), LONGEST))


def variance_factor(n_splits: int, test_share: float, independent: bool) -> float:
    """Return the variance of the mean over splits as a multiple of the variance of one."""
    return 1.0 / n_splits + (0.0 if independent else test_share)


def _log_ratios(values: Values, others: Values) -> Values:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(values) - np.log(others)
    ratios[values == others] = 0.0  # two errors of zero are equal as well
    return ratios.clip(-LONGEST, LONGEST)
