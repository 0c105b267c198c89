"""The size of a change in words."""

import pytest

from regaug.studies.amounts import amount, probability
from regaug.studies.changes import Change


@pytest.mark.parametrize(
    ("change", "unit", "words"),
    [
        (Change(-12.3, -20.0, -4.0, 0.0004), "percent", "12 % (4 to 20, p < 0.001)"),
        (Change(12.3, 0.04, 20.0, 0.049), "percent", "12.30 % (0.04 to 20.00, p = 0.049)"),
        (Change(9.99), "percent", "10 %"),
        (Change(0.0), "percent", "less than 0.01 %"),
        (Change(5e5), "percent", "more than 1,000 %"),
        (Change(-0.0312), "points", "0.031"),
        (Change(1e-6), "points", "less than 0.0001"),
    ],
)
def test_an_amount_has_two_digits_or_so_and_no_sign(change, unit, words):
    assert amount(change, unit) == words


def test_a_p_value_that_is_not_known_is_not_told():
    assert probability(None) == ""
    assert amount(Change(-5.0, -8.0, -2.0), "percent") == "5.0 % (2.0 to 8.0)"
