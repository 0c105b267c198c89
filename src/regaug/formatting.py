"""Numbers, times, intervals and lists as a reader sees them, and tables of text."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

# In what a change is told: per cent of an error, or plain points of an agreement.
Unit = Literal["percent", "points"]
MISSING = "\N{EN DASH}"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many digits that count; a dash if there is none.

    Example:
        >>> number(54.3219), number(1234567.0), number(0.00002)
        ('54.32', '1,234,567', '2e-05')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value != 0 and not 1e-3 <= abs(value) < 1e9:
        return _minus(f"{value:.{digits}g}")
    size = 0 if value == 0 else math.floor(math.log10(abs(value)))
    return _minus(f"{value:,.{max(0, digits - 1 - size)}f}")


def short(value: float, digits: int = 4) -> str:
    """Return a number as short as it can be, and a large one without an exponent.

    Example:
        >>> short(1.5), short(131046.2), short(0.00002)
        ('1.5', '131,046', '2e-05')
    """
    text = f"{value:.{digits}g}"
    return number(value, digits) if "e+" in text else text


def percent(share: float) -> str:
    """Return a share in per cent.

    Example:
        >>> percent(0.95)
        '95 %'
    """
    return f"{share:.0%}".replace("%", " %")


def change(value: float | None, unit: Unit) -> str:
    """Return a change with its sign and its unit.

    Example:
        >>> change(5.14, "percent"), change(0.0312, "points")
        ('+5.1 %', '+0.031')
    """
    if value is None:
        return MISSING
    if unit == "points":
        return _minus(f"{value:+.3f}")
    # A method whose training diverged on a split may be millions of per cent worse.
    form = "+.1f" if abs(value) < 99.95 else "+,.0f" if abs(value) < 1e9 else "+.0e"
    return _minus(f"{value:{form}} %")


def between(low: float | None, high: float | None, unit: Unit | None = None) -> str:
    """Return an interval: of a change, whose unit stands beside it, or of plain numbers.

    Example:
        >>> between(1.0, 7.2, "percent"), between(1.25, 1.5)
        ('+1.0 to +7.2', '1.250 to 1.500')
    """
    if low is None or high is None:
        return ""
    if unit is None:
        return f"{number(low)} to {number(high)}"
    return f"{change(low, unit)} to {change(high, unit)}".replace(" %", "")


def probability(value: float | None) -> str:
    """Return a p-value.

    Example:
        >>> probability(0.00001), probability(0.0412), probability(1.0)
        ('< 0.001', '0.041', '1.000')
    """
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def seconds(value: float) -> str:
    """Return a short time.

    Example:
        >>> seconds(0.001), seconds(0.456), seconds(83.2)
        ('< 0.01 s', '0.46 s', '83 s')
    """
    return "< 0.01 s" if value < 0.01 else f"{number(value, 2)} s"


def short_time(value: float) -> str:
    """Return a time of any size in the unit that suits it, to two digits.

    Example:
        >>> short_time(2.3e-7), short_time(0.0456), short_time(83.2)
        ('0.23 µs', '46 ms', '83 s')
    """
    unit, size = next((u, s) for u, s in (("s", 1.0), ("ms", 1e-3), ("µs", 0.0)) if value >= s)
    return f"{number(value / (size or 1e-6), 2)} {unit}"


def duration(value: float) -> str:
    """Return how long something takes, in seconds, minutes and hours.

    Example:
        >>> duration(42.3), duration(100), duration(5400)
        ('42 s', '1 min 40 s', '1 h 30 min')
    """
    whole = math.ceil(value - 0.5)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def count(number: int, noun: str) -> str:
    """Return a number and what it counts.

    Example:
        >>> count(1, "row"), count(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sentences(*parts: str) -> str:
    """Put sentences together for a terminal, empty ones left out."""
    return printable(" ".join(part for part in parts if part))


# What a terminal acts on: control characters but for the end of a line and the tab, marks that
# turn the direction of writing, and half characters.
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Return a text for a terminal: what would move its cursor or change colors is written out.

    Names of columns, groups and files are other people's.

    Example:
        >>> print(printable("size\x1b[2J"))
        size\x1b[2J
    """
    return _ACTS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


@dataclass(frozen=True)
class TextTable:
    """A table of text: a title, a header, rows, and sentences below."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """Return the table with its columns lined up, for a terminal or a pipe."""
        lines = [[printable(cell) for cell in line] for line in (self.header, *self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        shown = [
            "  ".join(f"{cell:{w}}" for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        beside = map(printable, [*filter(None, [self.title]), *self.notes])
        title = [next(beside)] if self.title else []
        return "\n".join([*title, *shown, *beside])

    def to_html(self) -> str:
        """Return the table for a notebook, with its title and the sentences below."""
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        head = f"<thead>{_line(self.header, 'th')}</thead>"
        body = f"<tbody>{''.join(_line(row, 'td') for row in self.rows)}</tbody>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table>{title}{head}{body}</table>{notes}"

    def to_markdown(self) -> str:
        """Return the header and the rows as Markdown."""
        lines = ["| " + " | ".join(self.header) + " |", "|" + " --- |" * len(self.header)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def as_html(*parts: str | TextTable) -> str:
    """Return paragraphs and tables for a notebook: no script, and the colors of the page.

    Example:
        >>> as_html("a < b")
        '<div><p>a &lt; b</p></div>'
    """
    blocks = [
        part.to_html() if isinstance(part, TextTable) else f"<p>{_lines(part)}</p>"
        for part in parts
        if part
    ]
    return f"<div>{''.join(blocks)}</div>"


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _line(cells: Sequence[str], tag: str) -> str:
    # Notebooks put every cell to the right, names too.
    shown = "".join(f'<{tag} style="text-align:left">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{shown}</tr>"


def _minus(text: str) -> str:
    return text if "e" in text else text.replace("-", "\N{MINUS SIGN}")
