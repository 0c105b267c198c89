"""Figure 4: the sweep over lambda of figure 3 for Crimes and for a series."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from regaug.data.base import Part, Split
from regaug.formatting import count, sentences
from regaug.reproduction.figures.base import SEEDS, Figure, Numbers, Plan, compact
from regaug.reproduction.figures.drawing import make_canvas, save, style
from regaug.reproduction.figures.sweep import (
    INPUTS,
    JOINT,
    LAMBDAS,
    draw_part,
    make_nets,
    summary,
    sweep,
)
from regaug.reproduction.figures.trainings import (
    CRIMES_EPOCHS,
    SAME,
    SERIES_EPOCHS,
    foma_settings,
    train_crimes,
    train_exchange_rate,
)
from regaug.training.results import versions

MINUTES = 2.0  # of one seed, at full size
WINDOWS = 128  # of the series, in each part
NAMES = {"crimes": "Crimes", "exchange-rate": "Exchange-Rate"}
PARTS = {"train": "training rows", "test": "test rows"}
NOTE = (
    "Crimes: the net for tables, table 8, {crimes} of 200 epochs, {seeds}, mean and standard "
    "deviation. Exchange-Rate stands in for Electricity, which is not complete here: LSTNet, "
    "table 8, {series} of 200 epochs, one seed, {windows} windows of each part. Both nets of a "
    "panel have FOMA's rate and batch size; inputs and targets are scaled together in random "
    "batches of that size."
)


def compute(seeds: int = SEEDS, max_minutes: float | None = None) -> Numbers:
    """Train plain and with FOMA on both data sets and sweep lambda."""
    plan = Plan.make(seeds, max_minutes, MINUTES)
    windows = plan.part_of(WINDOWS, least=32)
    epochs = {
        "crimes": plan.part_of(CRIMES_EPOCHS),
        "exchange-rate": plan.part_of(SERIES_EPOCHS),
    }
    note = NOTE.format(
        crimes=epochs["crimes"],
        series=epochs["exchange-rate"],
        seeds=count(plan.seeds, "seed"),
        windows=windows,
    )
    errors = {"crimes": _sweep_crimes(plan), "exchange-rate": _sweep_series(plan, windows)}
    return {
        "lambdas": compact(LAMBDAS),
        "errors": errors,
        "settings": {
            name: replace(foma_settings(name), epochs=epochs[name]).to_dict() for name in errors
        },
        "seeds": plan.seeds,
        "note": sentences(note, plan.words),
        "made_by": versions(),
    }


def draw(data: Numbers, stem: str | Path) -> list[Path]:
    """Draw a row for each data set: training rows left, test rows right."""
    with style():
        figure, axes = make_canvas(10, 7.4, 2, 2)
        for row, (name, parts) in zip(axes, data["errors"].items(), strict=True):
            for axis, (part, words) in zip(row, PARTS.items(), strict=True):
                draw_part(axis, data["lambdas"], parts[part], f"{NAMES[name]}, {words}")
                axis.ticklabel_format(axis="y", scilimits=(-3, 3), useMathText=True)
            row[0].set_ylabel("mean squared error")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return save(figure, stem, data["note"])


def caption(data: Numbers) -> str:
    """Say where the errors are least, and what becomes of it when no target takes part."""
    words = []
    for name, parts in data["errors"].items():
        nets = parts["test"]
        foma, erm = (summary(nets[way][JOINT]) for way in ("foma", SAME))
        control = summary(nets[SAME][INPUTS])
        words.append(
            f"{NAMES[name]}, test rows: from λ = 1 to 0 the error goes from {erm['at_1']:.3g} to "
            f"{erm['at_0']:.3g} for the plain net and from {foma['at_1']:.3g} to "
            f"{foma['at_0']:.3g} for FOMA's; where the inputs alone are scaled, without the "
            f"targets, the plain net's goes to {control['at_0']:.3g}."
        )
    return f"{' '.join(words)} (The paper: the error is highest at λ = 1, for both nets.)"


def _sweep_crimes(plan: Plan) -> Numbers:
    splits, runs = train_crimes(plan)
    parts = [_parts(split) for split in splits]
    return sweep(make_nets(runs), parts, foma_settings("crimes").batch_size)


def _sweep_series(plan: Plan, windows: int) -> Numbers:
    split, nets = train_exchange_rate(Plan(1, plan.share))
    parts = {name: _some(part, windows) for name, part in _parts(split).items()}
    ways: dict[str, list[nn.Module]] = {name: list(own) for name, own in nets.items()}
    return sweep(ways, [parts], foma_settings("exchange-rate").batch_size)


def _parts(split: Split) -> dict[str, Part]:
    return {"train": split.train, "test": split.test}


def _some(part: Part, n: int) -> Part:
    """Return rows spread evenly over a part: all windows would take many times as long."""
    rows = np.linspace(0, len(part) - 1, n).astype(np.int64)
    return part.take(rows)


FIGURE = Figure("error over lambda on Crimes and a series", compute, draw, caption)
