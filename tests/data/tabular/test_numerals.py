"""Numbers written as text, and read back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.tabular.numerals import NumberFormat, find_numbers
from regaug.data.tabular.texts import texts_of

SPACES = [" ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", "\N{THIN SPACE}"]


def read(texts, **options):
    """The numbers that are found in texts, in their order; None if there are none."""
    known = texts_of(pd.Series(texts, dtype="str"))
    found = find_numbers("a", known, **options)
    return None if found is None else known.spread(found[2]).tolist()


def write(number, decimals, thousands, decimal, before="", after=""):
    text = f"{abs(number):,.{decimals}f}".replace(",", "_").replace(".", decimal)
    return f"{'-' * (number < 0)}{before}{text.replace('_', thousands)}{after}"


styles = st.sampled_from(
    [
        *((thousands, ".") for thousands in (",", "'", "\N{RIGHT SINGLE QUOTATION MARK}", *SPACES)),
        *((thousands, ",") for thousands in (".", "'", *SPACES)),
    ]
)
affixes = st.sampled_from(
    [
        ("", ""),
        ("$", ""),
        ("EUR ", ""),
        ("", " kr"),
        ("", " km"),
        ("", "kg"),
        ("", "%"),
        ("", " m²"),
    ]
)


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=20),
    st.integers(1, 2),
    styles,
    affixes,
)
def test_a_number_written_in_any_style_is_read_back(numbers, decimals, style, affix):
    values = [number / 10**decimals for number in numbers]
    texts = [write(value, decimals, *style, *affix) for value in values]
    # One and two decimals are no thousands: every such column can be read in one way.
    assert read(texts) == pytest.approx(values, rel=1e-12, abs=0)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20), styles, affixes)
def test_whole_numbers_are_read_back_where_one_has_two_groups(numbers, style, affix):
    values = [*numbers, 1_234_567]
    assert read([write(value, 0, *style, *affix) for value in values]) == values


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["(1,200)", "300"], [-1200, 300]),
        (["1,200-", "35"], [-1200, 35]),
        (["45,-", "1.200,-"], [45, 1200]),
        (["45.-", "1'200.-"], [45, 1200]),
        (["1,23,456.50", "99"], [123456.5, 99]),
        (["Rs.500", "Rs. 1,000"], [500, 1000]),
        ([".5", "$.50"], [0.5, 0.5]),
        (["1e5", "2.5E-3", "-1e+2"], [1e5, 2.5e-3, -100]),
        (["\N{MINUS SIGN}5", "+7"], [-5, 7]),
        (["12 m2", "5 m2"], [12, 5]),
        (["12 ft3", "5 ft3"], [12, 5]),
        (["12%", "0.5"], [0.12, 0.5]),
        (["12%", "50"], [12, 50]),
        (["€110.5M", "€565K", "€0"], [110.5e6, 565e3, 0]),
        (["5m", "10m"], [5, 10]),
        (["0,123", "1,500"], [0.123, 1.5]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["1 year", "3 years"], [1, 3]),
        (["1st", "2nd", "3rd", "14th"], [1, 2, 3, 14]),
    ],
)
def test_other_ways_to_write_numbers_are_read(texts, expected):
    assert read(texts) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "10-20",
        "10 - 20",
        "1.2.3",
        "192.168.1.1",
        "12:30",
        "31/12/2024",
        "2024-01-31",
        "31.12.2024",
        "+47 22 33 44 55",
        "555-1234",
        "(555) 123-4567",
        "A12",
        "12A7",
        "0x1F",
        "5'11\"",
        "1,2",
        "3;4",
        "12 of 20",
        "10x20",
        "<5",
        "~7",
        "1,23",
        "#5",
    ],
)
def test_what_is_no_number_is_not_read(text):
    values = read([text, "1,234.5"])  # which has a decimal point
    assert np.isnan(values[0])


def test_telephone_numbers_are_no_numbers():
    assert read(["+47 123 456 789", "+47 222 333 444"]) is None
    assert read(["123 456 789", "222 333 444"]) is None
    assert read(["123 456 789", "2 333 444"]) == [123456789, 2333444]


def test_of_several_units_the_most_frequent_is_read():
    assert read(["5 km", "7 km", "3 mi", "9"]) == pytest.approx([5, 7, np.nan, 9], nan_ok=True)


def decide(*texts, **options):
    decided = find_numbers("a", texts_of(pd.Series(texts)), **options)[1]
    return decided.decimal, decided.is_certain, decided.is_ambiguous


def test_a_comma_before_three_digits_stands_between_thousands_unless_something_says_otherwise():
    only = ("1,234", "5,678")
    assert decide(*only) == (".", False, True)
    assert decide(*only, decimal=",") == (",", False, True)
    assert decide(*only, "1,5") == (",", True, False)
    assert decide(*only, "0,567") == (",", True, False)
    assert decide(*only, "1,234.5") == (".", True, False)
    assert decide(*only, "1,234,567") == (".", True, False)


def test_money_and_numbers_without_a_comma_beside_show_thousands():
    assert decide("$1,234", "$5,678") == (".", True, False)
    grouped = ("1,234", "5,678", "2,345", "9,876", "4,321")
    assert decide(*grouped, "567") == (".", True, False)
    assert decide(*grouped) == (".", False, True)


def test_a_point_before_three_digits_is_a_decimal_point_unless_another_column_has_commas():
    assert decide("1.234", "5.678") == (".", False, True)
    assert read(["1.234", "5.678"]) == [1.234, 5.678]
    assert read(["1.234", "5.678"], decimal=",") == [1234, 5678]


def test_a_format_reads_new_texts_as_it_reads_the_old_ones():
    german = NumberFormat("a", ",", ("#€",), (1.0,))

    def new(*texts):
        known = texts_of(pd.Series(texts))
        return known.spread(german.read(known)).tolist()

    assert new("1.234 €") == [1234.0]
    assert new("1,234") == [1.234]
    assert new("45210.5", "1.234") == [45210.5, 1.234]  # the file has decimal points now
    assert np.isnan(new("5 $")).all()
    assert np.isnan(new("ask")).all()


def test_numbers_among_texts_stay_as_they_are():
    known = texts_of(pd.Series([1.234, "5,5", 7, "x", None], dtype=object))
    _, _, values = find_numbers("a", known)
    assert known.spread(values).tolist() == pytest.approx(
        [1.234, 5.5, 7, np.nan, np.nan], nan_ok=True
    )
