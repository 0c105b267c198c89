"""The look that all figures share; matplotlib is imported when something is drawn."""

from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

from regaug._files import write_bytes
from regaug.report.drawing import LIGHT

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


def style() -> Any:
    """Return a context in which everything has the look of these figures."""
    from matplotlib import rc_context

    return rc_context(_STYLE)


def make_canvas(width: float, height: float, rows: int, columns: int, **options: Any) -> Any:
    """Return a figure of ``width`` x ``height`` inches and its axes ``(rows, columns)``."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def draw_band(axis: Any, x: Any, curve: dict[str, list[float]], color: str, **line: Any) -> None:
    """Draw the mean of a curve, and a band of one standard deviation to each side."""
    mean, sd = curve["mean"], curve["sd"]
    axis.plot(x, mean, color=color, **line)
    if any(sd):
        low = [m - s for m, s in zip(mean, sd, strict=True)]
        high = [m + s for m, s in zip(mean, sd, strict=True)]
        axis.fill_between(x, low, high, color=color, alpha=0.13, linewidth=0)


def save(figure: Any, stem: str | Path, note: str) -> list[Path]:
    """Write ``note`` under the figure and the figure as ``stem.svg`` and ``stem.png``."""
    width = int(figure.get_size_inches()[0] * 15.5)  # characters that a line has room for
    text = fill(note, width)
    figure.supxlabel(text, x=0.01, ha="left", fontsize=8.5, color=MUTED, linespacing=1.4)
    paths = [Path(f"{stem}.{ending}") for ending in ("svg", "png")]
    drawn = BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_bytes(paths[0], drawn.getvalue())
    write_bytes(paths[1], _small(figure))
    return paths


def _small(figure: Any) -> bytes:
    """Return a PNG with a palette: a third of the size, and no difference to be seen."""
    from PIL import Image

    pixels, small = BytesIO(), BytesIO()
    figure.savefig(pixels, dpi=DPI)
    with Image.open(pixels) as image:
        image.convert("RGB").quantize(160).save(small, format="png", optimize=True)
    return small.getvalue()
