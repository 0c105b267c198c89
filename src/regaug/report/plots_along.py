"""Plots of the error along the target: where it is common, and where it is rare."""

from collections.abc import Sequence
from statistics import fmean

from regaug.formatting import number
from regaug.methods import is_for_rare
from regaug.metrics import Scores
from regaug.report import drawing
from regaug.report.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, Axis, Plot
from regaug.studies.names import reference_name
from regaug.studies.study import Study

# Number of a tenth, and RMSE.
Line = list[tuple[int, float]]
# Room for the names of lines at their right ends.
_ROOM = 92.0
_TONES = {"line": "", "good-line": "good", "bad-line": "bad"}


def draw_along(study: Study) -> list[Plot]:
    """Draw the error of every net by tenth of the target's range, for each target."""
    names, plots = study.config.target_names, []
    for place in range(study.comparison.targets):
        lines = {
            row.name: line
            for row in study.comparison.rows
            if row.is_net and (line := _line(study.scores.get(row.name, ()), place))
        }
        if any(len(line) > 1 for line in lines.values()):
            name = f", {names[place]}" if len(names) > 1 else ""
            plots.append(_draw(study, lines, f"along-{place + 1}" if place else "along", name))
    return plots


def _line(scores: Sequence[Scores | None], place: int) -> Line:
    """Return the number and the mean RMSE of every tenth, over the splits that have rows in it."""
    known = [own.by_target for own in scores if own is not None]
    splits = [own[place].tenths for own in known if place < len(own)]
    if len(splits) < len(scores) or not all(splits):
        return []
    # Where a tenth lies differs from split to split; which one it is does not.
    errors = [[error for _, _, error in tenth] for tenth in zip(*splits, strict=True)]
    found = [[error for error in tenth if error is not None] for tenth in errors]
    return [(place, fmean(own)) for place, own in enumerate(found, 1) if own]


def _draw(study: Study, lines: dict[str, Line], key: str, target: str) -> Plot:
    points = [point for line in lines.values() for point in line]
    x_axis = Axis(0.5, 10.5, LEFT, RIGHT - _ROOM)
    y_axis = Axis.around([0.0, *(y for _, y in points)], BOTTOM, TOP)
    plain, looked_at = study.comparison.reference, study.looked_at
    # The others lie behind those that are named.
    styles = dict.fromkeys(lines, "axis") | {
        name: "line" if name == plain else "bad-line" if is_for_rare(name) else "good-line"
        for name in lines
        if name in looked_at or is_for_rare(name)
    }
    ranked = sorted(lines, key=lambda name: styles[name] != "axis")
    body = [drawing.frame(x_axis, y_axis, "tenth of the target, low to high", "RMSE")]
    for name in ranked:
        places = [(x_axis(x), y_axis(y)) for x, y in lines[name]]
        body.append(drawing.curve(places, styles[name]))
        body += [drawing.mark(x, y, "dot", size=2.0) for x, y in places if styles[name] != "axis"]
    named = [name for name in ranked if styles[name] != "axis"]
    ends = {name: (RIGHT - _ROOM, y_axis(lines[name][-1][1])) for name in named}
    body += drawing.labels_at_end(ends, {name: _TONES[styles[name]] for name in named})
    said = "; ".join(
        f"{name} {number(line[0][1])} in tenth {line[0][0]}, {number(line[-1][1])} in tenth "
        f"{line[-1][0]}"
        for name, line in lines.items()
    )
    others = " Thin lines are the other methods." if "axis" in styles.values() else ""
    return Plot(
        key,
        f"RMSE along the target{target}",
        "Test RMSE of the rows in each tenth of the target's range (1st to 99th percentile of the "
        f"test targets), means over the splits: of {reference_name(plain)}, of the best "
        f"augmentation and of methods that are meant for rare targets.{others} A tenth with few "
        "rows is drawn as large as one with many.",
        drawing.drawing(HEIGHT, "".join(body), f"RMSE along the target{target}: {said}."),
    )
