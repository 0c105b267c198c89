"""Dates in the orders that people use, and read back."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.tabular.dates import Clock, DateFormat, find_clock, find_dates
from regaug.data.tabular.texts import texts_of


def read(*texts, **options):
    known = texts_of(pd.Series(texts, dtype="str"))
    found = find_dates("a", known, **options)
    if found is None:
        return None
    days = known.spread(found[2])
    stamps = [None if np.isnan(day) else _stamp(day) for day in days]
    return found[0].order, found[1], stamps


def _stamp(day):
    return (pd.Timestamp(0) + pd.Timedelta(round(day * 86400), "s")).isoformat(" ")


FORMS = {
    "%d/%m/%Y": "dmy",
    "%d.%m.%Y": "dmy",
    "%d-%m-%Y": "dmy",
    "%d/%m/%y": "dmy",
    "%m/%d/%Y": "mdy",
    "%m-%d-%y": "mdy",
    "%Y/%m/%d": "ymd",
    "%Y-%m-%d": "ymd",
    "%d %b %Y": "ymd",
    "%d-%B-%Y": "ymd",
    "%b %d, %Y": "ymd",
    "%a, %d %b %Y": "ymd",
}
TIMES = ["", " %H:%M", " %H:%M:%S", " %I:%M %p", "T%H:%M:%SZ"]


@given(
    st.lists(
        st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2060, 1, 1)), max_size=15
    ),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(TIMES),
)
def test_a_date_written_in_any_order_is_read_back(moments, form, time):
    moments = [*moments, datetime.datetime(2023, 11, 28, 15, 45)]  # which shows the order
    cut = {"": "D", " %H:%M:%S": "s", "T%H:%M:%SZ": "s"}.get(time, "min")
    expected = [pd.Timestamp(m).floor(cut).isoformat(" ") for m in moments]
    order, is_ambiguous, found = read(*(m.strftime(form + time) for m in moments))
    assert (order, is_ambiguous, found) == (FORMS[form], False, expected)


def test_the_order_is_decided_by_all_values():
    assert read("1/2/2024", "31/12/2023")[::2] == (
        "dmy",
        ["2024-02-01 00:00:00", "2023-12-31 00:00:00"],
    )
    assert read("1/2/2024", "12/31/2023")[::2] == (
        "mdy",
        ["2024-01-02 00:00:00", "2023-12-31 00:00:00"],
    )


def test_where_both_orders_are_possible_the_month_comes_first_and_that_is_said():
    assert read("1/2/2024", "3/4/2024")[:2] == ("mdy", True)
    assert read("1/2/2024", "3/4/2024", order="dmy")[:2] == ("dmy", True)
    assert read("5/5/2024", "6/6/2024")[1] is False  # the same day either way


def test_before_points_the_day_comes_first_and_there_is_no_doubt():
    assert read("1.2.2024", "3.4.2024")[:2] == ("dmy", False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02", "2024-02-01 00:00:00"),
        ("2/2024", "2024-02-01 00:00:00"),
        ("Feb 2024", "2024-02-01 00:00:00"),
        ("2024-1-5 7:30", "2024-01-05 07:30:00"),
        ("2024-01-05T10:00:00+02:00", "2024-01-05 08:00:00"),
        ("5th of May", None),
        ("1/2/69", "1969-01-02 00:00:00"),
        ("1/2/68", "2068-01-02 00:00:00"),
        ("1/31/2024 12:05 AM", "2024-01-31 00:05:00"),
        ("1/31/2024 12:05 p.m.", "2024-01-31 12:05:00"),
    ],
)
def test_other_ways_to_write_dates(text, expected):
    found = read(text)
    assert (found and found[2][0]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "31/2/2024",
        "32/1/2024",
        "13/13/2024",
        "1/2/123",
        "1/2-2024",
        "1.2.3",
        "12:30",
        "10-20",
        "2024",
        "2024.12",
        "1/2/2024 25:00",
        "1/2/2024 9:77",
        "123-45-6789",
        "2024-13",
    ],
)
def test_what_is_no_date_is_not_read(text):
    assert read(text) is None


def test_a_format_reads_new_texts_in_its_order():
    known = texts_of(pd.Series(["1/2/2024", "2024-03-01", "5 Mar 2024", "x"]))
    days = DateFormat("a", "dmy").read(known)
    assert [None if np.isnan(day) else _stamp(day)[:10] for day in days] == [
        "2024-02-01",
        "2024-03-01",
        "2024-03-05",
        None,
    ]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["8:30", "12:00"], [8.5, 12.0]),
        (["8:30 PM", "12:00 am"], [20.5, 0.0]),
        (["1:30:00", "0:45:36"], [1.5, 0.76]),
        (["1:30:00", "45:00"], [1.5, 0.75]),
    ],
)
def test_times_are_hours(texts, expected):
    known = texts_of(pd.Series(texts))
    clock, hours = find_clock("a", known)
    assert hours == pytest.approx(expected)
    assert Clock("a", clock.has_seconds).read(known) == pytest.approx(expected)


def test_what_is_no_time_has_no_hours():
    assert find_clock("a", texts_of(pd.Series(["8:70", "x", "2024"]))) is None
