"""How the error came down, step by step."""

import json
import math

import pytest

from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.studies.steps import Steps

ERRORS = {"single net": [2.0, 4.0], "ensemble": [1.0, 3.0], "blend": [1.1, 2.7]}


def test_a_step_is_the_mean_log_ratio_to_the_one_before():
    steps = Steps.from_errors(ERRORS)
    assert steps.names == tuple(ERRORS)
    expected = [(math.log(1 / 2) + math.log(3 / 4)) / 2, (math.log(1.1) + math.log(0.9)) / 2]
    assert steps.changes == pytest.approx(expected)


def test_the_steps_multiply_to_the_change_against_the_start():
    steps = Steps.from_errors(ERRORS)
    product = math.prod(1 + change / 100 for change in steps.told)
    assert steps.totals[0] == 0.0
    assert steps.totals[-1] == pytest.approx(100 * (product - 1))
    assert steps.totals[1] == pytest.approx(steps.told[0])


def test_points_add_up():
    steps = Steps.from_errors({"a": [0.5, 0.6], "b": [0.6, 0.7], "c": [0.5, 0.5]}, metric="r2")
    assert steps.unit == "points"
    assert steps.told == pytest.approx([0.1, -0.15])
    assert steps.totals == pytest.approx([0.0, 0.1, -0.05])


def test_a_step_that_failed_is_left_out():
    steps = Steps.from_errors({"a": [1.0, 1.0], "b": [0.5, None], "c": [0.5, 0.5]})
    assert steps.names == ("a", "c")
    assert steps.told == pytest.approx([-50.0])


def test_wrong_steps_are_refused():
    with pytest.raises(ArgumentError, match="a value for every step after the start, got 1 for 1"):
        Steps("rmse", ("a",), (0.1,))
    with pytest.raises(ArgumentError, match="`changes` must be finite"):
        Steps("rmse", ("a", "b"), (math.inf,))
    with pytest.raises(ArgumentError, match="a step that worked on every split"):
        Steps.from_errors({"a": [None, 1.0]})
    with pytest.raises(UnknownNameError, match="Did you mean 'rmse'"):
        Steps("rsme", ("a",), ())


def test_steps_are_plain_values_in_a_file():
    values = json.loads(json.dumps(Steps.from_errors(ERRORS).to_dict()))
    assert Steps(values["metric"], tuple(values["names"]), tuple(values["changes"])) == (
        Steps.from_errors(ERRORS)
    )
