"""The tables of the paper as runs: which row needs which trainings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from regaug import methods as method_table
from regaug._checks import check_integer, check_range
from regaug._registry import lookup
from regaug.data.base import Rules
from regaug.exceptions import ArgumentError, DataNotFoundError
from regaug.reproduction import published
from regaug.reproduction.recipes import (
    METHODS,
    NOISE,
    SERIES,
    paper_settings,
    tuned_settings,
)
from regaug.reproduction.sources import Source, find
from regaug.reproduction.work import Run
from regaug.training import Settings
from regaug.training.baselines import baseline_names

IN_DISTRIBUTION = ("airfoil", "no2", "exchange-rate", "electricity", "echo")
PROTOCOLS: tuple[Rules, ...] = ("paper", "tuned")
OUT_OF_DISTRIBUTION = ("rcf-mnist", "crimes", "dti", "povertymap")
# CEMS came after the paper; it can be compared with `regaug compare`.
TUNED = (METHODS[0], "noise", *METHODS[1:])
# How many settings the tuned protocol tries, on how many splits of a table, for how many epochs at
# most: of the small nets of tables, and of the large ones of all else.
TRIALS, SPLITS = 10, 10
EPOCHS, PATIENCE = 200, 20
NET_EPOCHS, NET_PATIENCE = 6, 2
# About what an epoch takes on one core, in seconds: for each step, and for each training sample.
_STEP, _SAMPLE = 3e-4, 0.0
_COSTS = {
    "exchange-rate": (1.2e-2, 8e-4),
    "electricity": (1e-2, 4e-3),
    "electricity-1000x203": (1e-2, 5e-3),
    "rcf-mnist": (3e-2, 7e-3),
    "davis-by-protein": (2e-2, 1e-2),
    "dti": (2e-2, 1e-2),
    "povertymap": (5e-2, 0.5),
    "echo": (0.5, 5.0),
}


@dataclass(frozen=True)
class Row:
    """A row of a table: what it is called, what was published, and the runs that measure it.

    Attributes:
        label: Its name.
        data: The data set of the paper.
        method: The method, or the baseline.
        protocol: ``"paper"`` or ``"tuned"``.
        runs: Its runs: of each split one, or several among which the validation error chooses.
        options: What sets it apart from other rows of the method in the paper's table; ``"as"`` a
            method whose settings it was trained with, which the paper has not.
    """

    label: str
    data: str
    method: str
    protocol: Rules
    runs: tuple[Run, ...]
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes:
        seeds: Repetitions in the paper's protocol.
        epochs: Epochs of a run in the paper's protocol, at most; None for as many as it has there.
        trials: Share of the settings that the tuned protocol tries, and of its splits.
        protocols: Which of the two protocols.
    """

    seeds: int = 3
    epochs: int | None = None
    trials: float = 1.0
    protocols: tuple[Rules, ...] = PROTOCOLS

    def shorten(self, settings: Settings) -> Settings:
        """Return settings with at most so many epochs."""
        if self.epochs is None:
            return settings
        return replace(settings, epochs=min(self.epochs, settings.epochs))

    @property
    def is_full(self) -> bool:
        """Whether nothing is cut short."""
        return self.epochs is None and self.trials == 1.0


@dataclass(frozen=True)
class Experiment:
    """One of the paper's comparisons.

    Attributes:
        name: What the command calls it.
        tables: Numbers of the paper's tables.
        datasets: The data sets of the paper that are in it.
        summary: What it asks, in a line.
        rows: From a source, the wanted methods and a size to the rows.
    """

    name: str
    tables: tuple[int, ...]
    datasets: tuple[str, ...]
    summary: str
    rows: Callable[[Source, Sequence[str], Size], list[Row]]


def _compare(source: Source, methods: Sequence[str], size: Size) -> list[Row]:
    """Every method in the paper's protocol, then in the tuned one, baselines beside."""
    paper = _in_paper_protocol(source, methods, size) if "paper" in size.protocols else []
    tuned = _in_tuned_protocol(source, methods, size) if "tuned" in size.protocols else []
    return paper + tuned


def _in_paper_protocol(source: Source, methods: Sequence[str], size: Size) -> list[Row]:
    data = source.data
    rows = [
        Row(method, data, method, "paper", _paper_runs(source, method, size))
        for method in METHODS
        if method in methods
    ]
    if source.net is None or data in SERIES:  # images and pairs take too long for a second time
        plain = [method for method in ("foma", "foma-rho") if method in methods]
        rows += [_plain_at(source, method, size) for method in plain]
    return rows + _baselines(source, "paper", range(size.seeds))


