"""Numbers, times, intervals and tables as a reader sees them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug import formatting
from regaug.formatting import MISSING, TextTable

MINUS = "\N{MINUS SIGN}"


def as_float(text):
    return float(text.replace(",", "").replace(MINUS, "-").replace(" %", ""))


@given(st.floats(-1e12, 1e12), st.integers(2, 6))
def test_a_number_is_right_in_the_digits_that_are_shown(value, digits):
    shown = as_float(formatting.number(value, digits))
    assert shown == pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits) * 1.001, abs=1e-300)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, MISSING),
        (math.nan, MISSING),
        (-math.inf, MISSING),
        (0.0, "0.000"),
        (-1.5, f"{MINUS}1.500"),
        (123456.7, "123,457"),
        (-1e-5, "-1e-05"),
    ],
)
def test_numbers_that_are_special(value, text):
    assert formatting.number(value) == text


@given(st.floats(-1e9, 1e9), st.sampled_from(["percent", "points"]))
def test_a_change_has_its_sign_and_its_unit(value, unit):
    text = formatting.change(value, unit)
    assert text[0] in f"+{MINUS}-"
    assert text.endswith(" %") == (unit == "percent")
    assert as_float(text) == pytest.approx(value, rel=0.6, abs=0.06)
    assert ("%" in formatting.between(value, value, unit)) is False


def test_what_is_not_there_is_a_dash_or_nothing():
    assert formatting.change(None, "points") == formatting.probability(None) == MISSING
    assert formatting.between(None, 1.0) == formatting.between(1.0, None, "percent") == ""


@given(st.floats(0.0, 1e6))
def test_a_duration_is_right_to_the_minute(value):
    units = {"s": 1, "min": 60, "h": 3600}
    words = formatting.duration(value).split()
    total = sum(int(n) * units[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    assert abs(total - value) <= (0.5 if value < 3599 else 60)


def test_counts_and_sentences():
    assert [formatting.count(n, "split") for n in (0, 1, 2)] == ["0 splits", "1 split", "2 splits"]
    assert formatting.sentences("One.", "", "Two.") == "One. Two."


TABLE = TextTable("Errors", ("method", "RMSE"), [("erm", "1.0"), ("manifold-mixup", "")], ["Note."])


def test_a_table_is_lined_up_as_text():
    assert str(TABLE).splitlines() == [
        "Errors",
        "method          RMSE",
        "erm             1.0",
        "manifold-mixup",
        "Note.",
    ]
    assert str(TextTable("", ("a",), [])) == "a"


def test_a_table_is_html_for_a_notebook():
    page = formatting.as_html("a <script> & b\nc", TextTable("T", ("x<",), [("1 & 2",)], ["n"]), "")
    assert page == (
        "<div><p>a &lt;script&gt; &amp; b<br>c</p><table><caption>T</caption>"
        '<thead><tr><th style="text-align:left">x&lt;</th></tr></thead>'
        '<tbody><tr><td style="text-align:left">1 &amp; 2</td></tr></tbody></table><p>n</p></div>'
    )


def test_a_table_is_markdown_without_title_and_notes():
    assert TABLE.to_markdown().splitlines() == [
        "| method | RMSE |",
        "| --- | --- |",
        "| erm | 1.0 |",
        "| manifold-mixup |  |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0 µs"), (3.4e-6, "3.4 µs"), (1e-3, "1.0 ms"), (0.25, "250 ms"), (1.0, "1.0 s")],
)
def test_a_short_time_has_the_unit_that_suits_it(value, text):
    assert formatting.short_time(value) == text
