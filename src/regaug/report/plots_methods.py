"""Plots with a row for every method: the leaderboard, the splits, the worst groups."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from regaug.exceptions import ArgumentError
from regaug.formatting import between, change, number, percent
from regaug.metrics import METRICS
from regaug.report import drawing
from regaug.report.drawing import NAMES, ROW, TOP, WIDTH, Axis, Plot
from regaug.studies.names import reference_name
from regaug.studies.statistics import Row
from regaug.studies.study import Study


def draw_leaderboard(study: Study) -> Plot | None:
    """Draw every row's change against plain training with its interval."""
    comparison = study.comparison
    rows = [
        row for row in comparison.rows if row.change is not None or row.name == comparison.reference
    ]
    if len(rows) < 2:
        return None
    axis = _change_axis(rows)
    bottom = TOP + ROW * len(rows)
    side = "right" if METRICS[comparison.metric].higher_is_better else "left"
    unit = ", %" if comparison.unit == "percent" else ""
    body = [
        drawing.below(axis, TOP, bottom, f"change{unit}; {side} is better"),
        drawing.line(axis(0), TOP, axis(0), bottom, "axis"),
    ]
    for place, row in enumerate(rows):
        body.append(_forest_row(study, row, axis, TOP + ROW * (place + 0.5)))
    said = "; ".join(
        f"{row.name} {change(row.change, comparison.unit)}" + (f" ({span})" if span else "")
        for row in rows
        if row.change is not None
        for span in [between(row.change_low, row.change_high, comparison.unit)]
    )
    name, level = comparison.title, percent(comparison.level)
    plain = reference_name(comparison.reference)
    what = "which get no new rows" if study.config.kind == "estimator" else "which are no nets"
    return Plot(
        "leaderboard",
        f"Change of {name} against {plain}",
        f"Lines are {level} intervals. A filled dot differs from {plain}, all comparisons "
        f"taken together; a hollow one may be chance. Squares are baselines, {what}, "
        "diamonds are made of several rows. An arrow points to what lies outside of the drawing.",
        drawing.drawing(bottom + 46, "".join(body), f"Change of {name} by method: {said}."),
    )


def _forest_row(study: Study, row: Row, axis: Axis, y: float) -> str:
    is_recommended = row.name == study.verdict.recommended
    style = "strong" if is_recommended else "" if row.is_net else "muted"
    body = drawing.text(NAMES, y + 4, row.name, style=style, anchor="end")
    if row.change is None:
        what = "none" if study.config.kind == "estimator" else "plain"
        words = drawing.text(WIDTH, y + 4, what, style="muted small", anchor="end")
        return body + drawing.mark(axis(0), y, "dot") + words
    is_better = METRICS[study.comparison.metric].sign * row.change < 0
    tone = ("good" if is_better else "bad") if row.is_significant else "muted"
    low, high = row.change_low, row.change_high
    if low is not None and high is not None and high >= axis.low and low <= axis.high:
        kind = "line" if tone == "muted" else f"{tone}-line"
        body += drawing.line(axis(low), y, axis(high), y, kind)
    shape = "square" if row.is_baseline else "diamond" if row.is_combined else "circle"
    kind = "hollow" if tone == "muted" else f"{tone}-dot"
    if not axis.holds(row.change):
        shape = "right" if row.change > 0 else "left"
        kind = "dot" if tone == "muted" else kind
    words = change(row.change, study.comparison.unit)
    weight = "small" if tone == "muted" else f"small {tone}"
    return (
        body
        + drawing.mark(axis(row.change), y, kind, shape=shape)
        + drawing.text(WIDTH, y + 4, words, style=weight, anchor="end")
    )


