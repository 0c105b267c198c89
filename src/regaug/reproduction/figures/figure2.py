"""Figure 2: train error, test error and the gap between them over the epochs, on NO2.

Below, the same with the net and the recipe of a study, which the paper does not have.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from regaug.formatting import count
from regaug.reproduction.figures.base import Figure, Numbers, Plan, judge, spread
from regaug.reproduction.figures.drawing import Panels, draw_band
from regaug.reproduction.figures.trainings import (
    PARTS,
    SAME,
    standardized_splits,
    train_by_recipe,
    train_no2,
)
from regaug.training.results import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = {
    "train": "error on training rows",
    "test": "error on test rows",
    "gap": "gap: test minus train error",
}
LABELS = {
    "erm": "plain, rate 0.01, batch 32",
    SAME: "plain, rate 0.001, batch 64",
    "foma": "FOMA, rate 0.001, batch 64",
}
NOTE = (
    "NO2 as the paper prepares it, {splits} and initial weights, mean and standard "
    "deviation; the first epochs are cut off. FOMA at the settings of table 8 (intrinsic dimension "
    "of each batch, alpha 0.9, close batches), but on the inputs alone: the paper's place is the "
    "inputs and a layer. Plain training at C-Mixup's settings and, because the rate matters, at "
    "those of FOMA. Below, both with the net and the default recipe of a study (standardized rows, "
    "periodic features, a linear part, columns by relevance, averaged weights), its rate and "
    "batches, {epochs} epochs; FOMA as above."
)
CLAIMED = {
    "change": "FOMA is steadier",
    "test": "FOMA has the lower test error",
    "gap": "FOMA has the smaller gap",
}


def measure(plan: Plan) -> tuple[Numbers, str]:
    """Train plain and with FOMA on NO2 and keep the errors of every epoch."""
    _, runs = train_no2(plan)
    numbers = {
        "curves": {name: _curves(results) for name, results in runs.items()},
        "facts": {name: _facts(results) for name, results in runs.items()},
        "settings": {name: results[0].settings.to_dict() for name, results in runs.items()},
    }
    recipe = _measure_recipe(plan)
    epochs = recipe["settings"]["foma"]["epochs"]
    note = NOTE.format(splits=count(plan.seeds, "split"), epochs=epochs)
    return {**numbers, "recipe": recipe}, note


def _measure_recipe(plan: Plan) -> Numbers:
    """Train with a study's recipe, and with each of its parts alone."""
    splits = standardized_splits("no2", plan.seeds)
    runs = train_by_recipe("no2", splits, plan)
    parts = {part: train_by_recipe("no2", splits, plan, part=part) for part in PARTS}
    return {
        "curves": {name: _curves(results) for name, results in runs.items()},
        "facts": {name: _facts(results) for name, results in runs.items()},
        "settings": {name: results[0].settings.to_dict() for name, results in runs.items()},
        "parts": {
            part: {name: _facts(results) for name, results in own.items()}
            for part, own in parts.items()
        },
    }


def paint(axes: Panels, data: Numbers) -> None:
    """Draw train error, test error and gap side by side, those with the recipe below."""
    for row, (own, where) in zip(axes, ((data, ""), (data["recipe"], ", recipe")), strict=True):
        for axis, (part, title) in zip(row, PANELS.items(), strict=True):
            for name, curves in own["curves"].items():
                epochs = range(1, len(curves[part]["mean"]) + 1)
                draw_band(axis, epochs, curves[part], name, LABELS[name])
            axis.set(title=f"{title}{where}", xlabel="epoch", ylabel="RMSE of log(NO2)")
        _show_the_end(row[:2], own, ("train", "test"))
        _show_the_end(row[2:], own, ("gap",))


