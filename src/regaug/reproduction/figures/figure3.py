"""Figure 3: nets on NO2 with scaled singular values, and the density of such data."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from regaug.data.base import Part, Split
from regaug.formatting import count
from regaug.reproduction.figures import sweep
from regaug.reproduction.figures.base import Figure, Numbers, Plan, compact, judge
from regaug.reproduction.figures.drawing import Panels
from regaug.reproduction.figures.sweep import INPUTS, JOINT, KEPT, Scaled, summary
from regaug.reproduction.figures.trainings import (
    SAME,
    foma_settings,
    standardized_splits,
    train_by_recipe,
    train_no2,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {"train": "training rows (200)", "test": "test rows (100)", "all": "all rows (500)"}
NEAR = 0.1  # how far from λ = 0.5 the least may be to be near it
WAYS = {"erm": "plain", SAME: "plain at FOMA's settings", "foma": "FOMA"}
# By factor, in the colors of the paper's caption: blue, orange and green.
DENSITIES = {
    "0": ("λ = 0, projected", "#3d5a98"),
    "0.5": ("λ = 0.5", "#e08e1b"),
    "1": ("λ = 1, the data", "#2f7d4f"),
}
NOTE = (
    "NO2, {splits} and initial weights, mean and standard deviation; settings as in figure "
    "2, the epoch with the best validation error. Inputs and targets are scaled together in random "
    "batches of at most 64 rows, the cut being the intrinsic dimension of each ({cuts} of 8). The "
    "paper's caption says training rows, its text test rows, a remark in its source all rows. Its "
    "density is of 'the data'; here of all input values of the 500 rows, each input in [0, 1]. "
    "Bottom: nets of a study's default recipe on standardized rows, as in figure 2; errors in the "
    "same units."
)


def measure(plan: Plan) -> tuple[Numbers, str]:
    """Train on NO2, sweep lambda on three sets of rows, and estimate the densities."""
    splits, runs = train_no2(plan)
    parts = [_parts(split) for split in splits]
    size = foma_settings("no2").batch_size
    whole = Scaled(parts[0]["all"], size)
    numbers = {
        "lambdas": compact(sweep.LAMBDAS),
        "errors": sweep.sweep(sweep.make_nets(runs), parts, size, (INPUTS, KEPT)),
        "density": _densities(whole),
        "settings": {name: results[0].settings.to_dict() for name, results in runs.items()},
    }
    numbers["recipe"] = _sweep_recipe(plan, size)
    cuts = f"{min(whole.cuts)} to {max(whole.cuts)}"
    return numbers, NOTE.format(splits=count(plan.seeds, "split"), cuts=cuts)


def paint(axes: Panels, data: Numbers) -> None:
    """Draw the errors on three sets of rows, and the three densities."""
    for axis, (part, title) in zip(axes.flat, TITLES.items(), strict=False):
        sweep.draw_part(axis, data["lambdas"], data["errors"][part], title)
        axis.set_ylabel("mean squared error")
    _set_limits(axes.flat[:3], data["errors"])
    _draw_densities(axes[1, 1], data["density"])
    for axis, (part, curves) in zip(axes[2], data["recipe"].items(), strict=True):
        sweep.draw_part(axis, data["lambdas"], curves, f"{TITLES[part]}, recipe")
        axis.set_ylabel("mean squared error")
    _set_limits(axes[2], data["recipe"])


def _sweep_recipe(plan: Plan, size: int) -> Numbers:
    """Sweep lambda for nets that were trained with a study's recipe."""
    splits = standardized_splits("no2", plan.seeds)
    nets = sweep.make_recipe_nets(train_by_recipe("no2", splits, plan), splits)
    parts = [{"train": split.train, "test": split.test} for split in splits]
    units = [float(split.y_scaler.std[0]) for split in splits]
    return sweep.sweep(nets, parts, size, units=units)