def _change_axis(rows: Sequence[Row]) -> Axis:
    """Return the axis of changes: one very bad row must not flatten all the others."""
    ends = {
        row.name: [v for v in (row.change, row.change_low, row.change_high) if v is not None]
        for row in rows
    }
    far = {name: max(map(abs, own), default=0.0) for name, own in ends.items()}
    nets = sorted(far[row.name] for row in rows if row.is_net and row.change is not None)
    usual = nets[len(nets) // 2] if nets else min(far[row.name] for row in rows if not row.is_net)
    # Of the other rows only those widen it that are near enough to be of interest.
    shown = [row.name for row in rows if far[row.name] <= (6.0 if row.is_net else 2.0) * usual]
    values = [0.0, *(value for name in shown for value in ends[name])]
    return Axis.around(values, NAMES + 8, WIDTH - 72, pad=0.08)


def draw_splits(study: Study) -> Plot | None:
    """Draw the test error of every row on every split."""
    comparison = study.comparison
    base = comparison.row(comparison.reference)
    errors = [(row.is_net, e) for row in comparison.rows for e in row.errors if e is not None]
    if not any(is_net for is_net, _ in errors):
        return None
    axis = _error_axis(errors)
    bottom = TOP + ROW * len(comparison.rows)
    name = comparison.title
    body = [drawing.below(axis, TOP, bottom, f"test {name}")]
    if base.mean is not None:
        body.append(drawing.line(axis(base.mean), TOP, axis(base.mean), bottom, "dash"))
    for place, row in enumerate(comparison.rows):
        y = TOP + ROW * (place + 0.5)
        style = "" if row.is_net else "muted"
        body.append(drawing.text(NAMES, y + 4, row.name, style=style, anchor="end"))
        body += [
            _split_mark(split, error, other, axis, y, study)
            for split, (error, other) in enumerate(zip(row.errors, base.errors, strict=True))
            if error is not None
        ]
        if row.mean is not None and axis.holds(row.mean):
            body.append(drawing.line(axis(row.mean), y - 9, axis(row.mean), y + 9, "axis"))
    ranges = "; ".join(
        f"{row.name} {number(min(known))} to {number(max(known))}"
        for row in comparison.rows
        if (known := [error for error in row.errors if error is not None])
    )
    plain, case = reference_name(comparison.reference), comparison.case
    return Plot(
        "splits",
        f"Test {name}, {case} by {case}",
        f"A dot is a {case}: filled where the method is better than {plain} on the very same "
        f"{case}, hollow where it is not. The short line is the mean, the dashed one the mean of "
        f"{plain}.",
        drawing.drawing(bottom + 46, "".join(body), f"Test {name} over the {case}s: {ranges}."),
    )


def _error_axis(errors: Sequence[tuple[bool, float]]) -> Axis:
    """Return the axis of errors, each with whether it is of a net: that of most nets."""
    nets = [error for is_net, error in errors if is_net]
    low, high = np.quantile(nets, [0.1, 0.9])
    room = 2.0 * (high - low)
    shown = [error for error in nets if low - room <= error <= high + room]
    low, high = min(shown), max(shown)
    room = 0.25 * (high - low)
    shown += [error for _, error in errors if low - room <= error <= high + room]
    return Axis.around(shown, NAMES + 10, WIDTH - 12)


def _split_mark(
    split: int, error: float, other: float | None, axis: Axis, y: float, study: Study
) -> str:
    sign = METRICS[study.comparison.metric].sign
    is_better = other is not None and sign * error < sign * other
    shape = "circle" if axis.holds(error) else "right" if error > axis.high else "left"
    style = "good-dot" if is_better else "hollow"
    title = f"<title>{study.comparison.case} {split + 1}: {number(error)}</title>"
    return f"<g>{title}{drawing.mark(axis(error), y, style, shape=shape, size=4.5)}</g>"


def draw_groups(study: Study) -> Plot | None:
    """Draw the mean error and that of the worst group, for every row."""
    found = worst_groups(study)
    if not found:
        return None
    nets = {row.name for row in study.comparison.rows if row.is_net} & found.keys() or found.keys()
    # A baseline that is far off must not flatten all the others.
    axis = _error_axis([(name in nets, v) for name, own in found.items() for v in own[:2]])
    bottom = TOP + ROW * len(found)
    name = study.comparison.title
    body = [drawing.below(axis, TOP, bottom, f"test {name}")]
    for place, (method, (mean, worst, _)) in enumerate(found.items()):
        y = TOP + ROW * (place + 0.5)
        style = "" if study.comparison.row(method).is_net else "muted"
        body += [
            drawing.text(NAMES, y + 4, method, style=style, anchor="end"),
            drawing.line(axis(mean), y, axis(worst), y, "line"),
            *_worst_marks(axis, mean, worst, y),
        ]
    said = "; ".join(f"{m} {number(own[0])}, worst {number(own[1])}" for m, own in found.items())
    return Plot(
        "groups",
        "All rows and the worst group",
        f"Test {name} over all rows (hollow) and of each split's worst group (filled), means over "
        "the splits. An arrow points to what lies outside of the drawing.",
        drawing.drawing(bottom + 46, "".join(body), f"Error and that of the worst group: {said}."),
    )


def _worst_marks(axis: Axis, mean: float, worst: float, y: float) -> list[str]:
    """Draw the error of all rows and of the worst group, or an arrow where both lie outside."""
    if not axis.holds(mean) and not axis.holds(worst):
        shape = "right" if mean > axis.high else "left"
        return [drawing.mark(axis(mean), y, "bad-dot", shape=shape)]
    return [drawing.mark(axis(mean), y, "hollow"), drawing.mark(axis(worst), y, "bad-dot")]


def worst_groups(study: Study) -> dict[str, tuple[float, float, str]]:
    """Return mean error, mean error of the worst group, and the group that is it most often.

    Only methods whose groups have a defined error on every split are in it.
    """
    metric = study.comparison.metric
    found = {}
    for row in study.comparison.rows:
        try:
            scores = [own for own in study.scores.get(row.name, ()) if own is not None]
            worst = [own.worst(metric) for own in scores]
        except ArgumentError:  # no groups
            continue
        if row.mean is not None and worst:
            name = Counter(name for name, _ in worst).most_common(1)[0][0]
            found[row.name] = (row.mean, math.fsum(value for _, value in worst) / len(worst), name)
    return found