def _in_tuned_protocol(source: Source, methods: Sequence[str], size: Size) -> list[Row]:
    is_table = source.net is None
    splits = max(3, round(SPLITS * size.trials)) if is_table else size.seeds
    trials = max(2, round(TRIALS * size.trials))
    rows = [_tuned(source, method, trials, splits) for method in TUNED if method in methods]
    return rows + (_baselines(source, "tuned", range(splits)) if is_table else [])


def _paper_runs(
    source: Source, method: str, size: Size, trial: int | None = None, **changes: Any
) -> tuple[Run, ...]:
    return tuple(
        Run(
            source.data,
            source.name,
            "paper",
            method,
            seed,
            size.shorten(paper_settings(source.data, method, seed=seed, **changes)),
            trial,
        )
        for seed in range(size.seeds)
    )


def _plain_at(source: Source, method: str, size: Size) -> Row:
    """Plain training with the rate, batches and epochs of FOMA: what part is their doing?"""
    runs = tuple(
        replace(run, method="erm", settings=replace(run.settings, method={}))
        for run in _paper_runs(source, method, size)
        if run.settings is not None
    )
    return Row(f"erm, trained as {method}", source.data, "erm", "paper", runs, {"as": method})


def _tuned(source: Source, method: str, trials: int, splits: int) -> Row:
    is_table = source.net is None
    drawn = tuned_settings(
        source.data,
        method,
        trials,
        epochs=EPOCHS if is_table else NET_EPOCHS,
        patience=PATIENCE if is_table else NET_PATIENCE,
    )
    runs = tuple(
        Run(
            source.data,
            source.name,
            "tuned",
            method,
            split,
            replace(settings, seed=1000 * split + number),
            number,
        )
        for number, settings in enumerate(drawn)
        for split in range(splits)
    )
    return Row(method, source.data, method, "tuned", runs)


def _baselines(source: Source, protocol: Rules, splits: Iterable[int]) -> list[Row]:
    def runs(name: str) -> tuple[Run, ...]:
        return tuple(Run(source.data, source.name, protocol, name, i, None) for i in splits)

    return [
        Row(name, source.data, name, protocol, runs(name))
        for name in _baseline_names(source, protocol)
    ]


@lru_cache(maxsize=8)  # a budget asks for the rows again and again, and a split may take its time
def _baseline_names(source: Source, protocol: Rules) -> tuple[str, ...]:
    names = baseline_names(source.split(0, protocol))
    # Boosting fits an ensemble for each target: minutes for a series, and it is no series model.
    return tuple(name for name in names if name != "boosting" or source.net is None)


def _batches(source: Source, methods: Sequence[str], size: Size) -> list[Row]:
    return [
        Row(
            f"{method}, {sampler} batches",
            source.data,
            method,
            "paper",
            _paper_runs(source, method, size, sampler=sampler),
            {"sampler": sampler},
        )
        for method in ("foma", "foma-rho")
        if method in methods
        for sampler in ("random", "nearest")
    ]


def _ablation(source: Source, methods: Sequence[str], size: Size) -> list[Row]:
    rows = []
    for cell in published.cells(table=5, data=source.data, metric="rmse"):
        label = f"{cell.options['place']}, mu = {cell.options['weight']}, {cell.options['scale']}"
        runs = _paper_runs(source, "foma", size, None, **cell.options)
        rows.append(Row(label, source.data, "foma", "paper", runs, dict(cell.options)))
    return rows