def caption(data: Numbers) -> str:
    """Say where the errors are least, who has the lower ones, and how many modes there are."""
    errors = data["errors"]
    train, test = (
        ", ".join(f"{name} {_fall(errors[part][way][JOINT])}" for way, name in WAYS.items())
        for part in ("train", "test")
    )
    lower = [_count_lower(errors[part]["foma"], errors[part][SAME]) for part in ("train", "test")]
    alone, kept = (summary(errors["test"][SAME][way]) for way in (INPUTS, KEPT))
    modes = data["density"]["modes"].items()
    claims = _claims(errors, tuple(WAYS), min(lower))
    return (
        f"NO2 with scaled singular values, error at λ = 1 and its least. Training rows: {train}. "
        f"Test rows: {test}. FOMA is lower than plain training at its settings for {lower[0]} and "
        f"{lower[1]} of 100 values of λ. {judge(claims)} The targets take part in the scaling: on "
        f"test rows the plain net's error at λ = 0 is {alone['at_0']:.3f} instead of "
        f"{alone['at_1']:.3f} where the inputs alone are scaled, but {kept['at_0']:.3f} where "
        "inputs scaled with the targets predict the original ones. "
        "Modes of the density of the inputs: "
        + ", ".join(f"{len(found)} at λ = {lam}" for lam, found in modes)
        + " (the paper: 1 at 0, 2 at 1). "
        + _say_recipe(data["recipe"])
    )


def _say_recipe(errors: Numbers) -> str:
    """Say where the errors of nets of a study's recipe are least."""
    ways = {"plain": SAME, "FOMA": "foma"}
    told = ", ".join(f"{name} {_fall(errors['test'][way][JOINT])}" for name, way in ways.items())
    lower = [_count_lower(errors[part]["foma"], errors[part][SAME]) for part in ("train", "test")]
    claims = _claims(errors, tuple(ways.values()), min(lower))
    return (
        f"With the recipe of a study, test rows: {told}; FOMA is lower for {lower[0]} (training "
        f"rows) and {lower[1]} (test rows) of 100 values of λ. {judge(claims)}"
    )


def _claims(errors: Numbers, ways: Sequence[str], lower: int) -> dict[str, bool]:
    """Return what the paper says of the curves, and whether these show it."""
    best = [summary(errors[part][way][JOINT])["best"] for part in ("train", "test") for way in ways]
    return {
        "scaled values have lower errors than the data": max(best) < 1,
        f"the least is near λ = 0.5 (here {min(best):.2f} to {max(best):.2f})": (
            max(abs(own - 0.5) for own in best) <= NEAR
        ),
        "FOMA is lower for all": lower == len(errors["test"]["foma"][JOINT]["mean"]),
    }


def _fall(curve: Numbers) -> str:
    """Say how low a curve gets from where it is at 1."""
    facts = summary(curve)
    return f"{facts['at_1']:.3f} to {facts['least']:.3f} at λ = {facts['best']:.2f}"


def _count_lower(one: Numbers, other: Numbers) -> int:
    """Count the factors at which the mean error of one net is below that of another."""
    return int(np.less(one[JOINT]["mean"], other[JOINT]["mean"]).sum())


def _parts(split: Split) -> dict[str, Part]:
    three = (split.train, split.validation, split.test)
    whole = Part(
        x=torch.cat([part.x[:] for part in three]),
        y=torch.cat([part.y for part in three]),
        rows=np.concatenate([part.rows for part in three]),
    )
    return {"train": split.train, "test": split.test, "all": whole}


def _densities(scaled: Scaled) -> Numbers:
    """Return kernel densities of all input values at three factors, and where their modes are."""
    from scipy.stats import gaussian_kde

    grid = np.linspace(-0.3, 1.3, 201)
    found: Numbers = {"grid": compact(grid), "values": {}, "modes": {}}
    for lam in DENSITIES:
        density = gaussian_kde(scaled.at(float(lam))[0].flatten().double().numpy())(grid)
        middle = density[1:-1]
        is_mode = (middle > density[:-2]) & (middle > density[2:])
        found["values"][lam] = compact(density)
        found["modes"][lam] = compact(grid[1:-1][is_mode])
    return found


def _set_limits(axes: Iterable["Axes"], errors: Numbers) -> None:
    """Give the panels of errors one scale, so that they can be compared."""
    curves = [c for nets in errors.values() for ways in nets.values() for c in ways.values()]
    top = 1.03 * max(np.add(c["mean"], c["sd"]).max() for c in curves)
    for axis in axes:
        axis.set_ylim(0, top)


def _draw_densities(axis: "Axes", density: Numbers) -> None:
    for lam, (words, color) in DENSITIES.items():
        axis.plot(density["grid"], density["values"][lam], color=color, label=words)
    axis.set(title="density of the inputs", xlabel="value of an input, scaled to [0, 1]")
    axis.set(ylabel="density", ylim=(0, None))
    axis.legend(loc="upper right")


FIGURE = Figure(
    "error over lambda on NO2", measure, paint, caption, (10, 11.4, 3, 2), minutes=0.3, legend=2
)
