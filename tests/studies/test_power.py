"""The smallest change that a study could have seen."""

import math

import numpy as np
import pytest
from scipy import stats

from regaug.studies.statistics import analyze

NAMES = ("erm", *(f"copy-{i}" for i in range(1, 9)))


def smallest(errors, **options):
    return analyze(errors, **{"test_share": 0.25, **options}).smallest_change


def spread(splits, size=0.02):
    """Log ratios with the mean zero and this standard deviation."""
    values = np.resize([1.0, -1.0], splits) if splits % 2 == 0 else np.arange(splits) - splits // 2
    return size * values / np.std(values, ddof=1)


@pytest.mark.parametrize(("splits", "n_methods"), [(10, 1), (10, 8), (5, 3), (3, 2), (30, 8)])
def test_it_is_found_in_four_of_five_studies_by_the_noncentral_t(splits, n_methods):
    errors = {"erm": np.ones(splits)}
    errors |= {f"copy-{i}": np.exp(spread(splits)) for i in range(n_methods)}
    found = -math.log(1.0 - smallest(errors) / 100)  # back to a log ratio
    least = stats.t.isf(0.05 / n_methods / 2, splits - 1)
    variance = 0.02**2 * (splits - 1) / stats.chi2.median(splits - 1)  # the rows' own are medians
    noncentrality = found / math.sqrt(variance * (1 / splits + 0.25))
    assert stats.nct.sf(least, splits - 1, noncentrality) == pytest.approx(0.8, abs=1e-4)


def test_points_are_told_as_points():
    errors = {"erm": np.full(10, 0.5), "ada": 0.5 + spread(10)}
    found = smallest(errors, metric="r2")
    ratio = smallest({"erm": np.ones(10), "ada": np.exp(spread(10))})
    assert found == pytest.approx(-math.log(1 - ratio / 100))


def test_one_wild_method_does_not_decide():
    errors = {"erm": np.ones(10), **{name: np.exp(spread(10)) for name in ("a", "b", "c")}}
    wild = {**errors, "c": np.exp(50 * spread(10))}
    assert smallest(wild) == pytest.approx(smallest(errors))


def test_more_splits_and_fewer_methods_see_smaller_changes():
    def of(splits, count, **options):
        return smallest(
            {"erm": np.ones(splits)} | {f"copy-{i}": np.exp(spread(splits)) for i in range(count)},
            **options,
        )

    assert of(20, 8) < of(10, 8) < of(5, 8) < of(3, 8)
    assert of(10, 1) < of(10, 8)
    assert of(10, 8, independent=True) < of(10, 8)
    assert of(10, 8, level=0.9) < of(10, 8)


def test_a_method_that_failed_counts_as_one_that_was_tried():
    errors = {"erm": np.ones(10), "a": np.exp(spread(10))}
    assert smallest({**errors, "b": [math.nan] * 10}) > smallest(errors)


@pytest.mark.parametrize(
    "errors",
    [
        {"erm": [1.0, 2.0], "a": [1.1, 2.1]},  # too few splits
        {"erm": [1.0] * 5},  # no augmentation
        {"erm": [1.0] * 5, "a": [None] * 5},  # none that worked
        {"erm": [None] * 5, "a": [1.0] * 5},
        {"erm": [1.0] * 5, "a": [1.5] * 5},  # no spread
    ],
)
def test_where_nothing_can_be_said_it_is_none(errors):
    assert smallest(errors) is None


def test_baselines_and_combinations_have_no_part_in_it():
    errors = {"erm": np.ones(10), "a": np.exp(spread(10))}
    more = {**errors, "ridge": np.exp(9 * spread(10)), "auto": np.exp(9 * spread(10))}
    assert smallest(more, baselines=["ridge"], combined=["auto"]) == smallest(errors)


@pytest.mark.parametrize("splits", [4, 10])
def test_a_change_of_this_size_is_found_in_about_four_of_five_simulated_studies(
    luck, errors_of, splits
):
    rng = np.random.default_rng(3)
    errors = errors_of(rng, luck(rng, (400, 9, splits)))
    null = [
        analyze(dict(zip(NAMES, table, strict=True)), test_share=0.25) for table in errors[:200]
    ]
    # What a study says of itself is near to what is true of all of them.
    said = [each.smallest_change for each in null]
    typical = float(np.median(said))
    assert np.quantile(said, 0.9) < 1.6 * typical
    errors[:, 1] *= 1.0 - typical / 100
    found = [analyze(dict(zip(NAMES, table, strict=True)), test_share=0.25) for table in errors]
    assert np.mean([each.row(NAMES[1]).is_significant for each in found]) == pytest.approx(
        0.8, abs=0.08
    )
