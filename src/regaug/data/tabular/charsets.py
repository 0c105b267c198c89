"""From the bytes of a text file to UTF-8, whatever they were written in."""

import codecs

from regaug.exceptions import ArgumentError, DataError

# Longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_HEAD = 8192  # bytes that show whether a file is text
_UNDEFINED = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])  # in cp1252
_NAMES = {"cp1252": "cp1252 (Windows, Western European)", "latin-1": "latin-1"}


def to_utf8(data: bytes, name: str, *, encoding: str | None = None) -> tuple[bytes, list[str]]:
    r"""Return a text file in UTF-8 without a mark, and what a reader should know.

    A mark at the beginning decides. Without one it is UTF-8 if it can be; UTF-16 if every second
    byte is zero; else cp1252, which Windows writes in Western Europe, or latin-1 where that has a
    byte that cp1252 has not.

    Args:
        data: The file.
        name: What it is called in errors.
        encoding: What it is written in, if that is known.

    Example:
        >>> to_utf8("é".encode("cp1252"), "t.csv")
        (b'\xc3\xa9', ['Read as cp1252 (Windows, Western European).'])
    """
    if encoding is not None:
        return _decode(data, name, encoding), []
    for mark, found in _MARKS.items():
        if data.startswith(mark):
            text = data[len(mark) :]
            if found == "utf-8":
                return _decode(text, name, found), []
            return _decode(text, name, found), [f"Read as {found[:6].upper()}."]
    if b"\0" in data[:_HEAD]:
        wide = _wide(data[:_HEAD])
        if wide is None:
            raise DataError(
                f"{name} is not a text file: it holds zero bytes. Is it of the kind that its name "
                "says? An Excel file ends in .xlsx, a Parquet file in .parquet."
            )
        return _decode(data, name, wide), ["Read as UTF-16."]
    if _is_utf8(data):
        return data, []
    found = "latin-1" if any(byte in data for byte in _UNDEFINED) else "cp1252"
    return _decode(data, name, found), [f"Read as {_NAMES[found]}."]


def _decode(data: bytes, name: str, encoding: str) -> bytes:
    try:
        text = data.decode(encoding)
    except LookupError:
        raise ArgumentError(
            f"`encoding` must be the name of a character encoding, such as 'utf-8', 'cp1252' or "
            f"'utf-16', got {encoding!r}."
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name} is not text in {encoding}: {error.reason} at byte {error.start:,}. Name "
            "another encoding, or none, and it is found out."
        ) from None
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").encode("utf-8", "replace")


def _wide(head: bytes) -> str | None:
    """Return which UTF-16 a text without a mark is in; None if it is no text."""
    head = head[: len(head) // 2 * 2]
    even, odd = head[::2].count(0), head[1::2].count(0)
    half = len(head) / 2
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
