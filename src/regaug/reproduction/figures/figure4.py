"""Figure 4: the sweep over lambda of figure 3 for Crimes and for a series."""

from dataclasses import replace

from regaug.formatting import count
from regaug.reproduction.figures import sweep, trainings
from regaug.reproduction.figures.base import Figure, Numbers, Plan, compact, judge
from regaug.reproduction.figures.drawing import Panels
from regaug.reproduction.figures.sweep import INPUTS, JOINT, summary
from regaug.reproduction.figures.trainings import SAME, foma_settings, take_evenly

WINDOWS = 128  # of the series, in each part
NAMES = {"crimes": "Crimes", "exchange-rate": "Exchange-Rate"}
PARTS = {"train": "training rows", "test": "test rows"}
NOTE = (
    "Crimes: the net for tables, table 8, {crimes} of 200 epochs, {seeds}, mean and standard "
    "deviation. Exchange-Rate stands in for Electricity, which is not complete here: LSTNet, "
    "table 8, {series} of 200 epochs{cut}, one seed, {windows} windows of each part. Both nets of "
    "a panel have FOMA's rate and batch size; inputs and targets are scaled together in random "
    "batches of that size."
)


def measure(plan: Plan) -> tuple[Numbers, str]:
    """Train plain and with FOMA on both data sets and sweep lambda."""
    windows = plan.part_of(WINDOWS, least=16)
    crimes = plan.part_of(trainings.CRIMES_EPOCHS)
    series = plan.part_of(trainings.SERIES_EPOCHS)
    seeds = count(plan.seeds, "seed")
    epochs = {"crimes": crimes, "exchange-rate": series}
    of_series, cut = _sweep_series(plan, windows)
    errors = {"crimes": _sweep_crimes(plan), "exchange-rate": of_series}
    settings = {name: replace(foma_settings(name), epochs=own) for name, own in epochs.items()}
    numbers = {
        "lambdas": compact(sweep.LAMBDAS),
        "errors": errors,
        "settings": {name: own.to_dict() for name, own in settings.items()},
    }
    said = {"crimes": crimes, "series": series, "seeds": seeds, "windows": windows, "cut": cut}
    return numbers, NOTE.format(**said)


def paint(axes: Panels, data: Numbers) -> None:
    """Draw a row for each data set: training rows left, test rows right."""
    for row, (name, parts) in zip(axes, data["errors"].items(), strict=True):
        for axis, (part, words) in zip(row, PARTS.items(), strict=True):
            sweep.draw_part(axis, data["lambdas"], parts[part], f"{NAMES[name]}, {words}")
            axis.ticklabel_format(axis="y", scilimits=(-3, 3), useMathText=True)
        row[0].set_ylabel("mean squared error")


def caption(data: Numbers) -> str:
    """Say where the errors are least, and what becomes of it when no target takes part."""
    words, claims = [], {}
    for name, parts in data["errors"].items():
        nets = parts["test"]
        foma, erm = (summary(nets[way][JOINT]) for way in ("foma", SAME))
        control = summary(nets[SAME][INPUTS])
        curves = [nets[way][JOINT]["mean"] for way in ("foma", SAME)]
        claim = f"on {NAMES[name]} the error is highest at λ = 1, for both nets"
        claims[claim] = all(max(curve) == curve[-1] for curve in curves)
        words.append(
            f"{NAMES[name]}, test rows: from λ = 1 to 0 the error goes from {erm['at_1']:.3g} to "
            f"{erm['at_0']:.3g} for the plain net and from {foma['at_1']:.3g} to "
            f"{foma['at_0']:.3g} for FOMA's; where the inputs alone are scaled, without the "
            f"targets, the plain net's goes to {control['at_0']:.3g}."
        )
    return f"{' '.join(words)} {judge(claims)}"


def _sweep_crimes(plan: Plan) -> Numbers:
    splits, runs = trainings.train_crimes(plan)
    parts = [{"train": split.train, "test": split.test} for split in splits]
    return sweep.sweep(sweep.make_nets(runs), parts, foma_settings("crimes").batch_size)


def _sweep_series(plan: Plan, windows: int) -> tuple[Numbers, str]:
    """Return the errors, and what was cut of the training windows, in words."""
    split, nets = trainings.train_exchange_rate(Plan(1, plan.share))
    seen = len(split.train)
    parts = {"train": take_evenly(split.train, windows), "test": take_evenly(split.test, windows)}
    is_cut = plan.share * trainings.SERIES_EPOCHS < 1
    cut = f" of {seen:,} training windows" if is_cut else ""
    return sweep.sweep(nets, [parts], foma_settings("exchange-rate").batch_size), cut


TITLE = "error over lambda on Crimes and a series"
FIGURE = Figure(TITLE, measure, paint, caption, (10, 7.4, 2, 2), minutes=2.0, legend=3)
