"""Figure 2: train error, test error and the gap between them over the epochs, on NO2."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from regaug.formatting import count
from regaug.reproduction.figures.base import Figure, Numbers, Plan, judge, spread
from regaug.reproduction.figures.drawing import Panels, draw_band
from regaug.reproduction.figures.trainings import SAME, train_no2
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
    "those of FOMA."
)


def measure(plan: Plan) -> tuple[Numbers, str]:
    """Train plain and with FOMA on NO2 and keep the errors of every epoch."""
    _, runs = train_no2(plan)
    numbers = {
        "curves": {name: _curves(results) for name, results in runs.items()},
        "facts": {name: _facts(results) for name, results in runs.items()},
        "settings": {name: results[0].settings.to_dict() for name, results in runs.items()},
    }
    return numbers, NOTE.format(splits=count(plan.seeds, "split"))


def paint(axes: Panels, data: Numbers) -> None:
    """Draw train error, test error and gap side by side."""
    for axis, (part, title) in zip(axes.flat, PANELS.items(), strict=True):
        for name, curves in data["curves"].items():
            epochs = range(1, len(curves[part]["mean"]) + 1)
            draw_band(axis, epochs, curves[part], name, LABELS[name])
        axis.set(title=title, xlabel="epoch", ylabel="RMSE of log(NO2)")
    _show_the_end(axes[0, :2], data, ("train", "test"))
    _show_the_end(axes[0, 2:], data, ("gap",))


def caption(data: Numbers) -> str:
    """Say how low, how far apart and how smooth the curves are."""
    facts = data["facts"]

    def compare(fact: str, digits: int = 3) -> str:
        foma, erm, same = (f"{facts[name][fact]:.{digits}f}" for name in ("foma", "erm", SAME))
        return f"FOMA {foma}, plain {erm}, plain at FOMA's settings {same}"

    claimed = {
        "change": "FOMA is steadier",
        "test": "FOMA has the lower test error",
        "gap": "FOMA has the smaller gap",
    }
    claims = {words: facts["foma"][fact] < facts["erm"][fact] for fact, words in claimed.items()}
    same = [
        f"{words} {'too' if facts['foma'][fact] < facts[SAME][fact] else 'no longer'}"
        for fact, words in claimed.items()
        if claims[words]
    ]
    same = same or ["none of it holds either"]
    return (
        f"NO2 over the epochs. Test error of the epoch with the best validation error: "
        f"{compare('test')}. Gap between test and train error at the end: {compare('gap')}. Mean "
        f"change of the train error from epoch to epoch in the second half: "
        f"{compare('change', 4)}. {judge(claims)} The paper does not give the settings of plain "
        f"training; beside plain training at FOMA's own, {', '.join(same)}."
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
    "errors over the epochs on NO2", measure, paint, caption, (11, 4.3, 1, 3), minutes=0.1, legend=3
)
