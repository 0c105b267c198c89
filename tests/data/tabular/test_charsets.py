"""Bytes of a text file in any encoding become UTF-8."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.tabular.charsets import to_utf8
from regaug.exceptions import ArgumentError, DataError

TEXT = "size,city,price\n50,Tromsø,300\n60,Zürich,400\n" * 20


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (TEXT.encode(), []),
        (codecs.BOM_UTF8 + TEXT.encode(), []),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), ["Read as UTF-16."]),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), ["Read as UTF-16."]),
        (codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), ["Read as UTF-32."]),
        (TEXT.encode("utf-16-le"), ["Read as UTF-16."]),
        (TEXT.encode("utf-16-be"), ["Read as UTF-16."]),
        (TEXT.encode("cp1252"), ["Read as cp1252 (Windows, Western European)."]),
        (TEXT.encode("latin-1"), ["Read as cp1252 (Windows, Western European)."]),  # the same bytes
    ],
)
def test_the_encoding_is_found_and_said(data, note):
    assert to_utf8(data, "t.csv") == (TEXT.encode(), note)


def test_what_cp1252_does_not_have_is_latin_1():
    assert to_utf8(b"\x81,\xe9", "t.csv") == ("\x81,é".encode(), ["Read as latin-1."])


def test_the_euro_sign_of_windows_is_read():
    assert to_utf8("5 €".encode("cp1252"), "t.csv")[0] == "5 €".encode()


def test_the_encoding_can_be_named():
    data = "Łódź".encode("cp1250")
    assert to_utf8(data, "t.csv", encoding="cp1250") == ("Łódź".encode(), [])
    assert to_utf8(codecs.BOM_UTF8 + b"a", "t.csv", encoding="utf-8")[0] == b"a"


def test_what_cannot_be_decoded_is_an_error():
    with pytest.raises(DataError, match=r"t.csv is not text in utf-8: .* at byte 2\. Name another"):
        to_utf8(b"ab\xff", "t.csv", encoding="utf-8")
    for name in ("klingon", "hex"):
        with pytest.raises(ArgumentError, match=f"`encoding` must be the name of .* got '{name}'"):
            to_utf8(b"a", "t.csv", encoding=name)
    with pytest.raises(DataError, match="not a text file: it holds zero bytes"):
        to_utf8(bytes(range(256)) * 40, "t.csv")


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_an_error(data):
    try:
        text, _ = to_utf8(data, "t.csv")
    except DataError:
        return
    text.decode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_text_in_utf8_stays(text):
    if "\0" not in text and not text.startswith("\N{ZERO WIDTH NO-BREAK SPACE}"):
        assert to_utf8(text.encode(), "t.csv")[0] == text.encode()
