"""The tables of the paper as runs: which row needs which trainings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from regaug import methods as method_table
from regaug._checks import check_integer, check_range
from regaug._registry import lookup
from regaug.data.base import Rules
from regaug.exceptions import ArgumentError
from regaug.problems import Problem
from regaug.reproduction import published
from regaug.reproduction.problems import PaperData, find_all
from regaug.reproduction.recipes import METHODS, NOISE, SERIES, paper_settings, tuned_settings
from regaug.runs.run import Run
from regaug.runs.tasks import estimate_seconds
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
        rows: From a data set, the wanted methods and a size to the rows.
    """

    name: str
    tables: tuple[int, ...]
    datasets: tuple[str, ...]
    summary: str
    rows: Callable[[PaperData, Sequence[str], Size], list[Row]]


def _compare(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    """Every method in the paper's protocol, then in the tuned one, baselines beside."""
    paper = _in_paper_protocol(data, methods, size) if "paper" in size.protocols else []
    tuned = _in_tuned_protocol(data, methods, size) if "tuned" in size.protocols else []
    return paper + tuned


def _in_paper_protocol(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    rows = [_paper_row(data, method, size) for method in METHODS if method in methods]
    if data.is_table or data.name in SERIES:  # images and pairs take too long for a second time
        rows += [_plain_at(row) for row in rows if row.method in ("foma", "foma-rho")]
    return rows + _baselines(data, "paper", range(size.seeds))


def _in_tuned_protocol(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    splits = max(3, round(SPLITS * size.trials)) if data.is_table else size.seeds
    trials = max(2, round(TRIALS * size.trials))
    rows = [_tuned(data, method, trials, splits) for method in TUNED if method in methods]
    return rows + (_baselines(data, "tuned", range(splits)) if data.is_table else [])


def _paper_row(data: PaperData, method: str, size: Size) -> Row:
    return Row(method, data.name, method, "paper", _paper_runs(data, method, size))


def _paper_runs(
    data: PaperData, method: str, size: Size, trial: int | None = None, **changes: object
) -> tuple[Run, ...]:
    return tuple(
        Run(
            data.problem_name("paper"),
            method,
            seed,
            seed,
            size.shorten(paper_settings(data.name, method, seed=seed, **changes)),
            trial,
        )
        for seed in range(size.seeds)
    )


def _plain_at(row: Row) -> Row:
    """Plain training with the rate, batches and epochs of FOMA: what part is their doing?"""
    runs = tuple(
        replace(run, method="erm", settings=replace(run.settings, method_settings={}))
        for run in row.runs
        if run.settings is not None
    )
    label, options = f"erm, trained as {row.method}", {"as": row.method}
    return Row(label, row.data, "erm", "paper", runs, options)


def _tuned(data: PaperData, method: str, trials: int, splits: int) -> Row:
    drawn = tuned_settings(
        data.name,
        method,
        trials,
        epochs=EPOCHS if data.is_table else NET_EPOCHS,
        patience=PATIENCE if data.is_table else NET_PATIENCE,
    )
    runs = tuple(
        Run(data.problem_name("tuned"), method, split, 1000 * split + number, settings, number)
        for number, settings in enumerate(drawn)
        for split in range(splits)
    )
    return Row(method, data.name, method, "tuned", runs)


def _baselines(data: PaperData, protocol: Rules, splits: Iterable[int]) -> list[Row]:
    problem = data.problem_name(protocol)
    return [
        Row(name, data.name, name, protocol, tuple(Run(problem, name, i, i) for i in splits))
        for name in _baseline_names(data, protocol)
    ]


@lru_cache(maxsize=8)  # rows are asked for again and again, and a split may take its time
def _baseline_names(data: PaperData, protocol: Rules) -> tuple[str, ...]:
    names = baseline_names(data.problem(protocol).splits[0])
    # Boosting fits an ensemble for each target: minutes for a series, and it is no series model.
    return tuple(name for name in names if name != "boosting" or data.is_table)


def _batches(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    return [
        Row(
            f"{method}, {sampler} batches",
            data.name,
            method,
            "paper",
            _paper_runs(data, method, size, sampler=sampler),
            {"sampler": sampler},
        )
        for method in ("foma", "foma-rho")
        if method in methods
        for sampler in ("random", "nearest")
    ]


def _ablation(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    rows = []
    for cell in published.cells(table=5, data=data.name, metric="rmse"):
        label = f"{cell.options['place']}, mu = {cell.options['weight']}, {cell.options['scale']}"
        runs = _paper_runs(data, "foma", size, None, **cell.options)
        rows.append(Row(label, data.name, "foma", "paper", runs, dict(cell.options)))
    return rows


def _noise(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    runs = tuple(
        run
        for trial, sigma in enumerate(NOISE)
        for run in _paper_runs(data, "noise", size, trial, sigma=sigma)
    )
    rows = [_paper_row(data, name, size) for name in ("erm", "foma", "foma-rho") if name in methods]
    return [*rows[:1], Row("noise", data.name, "noise", "paper", runs), *rows[1:]]


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
    experiment: Experiment, data: PaperData, *, methods: Sequence[str] = (), size: Size
) -> list[Row]:
    """Return the rows of an experiment on a data set.

    Args:
        experiment: One of ``EXPERIMENTS``.
        data: The data set, as :func:`regaug.reproduction.problems.find` returns it.
        methods: Methods that are wanted; all if empty. Plain training is always among them.
        size: How much is run.
    """
    check_integer("seeds", size.seeds, 1)
    for method in methods:
        method_table.get(method)
    return experiment.rows(data, ("erm", *(methods or method_table.names())), size)


def find_data(
    experiment: Experiment, datasets: Sequence[str] = ()
) -> tuple[list[PaperData], list[str]]:
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
    return find_all(datasets or experiment.datasets)


def list_runs(rows: Iterable[Row]) -> list[Run]:
    """Return the runs of some rows, each once, in the order in which they are done.

    The paper's protocol comes first, nets before baselines, and early settings of all methods, in
    case the time runs out.
    """
    runs = {run.key: (row.protocol, run) for row in rows for run in row.runs}

    def urgency(pair: tuple[Rules, Run]) -> tuple[bool, bool, int]:
        protocol, run = pair
        return protocol == "tuned", run.is_baseline, run.trial or 0

    return [run for _, run in sorted(runs.values(), key=urgency)]


def fit_to_time(
    make: Callable[[Size], list[Row]],
    problems: Mapping[str, Problem],
    *,
    size: Size,
    max_minutes: float | None,
    jobs: int,
) -> tuple[list[Row], Size]:
    """Return the rows of the largest size that is expected to end in time.

    The paper's epochs and the settings of the tuned protocol are cut. What is run depends
    on the arguments alone, not on how fast the machine is: the same command continues and repeats
    the same runs.

    Args:
        make: From a size to rows.
        problems: The problems of the runs by name.
        size: The full size.
        max_minutes: The time there is; None cuts nothing.
        jobs: Worker processes.
    """
    rows = make(size)
    if max_minutes is None:
        return rows, size
    seconds = 60 * check_range("max_minutes", max_minutes, 0.0, open_low=True) * jobs
    epochs = [run.settings.epochs for row in rows for run in row.runs if run.settings is not None]
    share = 1.0
    while estimate_seconds(list_runs(rows), problems) > seconds and share > 0.001:
        share *= 0.8
        # The same number of epochs for all: methods differ in it by a factor of ten.
        most = max(1, round(share * max(epochs)))
        size = replace(size, epochs=most, trials=max(0.1, share**0.4))
        rows = make(size)
    return rows, size