def caption(data: Numbers) -> str:
    """Say how low, how far apart and how smooth the curves are."""
    facts = data["facts"]

    def compare(fact: str, digits: int = 3) -> str:
        foma, erm, same = (f"{facts[name][fact]:.{digits}f}" for name in ("foma", "erm", SAME))
        return f"FOMA {foma}, plain {erm}, plain at FOMA's settings {same}"

    claims = {words: facts["foma"][fact] < facts["erm"][fact] for fact, words in CLAIMED.items()}
    same = [
        f"{words} {'too' if facts['foma'][fact] < facts[SAME][fact] else 'no longer'}"
        for fact, words in CLAIMED.items()
        if claims[words]
    ]
    same = same or ["none of it holds either"]
    return (
        f"NO2 over the epochs. Test error of the epoch with the best validation error: "
        f"{compare('test')}. Gap between test and train error at the end: {compare('gap')}. Mean "
        f"change of the train error from epoch to epoch in the second half: "
        f"{compare('change', 4)}. {judge(claims)} The paper does not give the settings of plain "
        f"training; beside plain training at FOMA's own, {', '.join(same)}. "
        f"{_say_recipe(data['recipe'])}"
    )


def _say_recipe(recipe: Numbers) -> str:
    """Say what the same comparison shows with a study's recipe, and with its parts."""
    facts = recipe["facts"]

    def compare(fact: str, digits: int = 3) -> str:
        return " and ".join(f"{facts[name][fact]:.{digits}f}" for name in ("foma", SAME))

    def is_lower(own: Numbers, fact: str) -> bool:
        return bool(own["foma"][fact] < own[SAME][fact])

    claims = {words: is_lower(facts, fact) for fact, words in CLAIMED.items()}
    parts = list(recipe["parts"].values())
    told = {
        "test": "the lower test error at the best epoch",
        "last_test": "the lower one at the last",
        "gap": "the smaller gap",
        "change": "the steadier error",
    }
    counts = [f"{words} in {sum(is_lower(p, fact) for p in parts)}" for fact, words in told.items()]
    return (
        f"With the recipe of a study, FOMA and plain training have {compare('test')} at the epoch "
        f"with the best validation error and {compare('last_test')} at the last, a gap of "
        f"{compare('gap')} and a change of {compare('change', 4)}. {judge(claims)} Of {len(parts)} "
        f"reduced recipes, without its parts and with one of them each, FOMA has "
        f"{', '.join(counts)}."
    )


def _curves(results: list[RunResult]) -> Numbers:
    train, test = (
        np.array([[getattr(epoch, part) for epoch in run.history] for run in results])
        for part in ("train", "test")
    )
    return {"train": spread(train), "test": spread(test), "gap": spread(test - train)}


def _facts(results: list[RunResult]) -> dict[str, float]:
    """Return the figures of the caption, each a mean over the runs."""
    train = np.array([[epoch.train for epoch in run.history] for run in results])
    late = np.abs(np.diff(train[:, train.shape[1] // 2 :]))
    ends = [run.history[-1] for run in results]
    values = {
        "test": np.mean([run.scores["test"].rmse for run in results]),
        "last_test": np.mean([end.test for end in ends]),
        "gap": np.mean([end.test - end.train for end in ends if end.test and end.train]),
        "change": late.mean() if late.size else 0.0,
    }
    return {name: float(f"{value:.5g}") for name, value in values.items()}


def _show_the_end(axes: Iterable["Axes"], data: Numbers, parts: tuple[str, ...]) -> None:
    """Give panels one scale without the first tenth, whose errors are many times the rest."""
    late: list[float] = []
    for curve in (curves[part] for curves in data["curves"].values() for part in parts):
        pairs = list(zip(curve["mean"], curve["sd"], strict=True))[len(curve["mean"]) // 10 :]
        late += [mean + sign * sd for mean, sd in pairs for sign in (-1, 1)]
    room = 0.05 * (max(late) - min(late))
    for axis in axes:
        axis.set_ylim(min(late) - room, max(late) + room)


FIGURE = Figure(
    "errors over the epochs on NO2", measure, paint, caption, (11, 7.8, 2, 3), minutes=0.3, legend=3
)
