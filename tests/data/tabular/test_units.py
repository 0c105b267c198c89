"""What may stand around a number, and what may not."""

import pytest

from regaug.data.tabular.units import around, choose_forms, is_currency


@pytest.mark.parametrize(
    ("skeleton", "form", "is_negative"),
    [
        ("#", "#", False),
        ("-#", "#", True),
        ("+#", "#", False),
        ("$#", "$#", False),
        ("-$#", "$#", True),
        ("$-#", "$#", True),
        ("$ #", "$#", False),
        ("US$#", "us$#", False),
        ("EUR #", "eur#", False),
        ("#€", "#€", False),
        ("# kr.", "#kr", False),
        ("(#)", "#", True),
        ("($#)", "$#", True),
        ("$(#)", "$#", True),
        ("# km", "#km", False),
        ("#kg", "#kg", False),
        ("# km/h", "#km/h", False),
        ("# Years", "#year", False),
        ("# year", "#year", False),
        ("#%", "#%", False),
        ("# °C", "#°C", False),
    ],
)
def test_signs_currencies_and_units_are_read(skeleton, form, is_negative):
    known = around(skeleton)
    assert (known.form, known.is_negative) == (form, is_negative)


@pytest.mark.parametrize(
    "skeleton",
    [
        "",
        "abc",
        "#-#",
        "#/#/#",
        "#:#",
        "No. #",
        "A#",
        "Q#",
        "##",
        "(#",
        "#)",
        "-(#)",
        "--#",
        "<#",
        "~#",
        "#!",
        "# see the note on the last page",
        "#x#",
        "# and #",
        "id_#",
    ],
)
def test_what_is_no_number_alone_is_refused(skeleton):
    assert around(skeleton) is None


def test_milliwatts_are_no_megawatts():
    assert around("# mW").form != around("# MW").form


def test_words_are_no_currencies():
    assert not any(is_currency(word) for word in ("km", "No", "ABC", "XYZ1", "$$$$abcd"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"#": 9}, {}),
        ({"#": 9, "$#": 1}, {"$#": 1.0}),
        ({"$#": 5, "€#": 4}, {"$#": 1.0}),
        ({"#km": 5, "#m": 1}, {"#km": 1.0}),
        ({"#m": 5, "#": 5}, {"#m": 1.0}),
        ({"#k": 5, "#": 5}, {"#k": 1e3, "#": 1.0}),
        ({"#K": 5, "#M": 5, "#m": 1}, {"#K": 1e3, "#M": 1e6, "#m": 1e6}),
        ({"$#m": 5}, {"$#m": 1e6}),
        ({"#M": 5}, {"#M": 1.0}),
        ({"$#": 9, "$#K": 1}, {"$#": 1.0, "$#K": 1e3}),
    ],
)
def test_a_column_has_one_unit_or_thousands_and_millions(rows, expected):
    assert choose_forms(rows) == expected
