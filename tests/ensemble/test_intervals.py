"""Intervals: the right rank, and the share of rows they promise."""

import numpy as np
import pytest
import torch

from regaug.ensemble.intervals import Calibration
from regaug.exceptions import ArgumentError


def calibrate(errors, floor=1.0, spread=0.0):
    target = torch.as_tensor(errors, dtype=torch.float64).reshape(len(errors), -1)
    floors = torch.full((target.shape[1],), floor, dtype=torch.float64)
    zero = torch.zeros_like(target)
    return Calibration.fit(zero, zero + spread, target, floor=floors)


@pytest.mark.parametrize(("level", "expected"), [(0.9, 9.0), (0.5, 5.0), (0.05, 1.0), (0.85, 9.0)])
def test_the_half_width_is_the_score_of_the_rank_that_the_finite_sample_asks_for(level, expected):
    calibration = calibrate([3.0, -1.0, 2.0, -9.0, 5.0, 4.0, 8.0, -7.0, 6.0])
    half = calibration.half_width(torch.zeros(2, 1, dtype=torch.float64), level)
    assert half.tolist() == [[expected]] * 2


def test_too_few_rows_for_a_level_are_an_error_that_says_which_level_there_is():
    calibration = calibrate([1.0] * 8)
    assert calibration.highest == 8 / 9
    calibration.half_width(torch.zeros(1, 1, dtype=torch.float64), calibration.highest)
    with pytest.raises(ArgumentError, match=r"at most 0\.888 .* 8 rows, got 0\.9"):
        calibration.half_width(torch.zeros(1, 1, dtype=torch.float64), 0.9)


@pytest.mark.parametrize("level", [0.0, 1.5, float("nan")])
def test_a_level_out_of_range_is_refused(level):
    with pytest.raises(ArgumentError, match="`interval` must be in"):
        calibrate([1.0] * 20).half_width(torch.zeros(1, 1, dtype=torch.float64), level)


def test_intervals_are_wider_where_the_members_disagree():
    calibration = calibrate(np.linspace(0.1, 2, 30), spread=1.0)
    spread = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)
    half = calibration.half_width(spread, 0.8)
    assert half[0] < half[1] < half[2]


def test_targets_have_widths_of_their_own():
    errors = np.column_stack([np.linspace(0.1, 1, 20), np.linspace(10, 100, 20)])
    half = calibrate(errors).half_width(torch.zeros(1, 2, dtype=torch.float64), 0.5)
    torch.testing.assert_close(half[0, 1], 100 * half[0, 0])


def test_the_promised_share_of_new_rows_is_covered_on_average():
    # 19 rows at 0.9 take the 18th: the exact share is 18 / 20. Heavy tails do not matter.
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        known, new = rng.standard_cauchy((2, 19))
        half = calibrate(known).half_width(torch.zeros(1, 1, dtype=torch.float64), 0.9)
        covered.append(np.mean(np.abs(new) <= half.item()))
    assert abs(np.mean(covered) - 0.9) < 4 * np.std(covered) / np.sqrt(len(covered))
