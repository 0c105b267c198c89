"""The look that all figures share; matplotlib is imported when something is drawn."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from regaug._files import write_bytes
from regaug.report.drawing import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, FAINT = LIGHT["ink"], LIGHT["muted"], LIGHT["faint"]
# Dark enough for thin lines, and told apart by those who see red and green alike.
COLORS = {
    "noise": "#d1495b",
    "mixup": "#e08e1b",
    "foma": "#00798c",
    "cems": "#3d5a98",
    "erm": "#b3401a",
    "erm at FOMA's settings": "#59656f",
}
DPI = 120
Panels: TypeAlias = NDArray[Any]  # axes of matplotlib
_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "svg.hashsalt": "regaug",  # or the same numbers would give another file every time
}


def style() -> AbstractContextManager[None]:
    """Return a context in which everything has the look of these figures."""
    from matplotlib import rc_context

    return rc_context(_STYLE)


def make_canvas(
    width: float, height: float, rows: int, columns: int, *, share: bool = False
) -> tuple["Figure", Panels]:
    """Return a figure of ``width`` x ``height`` inches and its axes, with one scale if wanted."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(width, height), layout=layout)
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)


def draw_band(
    axis: "Axes", x: Sequence[float], curve: Mapping[str, Sequence[float]], name: str, label: str
) -> None:
    """Draw the mean of a method's curve, and a band of one standard deviation to each side."""
    color, dash = COLORS[name], "--" if name == "foma" else "-"
    mean, sd = np.array(curve["mean"]), np.array(curve["sd"])
    axis.plot(x, mean, color=color, label=label, linestyle=dash)
    if sd.any():
        axis.fill_between(x, mean - sd, mean + sd, color=color, alpha=0.13, linewidth=0)


def save(figure: "Figure", stem: str | Path, note: str) -> list[Path]:
    """Write ``note`` under the figure and the figure as ``stem.svg`` and ``stem.png``."""
    from PIL import Image

    width = int(figure.get_size_inches()[0] * 15.5)  # characters that a line has room for
    text = fill(note, width)
    figure.supxlabel(text, x=0.01, ha="left", fontsize=8.5, color=MUTED, linespacing=1.4)
    paths = [Path(f"{stem}.{ending}") for ending in ("svg", "png")]
    drawn = BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_bytes(paths[0], drawn.getvalue())
    pixels, small = BytesIO(), BytesIO()
    figure.savefig(pixels, dpi=DPI)
    with Image.open(pixels) as image:  # a palette: a third of the size, no difference to be seen
        image.convert("RGB").quantize(160).save(small, format="png", optimize=True)
    write_bytes(paths[1], small.getvalue())
    return paths
