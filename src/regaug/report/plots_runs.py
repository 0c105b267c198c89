"""Plots of the chosen runs of two methods: how they learned, and what they predict."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from regaug.formatting import number
from regaug.metrics import METRICS
from regaug.report import drawing
from regaug.report.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, Axis, Plot
from regaug.runs.record import Curve, RunRecord
from regaug.studies.study import Study

MOST_DOTS = 600
Points = NDArray[np.float64]  # (n, 2)


def draw_learning(study: Study) -> list[Plot]:
    """Draw the learning curves of plain training and of the best augmentation, on one scale."""
    curves = {}
    for key, name in _pair(study).items():
        runs = [run for run in study.chosen[name] if run.curves.get("test")]
        if runs:
            curves[key] = (name, runs, _median_history(runs))
    kept = [
        value
        for _, _, history in curves.values()
        for part in history.values()
        for value in part[len(part) // 10 :]
        if math.isfinite(value)
    ]
    if not kept:
        return []
    y_axis = Axis.around(kept, BOTTOM, TOP)
    return [_learning_curve(study, key, *own, y_axis) for key, own in curves.items()]


def _learning_curve(
    study: Study,
    key: str,
    name: str,
    runs: Sequence[RunRecord],
    history: Mapping[str, Sequence[float]],
    y_axis: Axis,
) -> Plot:
    epochs = len(history["validation"])
    x_axis = Axis(0.5 if epochs == 1 else 1.0, max(float(epochs), 1.5), LEFT, RIGHT - 54)
    metric = study.comparison.title
    places = {
        part: [(x_axis(i + 1.0), _place(y_axis, own[i])) for i in range(_first(own), epochs)]
        for part, own in history.items()
    }
    train, test = places["train"], places["test"]
    best = max(1, round(float(np.median([run.best_epoch for run in runs]))))
    at = min(best, epochs) - 1
    body = [
        drawing.frame(x_axis, y_axis, "epoch", metric),
        drawing.inside(
            x_axis,
            y_axis,
            drawing.curve([*train, *reversed(test)], "area")
            + drawing.line(x_axis(at + 1.0), TOP, x_axis(at + 1.0), BOTTOM, "dash")
            + _curve(places["validation"], "thin-line", "dot")
            + _curve(train, "line", "dot")
            + _curve(test, "good-line", "good-dot"),
        ),
        *drawing.labels_at_end(
            {part: own[-1] for part, own in places.items()},
            {part: "good" if part == "test" else "muted" for part in places},
        ),
    ]
    sign = METRICS[study.comparison.metric].sign
    values = [history[part][max(at, _first(history[part]))] for part in ("train", "test")]
    gap = number(sign * (values[1] - values[0]), 3)
    said = (
        f"At the best epoch (dashed, {at + 1}) {metric} is {number(values[0])} on training rows "
        f"and {number(values[1])} on test rows: a generalization gap of {gap}."
    )
    return Plot(
        f"learning-{key}",
        f"Learning curve of {name}",
        f"{said} Medians over the splits; a run that has stopped counts with its last value. "
        "Training and test rows are looked at after every few epochs, and after the last.",
        drawing.drawing(HEIGHT, "".join(body), f"{metric} of {name} by epoch. {said}"),
    )


def _curve(points: Sequence[drawing.Point], style: str, dot: str) -> str:
    """Draw a line; a single point is a dot."""
    return drawing.mark(*points[0], dot) if len(points) == 1 else drawing.curve(points, style)


def _first(values: Sequence[float]) -> int:
    """Return where a curve begins: nobody looks at the test rows after every epoch."""
    known = (i for i, value in enumerate(values) if not math.isnan(value))
    return next(known, len(values) - 1)


def _median_history(runs: Sequence[RunRecord]) -> dict[str, list[float]]:
    """Return median errors by epoch, as long as half of the runs go on."""
    epochs = math.ceil(np.median([len(run.curves["test"]) for run in runs]))
    medians: dict[str, list[float]] = {}
    parts: tuple[Curve, ...] = ("train", "validation", "test")
    for part in parts:
        table = np.full((len(runs), epochs), np.nan)
        for own, run in zip(table, runs, strict=True):
            values = np.array(run.curves.get(part, ()), dtype=np.float64)[:epochs]
            known = np.flatnonzero(np.isfinite(values))
            if len(known):  # curves have a point after every few epochs
                own[:] = np.interp(np.arange(epochs), known, values[known], left=np.nan)
        medians[part] = [
            float(np.median(known)) if len(known := column[np.isfinite(column)]) else math.nan
            for column in table.T
        ]
    return medians


def _place(axis: Axis, value: float) -> float:
    """Return where a value lies, outside of the axis too; undefined ones lie far up."""
    share = (value - axis.low) / (axis.high - axis.low) if math.isfinite(value) else 9.0
    return axis.start + min(max(share, -9.0), 9.0) * (axis.end - axis.start)


def draw_predicted(study: Study) -> list[Plot]:
    """Draw predictions against the truth, for plain training and for the best augmentation."""
    samples = {key: (name, _sample(study.chosen[name])) for key, name in _pair(study).items()}
    samples = {key: own for key, own in samples.items() if len(own[1])}
    if not samples:
        return []
    true, predicted = np.concatenate([points for _, points in samples.values()]).T
    # A wild prediction lies at the edge, where it does not flatten the others.
    room = 0.25 * (true.max() - true.min())
    seen = predicted.clip(true.min() - room, true.max() + room)
    limits = [*true, *seen]
    x_axis, y_axis = Axis.around(limits, LEFT, RIGHT), Axis.around(limits, BOTTOM, TOP)
    return [
        _scatter(study, key, name, points, x_axis, y_axis)
        for key, (name, points) in samples.items()
    ]


def _scatter(study: Study, key: str, name: str, points: Points, x_axis: Axis, y_axis: Axis) -> Plot:
    body = [
        drawing.frame(x_axis, y_axis, "true", "predicted"),
        drawing.line(x_axis.start, y_axis.start, x_axis.end, y_axis.end, "dash"),
        drawing.cloud([(x_axis(x), y_axis(y)) for x, y in points]),
    ]
    targets = study.config.targets
    first = f" The first of {targets} targets." if targets > 1 else ""
    true, predicted = points.T
    varies = min(np.ptp(true), np.ptp(predicted)) > 0
    r = float(np.corrcoef(true, predicted)[0, 1]) if varies else None
    said = f"{len(points):,} test rows from all splits, correlation {number(r, 3)}."
    return Plot(
        f"predicted-{key}",
        f"Predicted against true, {name}",
        f"{said}{first} A perfect prediction lies on the dashed line.",
        drawing.drawing(HEIGHT, "".join(body), f"Predictions of {name} against the truth: {said}"),
    )


def _sample(runs: Sequence[RunRecord]) -> Points:
    """Return true and predicted values ``(n, 2)`` of the first target, of some rows."""
    pairs = [p for run in runs for p in zip(run.sample.true, run.sample.predicted, strict=True)]
    first = [(true[0], predicted[0]) for true, predicted in pairs]
    points = np.array(first, dtype=np.float64).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) > MOST_DOTS:
        points = points[np.linspace(0, len(points) - 1, MOST_DOTS).astype(np.int64)]
    return points


def _pair(study: Study) -> dict[str, str]:
    """Return the two methods that are looked at closely, by what they are."""
    return dict(zip(("plain", "augmented"), study.looked_at, strict=False))
