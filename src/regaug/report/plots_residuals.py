"""Plots of what a model leaves unexplained: against the truth, the prediction, columns, groups."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regaug.ensemble.diagnosis import Diagnosis, Values
from regaug.formatting import count, number
from regaug.report import drawing
from regaug.report.drawing import BOTTOM, HEIGHT, LEFT, NAMES, RIGHT, ROW, TOP, WIDTH, Axis, Plot

Numbers = NDArray[np.float64]
# Groups, or levels of a column, that there is room for.
MOST_GROUPS = 12
# Rows of each part of a running median, and parts at most.
PART, MOST_PARTS = 8, 10


def draw_predicted(diagnosis: Diagnosis, place: int = 0) -> Plot:
    """Draw predictions against the truth."""
    true, predicted = _target(diagnosis, place)
    limits = [*true, *predicted]
    x_axis, y_axis = Axis.around(limits, LEFT, RIGHT), Axis.around(limits, BOTTOM, TOP)
    scores = diagnosis.scores.by_target[place]
    said = f"RMSE {number(scores.rmse)}, R2 {number(scores.r2, 3)} on {count(scores.n, 'row')}"
    body = [
        drawing.frame(x_axis, y_axis, "true", "predicted"),
        drawing.line(x_axis.start, y_axis.start, x_axis.end, y_axis.end, "dash"),
        drawing.cloud([(x_axis(x), y_axis(y)) for x, y in zip(true, predicted, strict=True)]),
    ]
    return Plot(
        f"model-predicted{number_of(place)}",
        f"Predicted against true{named(diagnosis, place)}",
        f"{said}. A perfect prediction lies on the dashed line.",
        drawing.drawing(HEIGHT, "".join(body), f"Predictions against the truth. {said}."),
    )


def draw_residuals(diagnosis: Diagnosis, place: int = 0) -> Plot:
    """Draw what is left, true minus predicted, against the prediction."""
    true, predicted = _target(diagnosis, place)
    return _scatter(
        f"model-residuals{number_of(place)}",
        f"What is left, against the prediction{named(diagnosis, place)}",
        "predicted",
        predicted,
        true - predicted,
    )


def draw_columns(diagnosis: Diagnosis, place: int = 0) -> list[Plot]:
    """Draw what is left against each of the columns that matter most."""
    true, predicted = _target(diagnosis, place)
    left, plots = true - predicted, []
    for column, (name, own) in enumerate(diagnosis.columns.items(), start=1):
        key = f"model-column-{column}{number_of(place)}"
        title = f"What is left, by {name}{named(diagnosis, place)}"
        if own.numbers:
            values, is_there = _known(own)
            if is_there.sum() > 1:
                plots.append(_scatter(key, title, name, values[is_there], left[is_there]))
        else:
            plots.append(_by_label(key, title, own.texts, left))
    return plots


def draw_groups(diagnosis: Diagnosis, place: int = 0) -> Plot | None:
    """Draw what is left, group by group."""
    if not diagnosis.groups:
        return None
    true, predicted = _target(diagnosis, place)
    title = f"What is left, by {diagnosis.group}{named(diagnosis, place)}"
    return _by_label(f"model-groups{number_of(place)}", title, diagnosis.groups, true - predicted)


def _scatter(name: str, title: str, label: str, x: Numbers, left: Numbers) -> Plot:
    x_axis, y_axis = Axis.around(x, LEFT, RIGHT), Axis.around([0.0, *left], BOTTOM, TOP)
    body = [
        drawing.frame(x_axis, y_axis, label, "true minus predicted"),
        drawing.line(x_axis.start, y_axis(0), x_axis.end, y_axis(0), "dash"),
        drawing.cloud([(x_axis(a), y_axis(b)) for a, b in zip(x, left, strict=True)]),
    ]
    trend = _running_median(x, left)
    said = "Above the dashed line the model has predicted too little, below it too much."
    if len(trend) > 1:
        body.append(drawing.curve([(x_axis(a), y_axis(b)) for a, b in trend], "bad-line"))
        said += " The line is a running median: far from zero, something is left to be learned."
    return Plot(
        name, title, said, drawing.drawing(HEIGHT, "".join(body), f"{title}. {len(x)} rows.")
    )


def _running_median(x: Numbers, left: Numbers) -> list[tuple[float, float]]:
    """Return the medians of equal parts of the rows, in the order of their values."""
    parts = min(MOST_PARTS, len(x) // PART)
    if parts < 2 or len(np.unique(x)) < parts:
        return []
    rows = np.array_split(np.argsort(x, kind="stable"), parts)
    return [(float(np.median(x[own])), float(np.median(left[own]))) for own in rows]


def _by_label(name: str, title: str, labels: Sequence[str], left: Numbers) -> Plot:
    """Draw a dot for every row beside its label, and the mean of each."""
    known = np.array(labels)
    groups = {str(label): left[known == label] for label in np.unique(known)}
    ranked = sorted(groups.items(), key=lambda item: -float(np.sqrt(np.mean(item[1] ** 2))))
    shown = ranked[:MOST_GROUPS]
    axis = Axis.around([0.0, *(v for _, own in shown for v in own)], NAMES + 10, WIDTH - 48)
    bottom = TOP + ROW * len(shown)
    body = [
        drawing.below(axis, TOP, bottom, "true minus predicted"),
        drawing.line(axis(0), TOP, axis(0), bottom, "dash"),
    ]
    for place, (label, own) in enumerate(shown):
        y = TOP + ROW * (place + 0.5)
        body += [
            drawing.text(NAMES, y + 4, drawing.shorten(label), anchor="end"),
            drawing.cloud([(axis(value), y) for value in own]),
            drawing.line(axis(own.mean()), y - 9, axis(own.mean()), y + 9, "bad-line"),
            drawing.text(WIDTH, y + 4, f"{len(own):,}", style="muted small", anchor="end"),
        ]
    said = "; ".join(f"{label} {number(own.mean(), 3)}" for label, own in shown)
    others = len(ranked) - len(shown)
    more = f" {count(others, 'other')} with smaller errors are left out." if others else ""
    return Plot(
        name,
        title,
        "A dot is a row; the line is the mean, the number how many rows there are. The largest "
        f"errors come first.{more}",
        drawing.drawing(bottom + 46, "".join(body), f"{title}, means: {said}."),
    )


def _target(diagnosis: Diagnosis, place: int) -> tuple[Numbers, Numbers]:
    true, predicted = (
        np.array([row[place] for row in rows], dtype=np.float64)
        for rows in (diagnosis.true, diagnosis.predicted)
    )
    return true, predicted


def _known(own: Values) -> tuple[Numbers, NDArray[np.bool_]]:
    values = np.array([math.nan if v is None else v for v in own.numbers], dtype=np.float64)
    return values, np.isfinite(values)


def number_of(place: int) -> str:
    """Return what the names of the plots of a target end with; nothing for the first."""
    return f"-{place + 1}" if place else ""


def named(diagnosis: Diagnosis, place: int) -> str:
    """Return what titles end with: the name of the target, where there are several."""
    return f", {diagnosis.targets[place]}" if len(diagnosis.targets) > 1 else ""
