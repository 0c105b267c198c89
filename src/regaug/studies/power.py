"""The smallest change that a study could have seen."""

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from regaug.studies.changes import ROUNDING, PairedTest, Values, to_percent

# The share of studies in which the change would be found.
POWER = 0.8
# The spread over fewer splits is not known well enough to say anything.
FEWEST_SPLITS = 3


def smallest_change(
    rows: Sequence[Values], reference: Values, test: PairedTest, *, n_methods: int
) -> float | None:
    """Return the change that would be called significant in 80 % of studies like this one.

    Of a row whose log ratios against the reference have the mean d and, over the splits, the
    standard deviation s, the corrected statistic has a noncentral t distribution with J - 1 degrees
    of freedom and noncentrality d / (s sqrt(1 / J + n_test / n_train)), when the correlation of the
    splits is the one that the correction assumes. So no normal approximation is needed. The
    statistic must pass the quantile at (1 - level) / (2 n_methods): what Holm's method asks of the
    first of ``n_methods`` p-values. The variance s^2 is the median of the rows' own, which one wild
    row does not decide, over the median of its distribution, so that it is not too small with few
    splits.

    Args:
        rows: Values of the augmentations, NaN for what failed.
        reference: Values of the reference on the same splits.
        test: The corrected test.
        n_methods: Number of augmentations, the failed ones included.

    Returns:
        The size of the change, without a sign: in per cent of the reference's error for a lower
        one, in points for R2 and Pearson's R. None with fewer than three splits, without a row that
        worked, and where the values do not vary.
    """
    from scipy.special import chdtri, nctdtrinc, stdtrit

    found = (test.differences(values, reference) for values in rows)
    known = [differences for differences in found if differences is not None]
    freedom = len(reference) - 1
    if not known or freedom + 1 < FEWEST_SPLITS:
        return None
    usual = median(float(np.var(own, ddof=1)) for own in known)
    # Of chi-squared, whose mean is the degrees of freedom, the median is lower: by 30 % with two.
    spread = math.sqrt(usual * freedom / float(chdtri(freedom, 0.5)))
    if spread < ROUNDING:
        return None
    least = float(stdtrit(freedom, 1.0 - (1.0 - test.level) / (2.0 * n_methods)))
    noncentrality = float(nctdtrinc(freedom, 1.0 - POWER, least))
    size = noncentrality * spread * math.sqrt(test.factor)
    return -to_percent(-size) if test.is_ratio else size
