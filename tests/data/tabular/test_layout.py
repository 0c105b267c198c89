"""Where the header is, and what is between the columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.tabular.layout import find_header, find_layout
from regaug.exceptions import DataError


def lay_out(text, preferred=","):
    return find_layout(text.splitlines(keepends=True), preferred, "t.csv")


ROWS = "1.5,2,3\n2.5,3,4\n3.5,4,5\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("preferred", [",", "\t"])
def test_the_delimiter_is_found(delimiter, preferred):
    layout = lay_out(("size,rooms,price\n" + ROWS).replace(",", delimiter), preferred)
    assert (layout.delimiter, layout.header.names) == (delimiter, ("size", "rooms", "price"))
    assert (layout.lines, bool(layout.header.notes)) == (1, delimiter != preferred)


def test_commas_in_numbers_are_no_delimiters():
    layout = lay_out("size;price, EUR\n1,5;3,5\n2,5;4,5\n3,5;5,5\n")
    assert (layout.delimiter, layout.header.names) == (";", ("size", "price, EUR"))


def test_delimiters_in_quotes_do_not_count():
    layout = lay_out('a,b\n"x;y;z",1\n"u;v;w",2\n')
    assert layout.delimiter == ","


@pytest.mark.parametrize(
    ("top", "lines", "note"),
    [
        ("", 1, None),
        ("\n\n", 3, None),
        ("# a comment\n# another, one\n", 3, "2 comment lines left out."),
        ("Sales of 2024\n", 2, "1 line above the header left out: 'Sales of 2024'."),
        ("Sales of 2024,,\n,,\n", 3, "2 lines above the header left out: 'Sales of 2024'."),
        ('"Sales, all of them"\n', 2, "1 line above the header left out: 'Sales, all of them'."),
        (",,\n", 2, "1 line above the header left out."),
        ("sep=,\n", 2, None),
    ],
)
def test_what_stands_above_the_header_is_left_out(top, lines, note):
    layout = lay_out(f"{top}size,rooms,price\n{ROWS}")
    assert layout.header.names == ("size", "rooms", "price")
    assert (layout.lines, layout.header.notes) == (lines, (note,) if note else ())


def test_excel_may_name_the_delimiter():
    assert lay_out("sep=;\na;b\n1;2\n").delimiter == ";"


def test_a_file_without_a_header_has_numbers_for_names():
    layout = lay_out(ROWS)
    assert (layout.header.names, layout.lines) == (("1", "2", "3"), 0)
    assert "the columns are called 1 to 3" in layout.header.notes[0]


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "2019,2020,2021"])
def test_numbers_that_count_up_are_names(header):
    assert lay_out(f"{header}\n{ROWS}").header.names == tuple(header.split(","))


def test_a_comment_may_hold_the_header():
    layout = lay_out(f"# made by hand\n# size,rooms,price\n{ROWS}")
    assert (layout.header.names, layout.lines) == (("size", "rooms", "price"), 2)


def test_names_are_made_for_columns_without_one():
    header = lay_out("a,,c,\n1,2,3,\n4,5,6,\n").header
    assert header.names == ("a", "Unnamed: 1", "c", "Unnamed: 3")
    assert header.unnamed == (1, 3)


def test_row_names_as_r_writes_them_have_no_name():
    assert lay_out('a,b\n"1",2,3\n"2",5,6\n').header.names == ("Unnamed: 0", "a", "b")


def test_a_header_that_is_too_short_does_not_fit():
    assert not lay_out("a,b\n1,2,3\n1,5,6\n").header.is_fitting


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "sep=;\n"])
def test_a_file_without_lines_is_empty(text):
    with pytest.raises(DataError, match="is empty"):
        lay_out(text)


def test_a_single_column_is_an_error():
    with pytest.raises(DataError, match="at least two columns .* got the header 'price'"):
        lay_out("price\n1\n2\n")


def test_the_header_of_a_sheet_is_found_below_its_title():
    rows = [["Sales", "", ""], ["", "by city", ""], ["size", "city", "price"], ["5", "Oslo", "7"]]
    header = find_header(rows * 1 + [["6", "Rome", "8"]] * 5)
    assert (header.names, header.end) == (("size", "city", "price"), 3)


@given(st.lists(st.text(max_size=20), max_size=12))
def test_any_lines_have_a_layout_or_are_an_error(lines):
    try:
        layout = find_layout([f"{line}\n" for line in lines], ",", "t.csv")
    except DataError:
        return
    assert len(layout.header.names) >= 1
    assert 0 <= layout.lines <= len(lines)
