"""The tables of the paper as runs: which row needs which trainings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product

from regaug import methods as method_table
from regaug._checks import check_integer, check_range
from regaug._registry import lookup
from regaug.data.base import Rules
from regaug.exceptions import ArgumentError
from regaug.problems import Problem
from regaug.reproduction import published
from regaug.reproduction.problems import SCALINGS, PaperData, Scaling, find_all
from regaug.reproduction.recipes import (
    METHODS,
    NOISE,
    SERIES,
    paper_settings,
    released_settings,
    tuned_settings,
)
from regaug.runs.run import Run
from regaug.runs.tasks import estimate_seconds
from regaug.training import Settings
from regaug.training.baselines import baseline_names

IN_DISTRIBUTION = ("airfoil", "no2", "exchange-rate", "electricity", "echo")
FOMA = ("foma", "foma-rho")
RELEASED = "foma-rho, released"
# Their targets are left as they are: two more rows of each would say nothing new.
UNSCALED = ("mixup", "manifold-mixup")
MakeSettings = Callable[..., Settings]
_FOR_TABLES = ("boosting", "trees", "gp")
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

    Its runs are one of each split, or several among which the validation error chooses. Its options
    set it apart from other rows of the method in the paper's table. ``epochs`` is how many its runs
    have if nothing is cut, None for a baseline. ``is_ours`` marks what the paper has no figure of.
    """

    label: str
    data: str
    method: str
    protocol: Rules
    runs: tuple[Run, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    epochs: int | None = None
    is_ours: bool = False


@dataclass(frozen=True)
class Size:
    """How much is run: epochs of the paper's protocol at most, a share of the tuned trials."""

    seeds: int = 3
    epochs: int | None = None
    trials: float = 1.0  # of the settings, and of the splits
    protocols: tuple[Rules, ...] = PROTOCOLS

    @property
    def is_full(self) -> bool:
        """Whether nothing is cut short."""
        return self.epochs is None and self.trials == 1.0


@dataclass(frozen=True)
class Experiment:
    """One of the paper's comparisons, and what makes its rows of data, methods and a size."""

    name: str
    tables: tuple[int, ...]  # their numbers in the paper
    datasets: tuple[str, ...]
    rows: Callable[[PaperData, Sequence[str], Size], list[Row]]


def _compare(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    """Every method in the paper's protocol, then in the tuned one, baselines beside."""
    rows: list[Row] = []
    if "paper" in size.protocols:
        rows += [_paper_row(data, method, size) for method in METHODS if method in methods]
        rows += _released(data, size) if "foma-rho" in methods else []
        rows += _trained_alike(data, rows)
        if data.is_table:
            again = [row for row in rows if row.method not in UNSCALED]
            rows += [_scaled(data, row, scaling) for scaling in SCALINGS for row in again]
        rows += _baselines(data, "paper", size.seeds)
    if "tuned" in size.protocols:
        splits = max(3, round(SPLITS * size.trials)) if data.is_table else size.seeds
        trials = max(2, round(TRIALS * size.trials))
        rows += [_tuned(data, method, trials, splits) for method in TUNED if method in methods]
        rows += _baselines(data, "tuned", splits) if data.is_table else []
    return rows


def _paper_row(data: PaperData, method: str, size: Size) -> Row:
    runs = _paper_runs(data, method, size)
    return Row(method, data.name, method, "paper", runs, epochs=_epochs(data, method))


def _epochs(data: PaperData, method: str) -> int:
    return paper_settings(data.name, method, seed=0).epochs


def _paper_runs(
    data: PaperData, method: str, size: Size, trial: int | None = None, **changes: object
) -> tuple[Run, ...]:
    make: MakeSettings = partial(paper_settings, data.name, method, **changes)  # type: ignore[arg-type]
    return _runs(data, method, size, make, trial)


def _runs(
    data: PaperData, method: str, size: Size, make: MakeSettings, trial: int | None = None
) -> tuple[Run, ...]:
    name, runs = data.problem_name("paper"), []
    for seed in range(size.seeds):
        settings = make(seed=seed)
        if size.epochs is not None:
            settings = replace(settings, epochs=min(size.epochs, settings.epochs))
        runs.append(Run(name, method, seed, seed, settings, trial))
    return tuple(runs)


def _released(data: PaperData, size: Size) -> list[Row]:
    """FOMA_rho as it was released, with the targets as they are; and with new ones, for tables."""
    ways: dict[str, dict[str, str]] = {RELEASED: {}}
    if data.is_table:
        ways[f"{RELEASED}, new targets"] = {"targets": "joint"}
    rows = []
    for label, changes in ways.items():
        make: MakeSettings = partial(released_settings, data.name, **changes)  # type: ignore[arg-type]
        runs, epochs = _runs(data, "foma-rho", size, make), make(seed=0).epochs
        rows.append(Row(label, data.name, "foma-rho", "paper", runs, {}, epochs, bool(changes)))
    return rows


def _trained_alike(data: PaperData, rows: Sequence[Row]) -> list[Row]:
    """Plain training with the rate, batch size and epochs of others: what part is their doing?

    Of tables with their choice of batches too. Images and pairs take too long for a second time.
    """
    if not (data.is_table or data.name in SERIES):
        return []
    alike = [row for row in rows if row.method in FOMA or (row.method == "ada" and data.is_table)]
    found = [_plain_at(row) for row in alike]
    if data.is_table:
        found += [_plain_at(row, batches=True) for row in alike if row.method in FOMA]
    return _each_once(found)


def _plain_at(row: Row, *, batches: bool = False) -> Row:
    sampler, runs = "random", []
    for run in row.runs:
        if run.settings is not None:
            own = run.settings.method_settings
            sampler = str(own.get("sampler", sampler)) if batches else sampler
            settings = {} if sampler == "random" else {"sampler": sampler}
            new = replace(run.settings, method_settings=settings)
            runs.append(replace(run, method="erm", settings=new))
    label = f"erm, trained as {row.label}" + (f", {sampler} batches" if batches else "")
    return Row(label, row.data, "erm", "paper", tuple(runs), {}, row.epochs, is_ours=True)


def _scaled(data: PaperData, row: Row, scaling: Scaling) -> Row:
    """Return a row with scaled targets, by which a kernel of targets is scaled along."""
    runs = []
    for run in row.runs:
        settings = run.settings
        if settings is not None and "bandwidth" in settings.method_settings:
            own = dict(settings.method_settings)
            own["bandwidth"] /= data.target_unit(scaling, run.split)
            settings = replace(settings, method_settings=own)
        runs.append(replace(run, problem=data.scaled_name(scaling), settings=settings))
    label = f"{row.label}; targets {scaling}"
    return replace(row, label=label, runs=tuple(runs), is_ours=True)


def _each_once(rows: Iterable[Row]) -> list[Row]:
    """Leave out rows whose runs are those of an earlier one."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        found.setdefault(tuple(run.key for run in row.runs), row)
    return list(found.values())


def _tuned(data: PaperData, method: str, trials: int, splits: int) -> Row:
    epochs, patience = (EPOCHS, PATIENCE) if data.is_table else (NET_EPOCHS, NET_PATIENCE)
    drawn = tuned_settings(data.name, method, trials, epochs=epochs, patience=patience)
    runs = tuple(
        Run(data.problem_name("tuned"), method, split, 1000 * split + number, settings, number)
        for number, settings in enumerate(drawn)
        for split in range(splits)
    )
    return Row(method, data.name, method, "tuned", runs)


def _baselines(data: PaperData, protocol: Rules, splits: int) -> list[Row]:
    problem = data.problem_name(protocol)
    return [
        Row(name, data.name, name, protocol, tuple(Run(problem, name, i, i) for i in range(splits)))
        for name in _baseline_names(data, protocol)
    ]


@lru_cache(maxsize=8)  # rows are asked for again and again, and a split may take its time
def _baseline_names(data: PaperData, protocol: Rules) -> tuple[str, ...]:
    names = baseline_names(data.problem(protocol).splits[0])
    # Some are fitted for each target: minutes for a series, and they are no series models.
    return tuple(name for name in names if data.is_table or name not in _FOR_TABLES)


def _batches(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    rows = []
    for method, sampler in product(FOMA, ("random", "nearest")):
        if method in methods:
            label, options = f"{method}, {sampler} batches", {"sampler": sampler}
            runs = _paper_runs(data, method, size, sampler=sampler)
            epochs = _epochs(data, method)
            rows.append(Row(label, data.name, method, "paper", runs, options, epochs))
    return rows


def _ablation(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    rows = []
    for cell in published.cells(table=5, data=data.name, metric="rmse"):
        label = f"{cell.options['place']}, mu = {cell.options['weight']}, {cell.options['scale']}"
        runs = _paper_runs(data, "foma", size, None, **cell.options)
        options, epochs = dict(cell.options), _epochs(data, "foma")
        rows.append(Row(label, data.name, "foma", "paper", runs, options, epochs))
    return rows


def _noise(data: PaperData, methods: Sequence[str], size: Size) -> list[Row]:
    runs = tuple(
        run
        for trial, sigma in enumerate(NOISE)
        for run in _paper_runs(data, "noise", size, trial, sigma=sigma)
    )
    rows = [_paper_row(data, name, size) for name in ("erm", *FOMA) if name in methods]
    noise = Row("noise", data.name, "noise", "paper", runs, epochs=_epochs(data, "noise"))
    return [*rows[:1], noise, *rows[1:]]


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("in-distribution", (3, 10), IN_DISTRIBUTION, _compare),
        Experiment("out-of-distribution", (4, 11), OUT_OF_DISTRIBUTION, _compare),
        Experiment("batches", (1,), IN_DISTRIBUTION + OUT_OF_DISTRIBUTION, _batches),
        Experiment("ablation", (5,), ("no2", "electricity"), _ablation),
        Experiment("noise", (6, 7), (*IN_DISTRIBUTION[:4], "rcf-mnist", "crimes", "dti"), _noise),
    )
}


def make_rows(
    experiment: Experiment, data: PaperData, *, methods: Sequence[str] = (), size: Size
) -> list[Row]:
    """Return an experiment's rows on a data set; plain training is always among the methods."""
    check_integer("seeds", size.seeds, 1)
    for method in methods:
        method_table.get(method)
    return experiment.rows(data, ("erm", *(methods or method_table.names())), size)


def find_data(
    experiment: Experiment, datasets: Sequence[str] = ()
) -> tuple[list[PaperData], list[str]]:
    """Return what stands for the wanted data sets, and how to get those that are not here."""
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

    The paper's protocol comes first, nets before baselines, early settings of all methods and the
    first split of all of them, in case the time runs out.
    """
    runs = {run.key: (row.protocol, run) for row in rows for run in row.runs}

    def urgency(pair: tuple[Rules, Run]) -> tuple[bool, bool, int, int]:
        protocol, run = pair
        return protocol == "tuned", run.is_baseline, run.trial or 0, run.split

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
