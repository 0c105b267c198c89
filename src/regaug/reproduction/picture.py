"""One picture of all cells: what was published against what is measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regaug.reproduction.figures.drawing import COLORS, INK, MUTED, make_canvas, save, style
from regaug.reproduction.measured import Measured

NAME = "published"
NOTE = (
    "A point for every figure that the paper publishes and that was measured in its protocol. "
    "Filled: trained to the end on the paper's own data. Hollow: cut short, or a stand-in, and no "
    "test of the paper. On the line both are equal; above it the measured number is the larger one."
)
_COLORS = {"erm": COLORS["erm"], "foma": COLORS["foma"], "foma-rho": COLORS["cems"]}


@dataclass(frozen=True)
class Point:
    """A figure of the paper and what was measured of it."""

    data: str
    label: str
    method: str
    metric: str
    published: float
    measured: float
    is_whole: bool  # trained to the end, on the paper's own data

    @property
    def ratio(self) -> float:
        """How many times as large as the published number the measured one is."""
        return self.measured / self.published


def list_points(tables: Sequence[Measured]) -> list[Point]:
    """Return a point for every published figure that was measured; both must be positive."""
    found = []
    for table in tables:
        for line in table.paper:
            is_whole = not line.lacks and not table.note
            for own in line.figures:
                if own.published_mean is not None and own.mean > 0:
                    both = own.published_mean, own.mean
                    found.append(
                        Point(table.data, line.label, line.method, own.title, *both, is_whole)
                    )
    return found


def say_points(points: Sequence[Point]) -> str:
    """Say what the picture shows, for those who do not see it."""
    whole = [own for own in points if own.is_whole]
    near = [own for own in whole if 0.9 <= own.ratio <= 1.1]
    apart = sorted(whole, key=lambda own: -abs(own.ratio - 1.0))[:3]
    far = ", ".join(
        f"{own.data} {own.label} {own.metric} {own.measured:.3g} for {own.published:.3g}"
        for own in apart
    )
    return (
        f"Published against measured for {len(points)} figures, on logarithmic axes. Of "
        f"{len(whole)} that were trained to the end {len(near)} are within 10 % of each other; "
        f"furthest apart are {far}."
    )


def draw_picture(points: Sequence[Point], folder: Path) -> list[Path]:
    """Draw the points as ``published.svg`` and ``published.png`` in a folder."""
    with style():
        figure, axes = make_canvas(7.0, 5.4, 1, 1)
        axis = axes[0, 0]
        for method, color in {**_COLORS, "others": MUTED}.items():
            own = [p for p in points if (p.method if p.method in _COLORS else "others") == method]
            for is_whole in (True, False):
                some = [p for p in own if p.is_whole == is_whole]
                x, y = [p.published for p in some], [p.measured for p in some]
                face, label = (color, method) if is_whole else ("none", None)
                axis.scatter(x, y, s=26, facecolor=face, edgecolor=color, label=label, alpha=0.85)
        values = [value for p in points for value in (p.published, p.measured)]
        ends = [min(values) * 0.8, max(values) * 1.25]
        axis.plot(ends, ends, color=INK, linewidth=0.9)
        whole = [p for p in points if p.is_whole]
        for point in sorted(whole, key=lambda p: -abs(p.ratio - 1.0))[:4]:
            at = (point.published, point.measured)
            words = f"{point.data}, {point.label}, {point.metric}"
            axis.annotate(words, at, (-6, 3), textcoords="offset points", fontsize=8, ha="right")
        axis.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        axis.set(xlabel="published", ylabel="measured in the paper's protocol")
        axis.legend(loc="lower right")
        return save(figure, folder / NAME, NOTE)
