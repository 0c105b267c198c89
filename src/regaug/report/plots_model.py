"""Plots of a model, made with rows that it has not learned: shares, columns, intervals."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from regaug.ensemble.diagnosis import Diagnosis
from regaug.formatting import count, number, percent
from regaug.metrics import METRICS
from regaug.report import drawing
from regaug.report.drawing import (
    BOTTOM,
    HEIGHT,
    LEFT,
    NAMES,
    RIGHT,
    ROW,
    TOP,
    WIDTH,
    Axis,
    Plot,
    Show,
)
from regaug.report.plots_residuals import (
    draw_columns,
    draw_groups,
    draw_predicted,
    draw_residuals,
    named,
    number_of,
)

Numbers = NDArray[np.float64]
# Columns and targets that there is room for.
MOST_BARS, MOST_TARGETS = 12, 3


def draw_diagnosis(diagnosis: Diagnosis) -> dict[str, Plot]:
    """Draw all plots that there are numbers for, in the order of the page."""
    plots = [draw_shares(diagnosis), draw_importance(diagnosis)]
    for place in range(min(len(diagnosis.targets), MOST_TARGETS)):
        plots += [draw_predicted(diagnosis, place), draw_residuals(diagnosis, place)]
        plots += draw_columns(diagnosis, place)
        plots += [draw_groups(diagnosis, place), draw_coverage(diagnosis, place)]
    return {plot.name: plot for plot in plots if plot is not None}


def draw_shares(diagnosis: Diagnosis) -> Plot | None:
    """Draw the share of every method and baseline as a bar; None if it is one."""
    shares = diagnosis.shares
    if len(shares) < 2:
        return None
    bars = {name: (share, 0.0) for name, share in shares.items()}
    said = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    return Plot(
        "model-shares",
        "What the model is made of",
        "Share of every method and baseline in the prediction, chosen on rows that they have not "
        "learned.",
        _bars(bars, "share", f"Shares: {said}.", lambda value: percent(value)),
    )


def draw_importance(diagnosis: Diagnosis) -> Plot | None:
    """Draw how much the error grows when a column is shuffled, with the spread over repeats."""
    found = diagnosis.importances
    shown = found.columns[:MOST_BARS]
    if not shown:
        return None
    title = METRICS["rmse"].title_for(len(diagnosis.targets))
    bars = {own.column: (own.mean, own.spread) for own in shown}
    said = ", ".join(f"{own.column} {number(own.mean, 3)}" for own in shown)
    left = len(found.columns) - len(shown)
    more = f" {count(left, 'further column')} matter less." if left else ""
    return Plot(
        "model-importance",
        "Which columns the model rests on",
        f"How much {title} grows when a column's values are shuffled among {found.rows} "
        f"{diagnosis.where}; lines are standard deviations over {found.repeats} repeats.{more} Of "
        "two columns that say the same, each seems to matter little.",
        _bars(bars, f"growth of {title}", f"Growth of {title}: {said}.", lambda v: number(v, 3)),
    )


def draw_coverage(diagnosis: Diagnosis, place: int = 0) -> Plot | None:
    """Draw how many rows lie in their intervals against how many should, with the binomial band."""
    if not diagnosis.coverage:
        return None
    rows = diagnosis.coverage[0].rows
    points = [(own.level, own.inside[place] / own.rows) for own in diagnosis.coverage]
    x_axis, y_axis = Axis(0.0, 1.0, LEFT, RIGHT), Axis(0.0, 1.0, BOTTOM, TOP)
    low, high = _band(rows)
    levels = np.linspace(0.0, 1.0, len(low))
    area = [*zip(levels, low, strict=True), *reversed([*zip(levels, high, strict=True)])]
    body = [
        drawing.frame(x_axis, y_axis, "share that should lie inside", "share that does"),
        drawing.curve([(x_axis(x), y_axis(y)) for x, y in area], "area"),
        drawing.line(x_axis(0), y_axis(0), x_axis(1), y_axis(1), "dash"),
        drawing.curve([(x_axis(x), y_axis(y)) for x, y in points], "good-line"),
        *(drawing.mark(x_axis(x), y_axis(y), "good-dot", size=4.0) for x, y in points),
    ]
    said = ", ".join(f"{percent(seen)} at {percent(level)}" for level, seen in points)
    return Plot(
        f"model-coverage{number_of(place)}",
        f"Rows in their intervals{named(diagnosis, place)}",
        f"{_how(diagnosis, rows)} In the band lie 95 % of such shares if the intervals are right: "
        "with few rows it is wide.",
        drawing.drawing(HEIGHT, "".join(body), f"Rows in their intervals: {said}."),
    )


def _how(diagnosis: Diagnosis, rows: int) -> str:
    """Say which rows the coverage was seen on, and what the intervals were measured on."""
    if not diagnosis.made_intervals:
        return f"Of {count(rows, 'row')} that neither trained the model nor measured its intervals."
    if diagnosis.rule == "time":
        how = "the later half of the rows put aside, with intervals measured on the earlier half"
    else:
        what = "groups" if diagnosis.rule == "group" else "rows"
        how = f"a fifth of the {what} put aside at a time, with intervals measured on the others"
    return f"Of {count(rows, 'row')}: {how}."


def _band(rows: int) -> tuple[Numbers, Numbers]:
    """Return the range that holds 95 % of the shares seen in so many rows, by the true share."""
    from scipy.stats import binom

    levels = np.linspace(0.0, 1.0, 41)
    low, high = binom.interval(0.95, rows, levels[1:-1])
    return np.array([0.0, *low / rows, 1.0]), np.array([0.0, *high / rows, 1.0])


def _bars(bars: Mapping[str, tuple[float, float]], label: str, said: str, show: Show) -> str:
    """Draw bars with names before them, lines for their spread, and numbers behind them."""
    ends = [end for mean, spread in bars.values() for end in (mean - spread, mean + spread)]
    axis = Axis.around([0.0, *ends], NAMES + 10, WIDTH - 56)
    bottom = TOP + ROW * len(bars)
    body = [drawing.below(axis, TOP, bottom, label)]
    for place, (name, (mean, spread)) in enumerate(bars.items()):
        y = TOP + ROW * (place + 0.5)
        start, end = sorted((axis(0.0), axis(mean)))
        body += [
            drawing.text(NAMES, y + 4, drawing.shorten(name), anchor="end"),
            drawing.rectangle(start, y - 7, max(end - start, 1.0), 14, "good-dot"),
            drawing.text(WIDTH, y + 4, show(mean), style="small", anchor="end"),
        ]
        if spread > 0:
            body.append(drawing.line(axis(mean - spread), y, axis(mean + spread), y, "line"))
    body.append(drawing.line(axis(0.0), TOP, axis(0.0), bottom, "axis"))
    return drawing.drawing(bottom + 46, "".join(body), said)
