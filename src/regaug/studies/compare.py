"""The study: every method with the same number of settings on the same splits."""

import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from regaug import _random
from regaug import methods as method_table
from regaug._checks import check_choice, check_integer
from regaug.data.base import Data, Split
from regaug.data.scaling import StandardizedSplit
from regaug.data.splits import SplitRule
from regaug.data.tabular.table import Table
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.runs.store import Store
from regaug.runs.tasks import Executor, check_work, run_tasks
from regaug.runs.worker import Outcome, PlannedRun, Worker, make_tasks, plan_runs
from regaug.studies.search import draw_trials
from regaug.studies.study import Study
from regaug.studies.tpe import plan_rounds
from regaug.training.baselines import baseline_names
from regaug.training.settings import Metric

Search = Literal["random", "tpe"]

REFERENCE = "erm"
QUICK_METHODS = ("erm", "mixup", "c-mixup", "ada", "foma-rho")
# A run ends earlier when its validation error stops falling.
EPOCHS, PATIENCE = 200, 20
HIDDEN = (128, 128)
# A study of more rows than that looks at so many of them.
MOST_ROWS = 20_000
# What a run needs until it stops, and what a step of one run in a stack takes on one core.
_TYPICAL_EPOCHS, _SECONDS_PER_STEP = 50, 3.3e-4
# A positive target more skewed than that may be fitted on the log scale.
_SKEWED = 2.0


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a study is going to do.

    Attributes:
        configuration: What makes the study what it is, as plain values.
        splits: Its splits, in the target's own units.
        runs: Its runs. A search by ``tpe`` decides on the settings after its first round later.
        notes: What a reader should know, in sentences.
    """

    configuration: dict[str, Any]
    splits: Sequence[Split]
    runs: Sequence[PlannedRun]
    notes: Sequence[str]


def make_plan(
    data: Data | Sequence[Split],
    *,
    methods: Sequence[str] | None = None,
    trials: int | None = None,
    splits: int | None = None,
    metric: Metric = "rmse",
    seed: int = 0,
    quick: bool = False,
    kind: SplitRule | None = None,
    independent: bool = False,
    search: Search = "random",
) -> Plan:
    """Decide everything that a study will do; see :func:`compare` for the arguments."""
    names = tuple(dict.fromkeys(methods or (QUICK_METHODS if quick else method_table.names())))
    for name in names:
        method_table.get(name)
    if REFERENCE not in names:
        names = (REFERENCE, *names)
    trials = check_integer("trials", trials if trials is not None else (8 if quick else 20), 1)
    count = check_integer("splits", splits if splits is not None else (5 if quick else 10), 1)
    check_choice("metric", metric, ("rmse", "mae", "mape", "r2", "pearson"))
    check_choice("search", search, ("random", "tpe"))
    check_integer("seed", seed, 0)
    parts, notes = _make_splits(data, count, seed, kind)
    may_log = _is_skewed(parts)
    if may_log:
        share = "half" if search == "random" else "some of"
        notes.append(f"The target is positive and skewed: {share} the settings fit its logarithm.")
    own = {
        name: draw_trials(
            name,
            trials,
            seed=seed,
            epochs=EPOCHS,
            patience=PATIENCE,
            metric=metric,
            may_log=may_log,
        )
        for name in names
    }
    baselines = baseline_names(parts[0])
    sizes = [(len(split.train), len(split.validation), len(split.test)) for split in parts]
    configuration = {
        "data": _describe(data, parts),
        "methods": list(names),
        "baselines": list(baselines),
        "reference": REFERENCE,
        "trials": trials,
        "splits": len(parts),
        "search": search,
        "metric": metric,
        "seed": seed,
        "epochs": EPOCHS,
        "patience": PATIENCE,
        "hidden": list(HIDDEN),
        "independent": independent,
        # Validation rows make the model too: they choose the epoch and the setting.
        "test_share": sum(test / (train + valid) for train, valid, test in sizes) / len(sizes),
    }
    runs = plan_runs(own, baselines, splits=len(parts), seed=seed, metric=metric)
    return Plan(configuration, parts, runs, notes)


def compare(
    data: Data | Sequence[Split],
    *,
    methods: Sequence[str] | None = None,
    trials: int | None = None,
    splits: int | None = None,
    metric: Metric = "rmse",
    seed: int = 0,
    quick: bool = False,
    kind: SplitRule | None = None,
    independent: bool = False,
    search: Search = "random",
    jobs: int = 1,
    executor: Executor = "process",
    ray_address: str | None = None,
    max_minutes: float | None = None,
    out: str | Path | None = None,
    watch: Callable[[Outcome], None] | None = None,
) -> Study:
    """Find out which augmentation helps on some data, and how sure that is.

    Every method, plain training included, gets the same number of settings on the same splits. Each
    split chooses a setting by its own validation rows, and only that run's test error counts.

    Args:
        data: A table: ``regaug.data.read_table(...)`` or ``regaug.data.load(...)``. Or a list of
            splits of your own making.
        methods: Names of methods; all of them by default. Plain training is always among them.
        trials: Settings that are tried of every method; 20, or 8 if ``quick``.
        splits: Repeated splits of the data; 10, or 5 if ``quick``.
        metric: The error that chooses and is compared.
        seed: Decides splits, settings and runs: the same seed gives the same table.
        quick: Fewer methods, settings and splits.
        kind: How a table of your own is split: ``"random"``, ``"group"`` or ``"time"``; by its
            groups or times by default, if it has such a column.
        independent: The splits have no rows in common, as draws of a simulation do.
        search: ``"random"`` draws all settings before anything runs; ``"tpe"`` learns, in rounds of
            five settings, from the validation errors of a method's earlier ones on all splits.
        jobs: Worker processes; 1 works in this one. The result does not depend on it.
        executor: ``"process"``, or ``"ray"`` for workers on Ray, which is an extra. The result does
            not depend on it either.
        ray_address: Where a Ray cluster listens; None starts Ray on this machine.
        max_minutes: Start nothing new after so many minutes, and report on what is finished.
        out: A folder that keeps every finished run; the same call continues there. None forgets.
        watch: Called with what every finished piece of work has made.

    Returns:
        The study; ``print(study.verdict.text)`` says what it means.
    """
    check_work(jobs, executor, ray_address, max_minutes)
    plan = make_plan(
        data,
        methods=methods,
        trials=trials,
        splits=splits,
        metric=metric,
        seed=seed,
        quick=quick,
        kind=kind,
        independent=independent,
        search=search,
    )
    with _folder(out) as folder:
        store = Store(folder, plan.configuration)
        run_plan(
            plan,
            store,
            jobs=jobs,
            executor=executor,
            ray_address=ray_address,
            max_minutes=max_minutes,
            watch=watch,
        )
        return Study.read(plan.configuration, list(store.results().values()))


def estimate_seconds(plan: Plan, runs: Sequence[PlannedRun]) -> float:
    """Return about how long some runs take one worker; right within a factor of two or so."""
    trained = [run for run in runs if run.trial is not None]
    steps = sum(
        max(1, len(plan.splits[run.split].train) // run.trial.settings.batch_size)
        for run in trained
        if run.trial is not None
    )
    return 2.0 + _TYPICAL_EPOCHS * steps * _SECONDS_PER_STEP + (len(runs) - len(trained)) * 0.2


def run_plan(
    plan: Plan,
    store: Store,
    *,
    jobs: int,
    executor: Executor = "process",
    ray_address: str | None = None,
    max_minutes: float | None = None,
    watch: Callable[[Outcome], None] | None = None,
) -> bool:
    """Do the runs of a plan that a store does not have yet, and put them there.

    Returns:
        Whether all are done; False if the time was up or Ctrl-C was pressed.
    """
    return run_tasks(
        Worker(plan.splits, plan.configuration["hidden"]),
        map(make_tasks, _rounds(plan, store)),
        store,
        total=len(plan.runs),
        jobs=jobs,
        executor=executor,
        ray_address=ray_address,
        max_minutes=max_minutes,
        watch=watch,
    )


def _rounds(plan: Plan, store: Store) -> Iterator[Sequence[PlannedRun]]:
    if plan.configuration["search"] == "random":
        return iter([plan.runs])
    return plan_rounds(plan.runs, store.results, seed=plan.configuration["seed"])


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _make_splits(
    data: Data | Sequence[Split], count: int, seed: int, kind: SplitRule | None
) -> tuple[list[Split], list[str]]:
    notes: list[str] = []
    options: dict[str, Any] = {}
    if kind is not None:
        if not isinstance(data, Table):
            raise ArgumentError(
                f"`kind` of split must be None for data that knows how it is split, got {kind!r}."
            )
        options["split"] = kind
    if not isinstance(data, Data):
        parts = list(data) if isinstance(data, Sequence) else []
        if not parts or not all(isinstance(split, Split) for split in parts):
            raise ArgumentTypeError(
                "`data` must be a table (regaug.data.read_table, regaug.data.load) or a list of "
                f"splits, got {type(data).__name__}."
            )
        if any(isinstance(split, StandardizedSplit) for split in parts):
            raise ArgumentError(
                "`data` must be splits in the target's own units, got standardized ones. A study "
                "scales them itself: give data.split(seed)."
            )
    else:
        if data.info.task != "table":
            raise ArgumentError(
                f"`data` must be a table, got {data.info.name}, a {data.info.task} data set. "
                "Train its network with regaug.training.fit."
            )
        seeds = [_random.derive(_random.Stream.SPLITS, seed, i) % 2**31 for i in range(count)]
        parts = [data.split(seed=own, **options) for own in seeds]
        if len({split.test.rows.tobytes() for split in parts}) == 1 and count > 1:
            parts = parts[:1]
            notes.append("This data has one split only, so nothing can be said of certainty.")
    if not all(isinstance(split.train.x, Tensor) for split in parts):
        raise ArgumentError("`data` must have its inputs in memory, as tables do.")
    total = sum(len(part) for part in (parts[0].train, parts[0].validation, parts[0].test))
    if total > MOST_ROWS:
        notes.append(f"The study looks at {MOST_ROWS:,} of the {total:,} rows.")
        parts = [split.subsample(MOST_ROWS, seed=seed) for split in parts]
    return [_three_parts(split) for split in parts], notes


def _three_parts(split: Split) -> Split:
    """Return the three parts of a split and nothing else: what a worker needs."""
    return Split(split.train, split.validation, split.test)


def _is_skewed(parts: Sequence[Split]) -> bool:
    """Tell whether all targets are positive and those to train on strongly skewed."""
    everything = [part.y for split in parts for part in (split.train, split.validation, split.test)]
    if any(bool((y <= 0).any()) for y in everything):
        return False
    y = parts[0].train.y.double()
    centered = y - y.mean(dim=0)
    skew = centered.pow(3).mean(dim=0) / centered.square().mean(dim=0).clamp(min=1e-300).pow(1.5)
    return bool((skew > _SKEWED).all())


def _describe(data: Data | Sequence[Split], parts: Sequence[Split]) -> dict[str, Any]:
    first = parts[0].train
    digest = 0
    for split in parts:
        for part in (split.train, split.validation, split.test):
            digest = zlib.crc32(part.y.contiguous().numpy().tobytes(), digest)
            digest = zlib.crc32(torch.as_tensor(part.x[:]).contiguous().numpy().tobytes(), digest)
    return {
        "name": data.info.name if isinstance(data, Data) else "splits",
        "rows": sum(len(part) for part in (first, parts[0].validation, parts[0].test)),
        "columns": int(first.x.shape[1]),
        "targets": int(first.y.shape[1]),
        "checksum": f"{digest:08x}",
    }
