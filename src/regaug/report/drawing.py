"""Drawing SVG: axes, lines, dots and text.

Written by hand, because a drawing whose colors are rules of a style sheet follows the page into
dark mode and print, is small, and is the same to the byte for the same numbers.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Self

from regaug._outputs import MARK

WIDTH = 400.0  # of every plot; a phone shows it a little smaller, a desktop a little larger
Point = tuple[float, float]
Show = Callable[[float], str]  # a number as text
ROW = 26.0  # height of a method's row
NAMES = 112.0  # room for the names of methods
LEFT, RIGHT, TOP, BOTTOM = 70.0, WIDTH - 14.0, 12.0, 280.0  # of a plot with two axes
HEIGHT = BOTTOM + 46.0
_LETTER = 7.0  # width of a letter of a label, about
# Of the labels of an axis, with what they stand for.
_UNITS = (("G", 1e9), ("M", 1e6), ("k", 1e3))
# Characters that may stand in neither HTML nor XML.
FORBIDDEN = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]"

_PALETTES = {  # light and dark
    "paper": ("#ffffff", "#14181d"),
    "ink": ("#1a2027", "#e6eaee"),
    "muted": ("#59656f", "#9eabb6"),
    "faint": ("#dde3e8", "#323b44"),
    "good": ("#00678f", "#5fc3ea"),
    "bad": ("#b3401a", "#f19066"),
    "shade": ("#00678f22", "#5fc3ea2b"),
}
LIGHT, DARK = ({name: pair[i] for name, pair in _PALETTES.items()} for i in (0, 1))
RULES = """
.plot text { fill: $ink; font: 13px system-ui, sans-serif; }
.plot .muted { fill: $muted; }
.plot .small { font-size: 12px; }
.plot .strong { font-weight: 700; }
.plot .good { fill: $good; }
.plot .bad { fill: $bad; }
.plot .grid { stroke: $faint; fill: none; }
.plot .axis { stroke: $muted; fill: none; }
.plot .dash { stroke: $muted; stroke-dasharray: 5 4; fill: none; }
.plot .line { stroke: $muted; stroke-width: 2; fill: none; }
.plot .thin-line { stroke: $muted; fill: none; }
.plot .good-line { stroke: $good; stroke-width: 2; fill: none; }
.plot .bad-line { stroke: $bad; stroke-width: 2; fill: none; }
.plot .dot { fill: $muted; }
.plot .good-dot { fill: $good; }
.plot .bad-dot { fill: $bad; }
.plot .hollow { fill: $paper; stroke: $muted; stroke-width: 1.5; }
.plot .cloud { stroke: $good; stroke-width: 4; stroke-linecap: round; stroke-opacity: 0.65; }
.plot .area { fill: $shade; }
"""


@dataclass(frozen=True)
class Plot:
    """A drawing with what is said of it; its name is that of its file."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Axis:
    """A scale from values to places in a drawing; if it points up, its end is before its start."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, end: float, *, pad: float = 0.05
    ) -> Self:
        """Make an axis that has all the values, and some room beside them."""
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        room = (high - low) * pad
        if room <= 1e-12 * max(abs(low), abs(high)):
            room = 0.5 * abs(low) or 1.0
        return cls(low - room, high + room, start, end)

    def __call__(self, value: float) -> float:
        """Return the place of a value; a value outside of the axis lies at its end."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Tell whether a value lies on the axis."""
        return self.low <= value <= self.high

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Return round values on the axis with their labels; large ones in thousands, millions ...

        Example:
            >>> Axis(0.0, 1.0, 0, 100).ticks(3)
            [(0.0, '0.0'), (0.5, '0.5'), (1.0, '1.0')]
            >>> [label for _, label in Axis(0.0, 70_000.0, 0, 100).ticks(3)]
            ['0', '20k', '40k', '60k']
        """
        rough = (self.high - self.low) / max(about, 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough * 0.75)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        largest = step * max(abs(first), abs(last))
        unit, size = next(((u, s) for u, s in _UNITS if largest >= 10 * s), ("", 1.0))
        decimals = max(0, -math.floor(math.log10(step / size) + 1e-9))
        return [(i * step, label(i * step / size, decimals, unit)) for i in range(first, last + 1)]


def label(value: float, decimals: int, unit: str = "") -> str:
    """Return a number as an axis shows it, with a real minus sign."""
    is_handy = 1e-4 <= abs(value) < 1e6 or value == 0
    text = f"{value:,.{decimals}f}" if is_handy and decimals <= 5 else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}") + (unit if value else "")


def text(
    x: float, y: float, content: str, *, style: str = "", anchor: str = "start", turn: bool = False
) -> str:
    """Write a text; ``anchor`` is the side of it that is at ``x``."""
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}"{turned}>'
        f"{clean(content)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Draw a straight line."""
    return f'<path class="{style}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def curve(points: Sequence[Point], style: str) -> str:
    """Draw a line through points."""
    return f'<path class="{style}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'


