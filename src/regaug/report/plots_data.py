"""Plots of the rows, as inputs and at a layer: singular values, and the intrinsic dimension."""

import math

from regaug.formatting import number, percent
from regaug.report import drawing
from regaug.report.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, Axis, Plot
from regaug.studies.facts import Latent
from regaug.studies.geometry import Geometry


def draw_singular_values(facts: Geometry) -> Plot | None:
    """Draw the singular values, and which of them make up the share that FOMA_rho keeps."""
    values = facts.singular_values
    if not values:
        return None
    x_axis = Axis(0.5, len(values) + 0.5, LEFT, RIGHT)
    y_axis = Axis(0.0, 1.05 * max(values) or 1.0, BOTTOM, TOP)
    width = (x_axis.end - x_axis.start) / len(values)
    body = [drawing.frame(x_axis, y_axis, "number", "singular value")]
    for place, value in enumerate(values):
        style = "good-dot" if place < facts.k else "dot"
        x = x_axis.start + width * (place + 0.1)
        body.append(drawing.rectangle(x, y_axis(value), width * 0.8, BOTTOM - y_axis(value), style))
    share, most = percent(facts.share), percent(facts.rho)
    said = f"The first {facts.k} of {facts.n_values} make up {share} of their sum"
    if facts.k == 0:
        said = f"The first of {facts.n_values} alone makes up more than {most} of their sum"
    rho = f"{facts.rho:g}"
    body.append(drawing.text(RIGHT, TOP + 12, f"k = {facts.k} at rho {rho}", anchor="end"))
    more = f" The first {len(values)} are drawn." if len(values) < facts.n_values else ""
    name, title = _named("singular-values", "Singular values of the data", facts)
    return Plot(
        name,
        title,
        f"Of the standardized training rows, {_what(facts)} and targets together "
        f"({facts.n_used:,} rows). {said}. Colored are those that foma-rho would keep as they are "
        f"at rho {rho}, if it looked at all rows at once.{more}",
        drawing.drawing(HEIGHT, "".join(body), f"Singular values in descending order. {said}."),
    )


def draw_two_nn(facts: Geometry) -> Plot | None:
    """Draw the TwoNN fit; None if no finite dimension fits."""
    fit = facts.two_nn
    if fit is None or fit.dimension is None or not fit.log_mu:
        return None
    x_axis = Axis.around([0.0, *fit.log_mu], LEFT, RIGHT, pad=0.02)
    y_axis = Axis.around([0.0, *fit.neg_log_survival], BOTTOM, TOP, pad=0.02)
    points = list(zip(fit.log_mu, fit.neg_log_survival, strict=True))
    end = min(x_axis.high, y_axis.high / fit.dimension if fit.dimension > 0 else math.inf)
    body = [
        drawing.frame(x_axis, y_axis, "log(r2 / r1)", "\N{MINUS SIGN}log(1 \N{MINUS SIGN} F)"),
        drawing.cloud([(x_axis(x), y_axis(y)) for x, y in points]),
        drawing.line(x_axis(0), y_axis(0), x_axis(end), y_axis(end * fit.dimension), "bad-line"),
        drawing.text(LEFT + 12, TOP + 14, f"dimension {number(fit.dimension, 3)}", style="strong"),
    ]
    dropped = f" {fit.n_dropped:,} rows were left out as duplicates." if fit.n_dropped else ""
    said = f"The slope of the line is the dimension, {number(fit.dimension, 3)}"
    name, title = _named("two-nn", "Intrinsic dimension (TwoNN)", facts)
    return Plot(
        name,
        title,
        f"From every row's distances r1 and r2 to its two nearest rows. {said}, beside "
        f"{facts.columns + facts.targets} columns. Points that leave the line mean that the data "
        f"have no single dimension.{dropped}",
        drawing.drawing(HEIGHT, "".join(body), f"TwoNN fit. {said}."),
    )


def _named(name: str, title: str, facts: Geometry) -> tuple[str, str]:
    """Return the name and the title of a plot; of a layer's rows they say so."""
    if isinstance(facts, Latent):
        return f"latent-{name}", f"{title.removesuffix(' of the data')} at {facts.place}"
    return name, title


def _what(facts: Geometry) -> str:
    if isinstance(facts, Latent):
        return f"what {facts.place} of a chosen plain net puts out"
    return "inputs"
