"""The corrected test, and the correction for many tests."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.studies.changes import Change, PairedTest, holm, to_percent, to_values, variance_factor


def test_holm_by_hand():
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}
    # 0.005 * 4, 0.01 * 3, 0.03 * 2, then 0.04 * 1, which may not be below the one before.
    expected = {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    assert holm(p) == pytest.approx(expected)


def test_a_method_that_failed_still_counts_in_the_family():
    assert holm({"a": 0.02}) == {"a": 0.02}
    assert holm({"a": 0.02, "b": None}) == {"a": 0.04, "b": None}


@given(st.dictionaries(st.integers(0, 99), st.floats(0, 1), max_size=8), st.randoms())
def test_holm_keeps_the_order_and_does_not_depend_on_that_of_the_names(p, random):
    corrected = holm(p)
    names = list(p)
    random.shuffle(names)
    assert holm({name: p[name] for name in names}) == corrected
    for name, own in p.items():
        assert own <= corrected[name] <= min(1.0, len(p) * own)
        assert all(corrected[other] >= corrected[name] for other in p if p[other] > own)


def test_splits_that_share_rows_widen_the_variance():
    assert variance_factor(10, 0.25, independent=True) == 0.1
    assert variance_factor(10, 0.25, independent=False) == pytest.approx(0.35)


@pytest.mark.parametrize(("metric", "unit"), [("rmse", 1.0), ("r2", 0.0)])
def test_a_change_is_a_ratio_for_errors_and_a_difference_for_agreement(metric, unit):
    test = PairedTest(metric, factor=0.35, level=0.95)
    values, others = np.array([2.0, 6.0]), np.array([1.0, 3.0])
    expected = [math.log(2.0)] * 2 if unit else [1.0, 3.0]
    np.testing.assert_allclose(test.differences(values, others), expected)
    assert test.change(values, others).estimate == pytest.approx(100.0 if unit else 2.0)


def test_what_failed_has_no_change_and_no_mean():
    test = PairedTest("rmse", factor=0.35, level=0.95)
    failed, known = to_values([1.0, None, 2.0]), to_values([1.0, 2.0, 3.0])
    assert test.change(failed, known) == test.change(known, failed) == test.mean(failed) == Change()
    assert np.isnan(to_values([math.inf, -1e300, math.nan])).all()


def test_a_ratio_without_an_end_is_cut():
    assert to_percent(math.log(0.5)) == pytest.approx(-50.0)
    assert math.isfinite(to_percent(1e6))
    assert to_percent(-1e6) == pytest.approx(-100.0)