def cloud(points: Sequence[Point], style: str = "cloud") -> str:
    """Draw many small dots as one path: lines without length, with round ends."""
    return f'<path class="{style}" d="{"".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)}"/>'


def rectangle(x: float, y: float, width: float, height: float, style: str) -> str:
    """Draw a rectangle."""
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" {size}/>'


def mark(x: float, y: float, style: str, *, shape: str = "circle", size: float = 5.0) -> str:
    """Draw a mark: a circle, a square, a diamond, or an arrow to the left or to the right."""
    if shape == "circle":
        return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"/>'
    if shape == "square":
        return rectangle(x - size * 0.85, y - size * 0.85, size * 1.7, size * 1.7, style)
    if shape == "diamond":
        far = size * 1.25
        corners = f"M{x - far:.1f} {y:.1f}L{x:.1f} {y - far:.1f}L{x + far:.1f} {y:.1f}"
        return f'<path class="{style}" d="{corners}L{x:.1f} {y + far:.1f}Z"/>'
    tip = size if shape == "right" else -size
    corners = f"M{x + tip:.1f} {y:.1f}L{x - tip:.1f} {y - size:.1f}V{y + size:.1f}Z"
    return f'<path class="{style}" d="{corners}"/>'


def labels_at_end(ends: Mapping[str, Point], styles: Mapping[str, str]) -> list[str]:
    """Name lines at their right ends, one label below the other."""
    labels, free = [], -math.inf
    for name, (x, y) in sorted(ends.items(), key=lambda own: own[1][1]):
        free = max(y, free + 15.0)
        style = f"small {styles[name]}".strip()
        labels.append(text(x + 5, free + 4, shorten(name, 13), style=style))
    return labels


def inside(x_axis: Axis, y_axis: Axis, body: str) -> str:
    """Cut off what lies outside of two axes, the second of which points up."""
    x, y = x_axis.start, y_axis.end
    width, height = x_axis.end - x, y_axis.start - y
    # A nested drawing hides what leaves it, and needs no name that another plot might have too.
    return (
        f'<svg x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'viewBox="{x:.1f} {y:.1f} {width:.1f} {height:.1f}">{body}</svg>'
    )


def frame(x_axis: Axis, y_axis: Axis, x_label: str, y_label: str) -> str:
    """Draw two axes with a grid, numbers and names."""
    left, right, bottom, top = x_axis.start, x_axis.end, y_axis.start, y_axis.end
    body = below(x_axis, top, bottom, x_label)
    for value, name in y_axis.ticks():
        y = y_axis(value)
        body += line(left, y, right, y, "grid")
        body += text(left - 6, y + 4, name, style="muted small", anchor="end")
    body += text(13, (top + bottom) / 2, y_label, style="small", anchor="middle", turn=True)
    return body + line(left, bottom, right, bottom, "axis")


def below(x_axis: Axis, top: float, bottom: float, name: str) -> str:
    """Draw an axis under a plot, with its grid."""
    body = ""
    for value, number in _fitting_ticks(x_axis):
        x = x_axis(value)
        body += line(x, top, x, bottom, "grid")
        body += text(x, bottom + 17, number, style="muted small", anchor="middle")
    middle = (x_axis.start + x_axis.end) / 2
    return body + text(middle, bottom + 36, name, style="small", anchor="middle")


def _fitting_ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return as many ticks as there is room for their labels, side by side."""
    room = abs(axis.end - axis.start)
    for about in (5, 4, 3, 2):
        ticks = axis.ticks(about)
        if len(ticks) * (_LETTER * max(len(name) for _, name in ticks) + _LETTER) <= room:
            break
    return ticks


def drawing(height: float, body: str, alternative: str) -> str:
    """Put parts together to a drawing that is as wide as there is room."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {WIDTH:g} {height:g}" '
        f'role="img" aria-label="{clean(alternative)}">{body}</svg>'
    )


def page_style() -> str:
    """Return the rules of all plots on a page, with the page's variables as colors."""
    return Template(RULES).substitute({name: f"var(--{name})" for name in LIGHT})


def as_file(svg: str) -> str:
    """Return a drawing as a file of its own, for viewers that know neither page nor variables."""
    light, dark = (Template(RULES).substitute(palette) for palette in (LIGHT, DARK))
    style = f"<style>{light}@media (prefers-color-scheme: dark) {{{dark}}}</style>"
    opening, rest = svg.split(">", 1)
    size = re.search(r'viewBox="0 0 (\S+) (\S+)"', opening)
    scaled = f' width="{size[1]}" height="{size[2]}"' if size else ""
    return f"{opening}{scaled}><!-- {MARK} -->{style}{rest}\n"


def shorten(name: str, most: int = 15) -> str:
    """Return a name that there is room for.

    Example:
        >>> shorten("mean radius of the tumor"), shorten("age")
        ('mean radius of…', 'age')
    """
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def clean(content: str) -> str:
    """Escape a text for HTML and SVG, and replace what neither may contain."""
    return escape(re.sub(FORBIDDEN, "\ufffd", content))