def _noise(source: Source, methods: Sequence[str], size: Size) -> list[Row]:
    runs = tuple(
        run
        for trial, sigma in enumerate(NOISE)
        for run in _paper_runs(source, "noise", size, trial, sigma=sigma)
    )
    rows = [
        Row(method, source.data, method, "paper", _paper_runs(source, method, size))
        for method in ("erm", "foma", "foma-rho")
        if method in methods
    ]
    return [*rows[:1], Row("noise", source.data, "noise", "paper", runs), *rows[1:]]


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "in-distribution",
            (3, 10),
            IN_DISTRIBUTION,
            "every method where training and test samples are alike",
            _compare,
        ),
        Experiment(
            "out-of-distribution",
            (4, 11),
            OUT_OF_DISTRIBUTION,
            "every method where the test samples come from other groups",
            _compare,
        ),
        Experiment(
            "batches",
            (1,),
            IN_DISTRIBUTION + OUT_OF_DISTRIBUTION,
            "FOMA with random batches and with those near in target",
            _batches,
        ),
        Experiment(
            "ablation",
            (5,),
            ("no2", "electricity"),
            "where FOMA acts, how its loss is weighted, which singular values are scaled",
            _ablation,
        ),
        Experiment(
            "noise",
            (6, 7),
            ("airfoil", "no2", "exchange-rate", "electricity", "rcf-mnist", "crimes", "dti"),
            "FOMA beside Gaussian noise, whose strength is chosen on validation",
            _noise,
        ),
    )
}


def make_rows(
    experiment: Experiment, source: Source, *, methods: Sequence[str] = (), size: Size
) -> list[Row]:
    """Return the rows of an experiment on a data set.

    Args:
        experiment: One of ``EXPERIMENTS``.
        source: The data set, as :func:`regaug.reproduction.sources.find` returns it.
        methods: Methods that are wanted; all if empty. Plain training is always among them.
        size: How much is run.
    """
    check_integer("seeds", size.seeds, 1)
    for method in methods:
        method_table.get(method)
    return experiment.rows(source, ("erm", *(methods or method_table.names())), size)


def find_sources(
    experiment: Experiment, datasets: Sequence[str] = ()
) -> tuple[list[Source], dict[str, str]]:
    """Return what stands for the wanted data sets, and for those that are not here how to get them.

    Args:
        experiment: One of ``EXPERIMENTS``.
        datasets: Data sets of the paper; all of the experiment if empty.
    """
    for name in datasets:
        lookup("data set of the paper", name, dict.fromkeys(IN_DISTRIBUTION + OUT_OF_DISTRIBUTION))
        if name not in experiment.datasets:
            raise ArgumentError(
                f"`datasets` must be of {experiment.name}: {', '.join(experiment.datasets)}; got "
                f"{name!r}."
            )
    found, missing = [], {}
    for name in datasets or experiment.datasets:
        try:
            found.append(find(name))
        except DataNotFoundError as error:
            missing[name] = str(error)
    return found, missing


def estimate_seconds(rows: Iterable[Row], sources: Mapping[str, Source]) -> float:
    """Return about how long the runs of some rows take one worker, each counted once."""
    runs = {run.key: run for row in rows for run in row.runs}
    lengths: dict[str, int] = {}
    total = 0.0
    for run in runs.values():
        if run.settings is None:
            total += 0.3
            continue
        if run.data not in lengths:
            lengths[run.data] = len(sources[run.data].split(0, run.protocol).train)
        n = lengths[run.data]
        step, sample = _COSTS.get(run.source, (_STEP, _SAMPLE))
        epochs = run.settings.epochs
        if run.settings.patience is not None:  # most stop early
            epochs = min(epochs, max(10, epochs // 4))
        total += epochs * (n // run.settings.batch_size * step + n * sample)
    return total


def fit_to_budget(
    make: Callable[[Size], list[Row]],
    sources: Mapping[str, Source],
    *,
    size: Size,
    minutes: float | None,
    jobs: int,
) -> tuple[list[Row], Size]:
    """Return the rows of the largest size that is expected to end in time.

    The paper's epochs and the settings of the tuned protocol are cut. What is run depends
    on the arguments alone, not on how fast the machine is: the same command continues and repeats
    the same runs.

    Args:
        make: From a size to rows.
        sources: The data sets by name.
        size: The full size.
        minutes: The budget; None cuts nothing.
        jobs: Worker processes.
    """
    rows = make(size)
    if minutes is None:
        return rows, size
    budget = 60 * check_range("budget", minutes, 0.0, open_low=True) * jobs
    epochs = [run.settings.epochs for row in rows for run in row.runs if run.settings is not None]
    share = 1.0
    while estimate_seconds(rows, sources) > budget and share > 0.001:
        share *= 0.8
        # The same number of epochs for all: methods differ in it by a factor of ten.
        most = max(1, round(share * max(epochs)))
        size = replace(size, epochs=most, trials=max(0.1, share**0.4))
        rows = make(size)
    return rows, size
