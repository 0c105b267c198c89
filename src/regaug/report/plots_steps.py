"""A waterfall: how much each step contributed, from a single net to the blend."""

from regaug.formatting import change
from regaug.metrics import METRICS
from regaug.report import drawing
from regaug.report.drawing import ROW, TOP, WIDTH, Axis, Plot
from regaug.studies.steps import Steps

NAMES = 168.0  # room for what was done, which takes more words than the name of a method
HALF = 8.0  # of the height of a bar
TOTAL = "all together"


def draw_steps(steps: Steps | None, *, title: str = "") -> Plot | None:
    """Draw every step as a bar from the change before it to the change after it.

    None if there is nothing to draw: no steps, or a start alone. ``title`` is what the metric is
    called, its own name if empty.
    """
    if steps is None or len(steps.names) < 2:
        return None
    totals, metric = steps.totals, METRICS[steps.metric]
    title = title or metric.title
    rows = len(steps.names) + 1  # the last one is for all steps together
    bottom = TOP + ROW * rows
    axis = Axis.around(totals, NAMES + 10, WIDTH - 64, pad=0.08)
    side = "right" if metric.higher_is_better else "left"
    unit = ", %" if steps.unit == "percent" else ""
    body = [
        drawing.below(axis, TOP, bottom, f"change of {title}{unit}; {side} is better"),
        drawing.line(axis(0), TOP, axis(0), bottom, "axis"),
        drawing.text(NAMES, _middle(0) + 4, steps.names[0], anchor="end"),
        drawing.mark(axis(0), _middle(0), "dot"),
        drawing.text(WIDTH, _middle(0) + 4, "start", style="muted small", anchor="end"),
    ]
    for place, (name, own) in enumerate(zip(steps.names[1:], steps.told, strict=True), start=1):
        body.append(_bar(axis, name, (totals[place - 1], totals[place]), own, place, steps))
        # A step begins where the one before it has ended.
        x = axis(totals[place])
        body.append(drawing.line(x, _middle(place) + HALF, x, _middle(place + 1) - HALF, "axis"))
    body.append(_bar(axis, TOTAL, (0.0, totals[-1]), totals[-1], rows - 1, steps, is_total=True))
    said = "; ".join(
        f"{name} {change(own, steps.unit)}"
        for name, own in zip((*steps.names[1:], TOTAL), (*steps.told, totals[-1]), strict=True)
    )
    return Plot(
        "steps",
        f"Where the change of {title} comes from",
        f"From {steps.names[0]} on, step by step, means over the splits. The number beside a bar "
        "is the step's own change, against the step before it; the bars lie where they have "
        f"brought the {title} against the start.",
        drawing.drawing(bottom + 46, "".join(body), f"Change of {title} by step: {said}."),
    )


def _bar(
    axis: Axis,
    name: str,
    ends: tuple[float, float],
    own: float,
    place: int,
    steps: Steps,
    *,
    is_total: bool = False,
) -> str:
    y, (start, end) = _middle(place), sorted(axis(value) for value in ends)
    is_better = METRICS[steps.metric].sign * own < 0
    tone = "good" if is_better else "bad" if own else "muted"
    fill = "dot" if is_total or not own else f"{tone}-dot"
    weight = "strong" if is_total else ""
    return (
        drawing.text(NAMES, y + 4, name, style=weight, anchor="end")
        # A step that changed nothing is still to be seen.
        + drawing.rectangle(start, y - HALF, max(end - start, 1.5), 2 * HALF, fill)
        + drawing.text(
            WIDTH, y + 4, change(own, steps.unit), style=f"small {tone} {weight}", anchor="end"
        )
    )


def _middle(place: int) -> float:
    return TOP + ROW * (place + 0.5)
