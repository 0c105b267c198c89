"""The study: good recipes first, then every method at them, on the same splits."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from regaug.data import read_table
from regaug.data.base import Data, Split
from regaug.data.splits import SplitRule
from regaug.data.tabular.table import Table
from regaug.ensemble.diagnosis import read_diagnosis, write_diagnosis
from regaug.ensemble.entry import QUICK_ROWS
from regaug.exceptions import ArgumentError, ArgumentTypeError, RegaugError, StoreError
from regaug.metrics import MetricName
from regaug.problems import MOST_ROWS, Problem
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.runs.tasks import Executor, Report, Workforce, do_runs, estimate_seconds
from regaug.runs.worker import Worker
from regaug.studies.config import Search
from regaug.studies.facts import describe, write_facts
from regaug.studies.plan import QUICK_SPLITS, SPLITS, Plan, make_plan
from regaug.studies.rounds import plan_rounds
from regaug.studies.study import MODEL, REPORT, Study
from regaug.studies.targets import make_targets, write_targets
from regaug.training.bar import bar_from_first_call

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a study has come; told when it begins, and whenever something is finished.

    Attributes:
        plan: What the study is going to do.
        records: What has just been finished; nothing at the beginning.
        done: Finished runs of every method and baseline.
        seconds_left: About how long the others take.
        notes: What a reader should know, told at the beginning.
    """

    plan: Plan
    records: Sequence[RunRecord]
    done: Mapping[str, int]
    seconds_left: float
    notes: Sequence[str] = field(default=())


Observer = Callable[[Progress], None]
AnyData: TypeAlias = "Problem | Data | list[Split] | tuple[Split, ...] | str | Path | pd.DataFrame"


def compare(
    data: AnyData,
    *,
    target: str | Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    trials: int | None = None,
    splits: int | None = None,
    split: SplitRule | None = None,
    metric: MetricName = "rmse",
    seed: int = 0,
    quick: bool = False,
    independent: bool = False,
    search: Search = "random",
    jobs: int = 1,
    executor: Executor = "process",
    ray_address: str | None = None,
    max_minutes: float | None = None,
    out: str | Path | None = None,
    progress: bool | Observer | None = None,
) -> Study:
    """Find out which augmentation helps on some data, and how sure that is.

    A study has two stages. First plain training is tried with several recipes (learning rate,
    decay, batches, length) on every split. Then every method, plain training included, is run
    equally often on every split, at the recipes that are best there. What a method is worth on a
    split is the test error of the ensemble of its runs, weighted by the split's own validation
    rows. Two more rows are made of all runs: ``nets``, and ``auto``, which has the baselines too.

    Args:
        data: A table: ``regaug.data.read_table(...)`` or ``regaug.data.load(...)``; a path or a
            frame with ``target=``; a list of splits of your own making; or a
            :class:`regaug.Problem`.
        target: The column to predict, or several, of a path or a frame.
        methods: Names of methods; all of them by default. Plain training is always among them.
        trials: Settings that are tried of every method on every split; 6, or 3 if ``quick``. The
            first stage has two recipes for each of them, and at least 6.
        splits: Repeated splits of the data; 10, or 5 if ``quick``.
        split: How a table of your own is split: ``"random"``, ``"group"`` or ``"time"``; by its
            groups or times by default, if it has such a column.
        metric: The error that chooses and is compared; a problem has its own.
        seed: Decides splits, settings and runs: the same seed gives the same table.
        quick: Fewer methods, settings and splits.
        independent: The splits have no rows in common, as draws of a simulation do.
        search: ``"random"`` draws the settings of the methods before anything runs; ``"tpe"``
            learns them, in rounds of five, from the validation errors of a method's earlier ones
            on all splits.
        jobs: Worker processes; 1 works in this one. The result does not depend on it.
        executor: ``"process"``, or ``"ray"`` for workers on Ray, which is an extra. The result does
            not depend on it either.
        ray_address: Where a Ray cluster listens; None starts Ray on this machine.
        max_minutes: Start nothing new after so many minutes, and report on what is finished.
        out: A folder that keeps every finished run, what is known of the data, the report and the
            model; the same call continues there. None forgets.
        progress: True for a progress bar, or a function that is told how far it has come.

    Returns:
        The study; ``print(study)`` shows the table and says what it means.
    """
    workforce = Workforce(jobs, executor, ray_address, max_minutes)
    table = _open(data, target)
    if isinstance(table, Problem):
        problem = table
        if metric not in ("rmse", problem.metric):
            raise ArgumentError(
                f"`metric` must be that of the problem, {problem.metric!r}, got {metric!r}. Leave "
                "it out, or make the problem with another one."
            )
    elif isinstance(table, Data):
        number = splits if splits is not None else QUICK_SPLITS if quick else SPLITS
        most = QUICK_ROWS if quick else MOST_ROWS
        problem = Problem.from_table(
            table, splits=number, split=split, metric=metric, seed=seed, most_rows=most
        )
    else:
        problem = Problem(table, metric=metric)
    if independent:
        problem = replace(problem, independent=True)
    plan = make_plan(problem, methods=methods, trials=trials, seed=seed, quick=quick, search=search)
    source = table if isinstance(table, Data) else None
    folder = tempfile.TemporaryDirectory() if out is None else nullcontext(str(out))
    with folder as path, _observer(progress) as observer:
        study = run_plan(plan, Path(path), workforce, data=source, observer=observer)
        return replace(study, folder=None) if out is None else _finish(study, Path(out), seed, jobs)


def run_plan(
    plan: Plan,
    folder: Path,
    workforce: Workforce,
    *,
    data: Data | None = None,
    observer: Observer | None = None,
) -> Study:
    """Do the runs of a plan that a folder does not have yet, and return what they say."""
    store = Store(folder, plan.config.to_dict())
    summary = getattr(data, "summary", plan.config.problem)
    notes = [summary, *plan.notes]
    facts = None
    if plan.problem.is_stacked:
        facts = describe(plan.problem.splits[0], "\n".join(notes), given=_given(data))
        write_facts(folder, facts)
    tell = _begin(plan, store, workforce, observer, notes)
    targets = make_targets(plan.problem)
    if targets is not None:
        write_targets(folder, targets)
    rounds = plan_rounds(plan.runs, store.records, config=plan.config)
    worker, total = Worker([plan.problem], details=True), len(plan.runs)
    do_runs(worker, rounds, store, total=total, workforce=workforce, report=tell)
    records = list(store.records().values())
    study = Study.read(plan.config, records, targets=targets, facts=facts)
    return replace(study, folder=folder, data=data)


def _begin(
    plan: Plan,
    store: Store,
    workforce: Workforce,
    observer: Observer | None,
    notes: Sequence[str],
) -> Report:
    """Tell an observer, if there is one, that a study begins; return what tells it of records."""
    # Not by key: the plan does not know the recipes of the second stage yet.
    places = {_place(own.run) for own in store.records().values()}
    notes = [*notes, *(f"Note: {damage}" for damage in store.damaged)]  # known when they are read
    before, start = len(places), time.monotonic()

    def tell(records: Sequence[RunRecord], seconds: float, notes: Sequence[str] = ()) -> None:
        if observer is not None:
            done = Counter(method for _, method, _, _ in places)
            observer(Progress(plan, records, done, seconds, notes))

    def finished(records: Sequence[RunRecord]) -> None:
        places.update(_place(own.run) for own in records)
        new, left = max(1, len(places) - before), len(plan.runs) - len(places)
        tell(records, (time.monotonic() - start) / new * left)

    left = [run for run in plan.runs if _place(run) not in places]
    problems = {plan.problem.name: plan.problem}
    tell((), estimate_seconds(left, problems) / workforce.jobs, notes)
    return finished


def _place(run: Run) -> tuple[str | None, str, int | None, int]:
    return run.stage, run.method, run.trial, run.split


def _finish(study: Study, folder: Path, seed: int, jobs: int) -> Study:
    """Write the report and the model of a study into its folder; a model that is there stays."""
    has_model = (folder / MODEL).is_dir()
    try:
        diagnosis = read_diagnosis(folder) if has_model else None
        study = replace(study, diagnosis=diagnosis)
    except StoreError as error:
        study = replace(study, notes=[*study.notes, str(error)])
    study.report(folder / REPORT)
    if not study.is_complete or study.data is None or has_model:
        return study
    try:
        model = study.model(study.data, seed=seed, quick=True, jobs=jobs)
        diagnosis = model.diagnose()
        model.save(folder / MODEL)
        write_diagnosis(folder, diagnosis)
    except RegaugError as error:  # the study is worth telling all the same
        return replace(study, notes=[*study.notes, f"No model was made: {error}"])
    study = replace(study, diagnosis=diagnosis)
    study.report(folder / REPORT)  # which speaks of the model, too
    return study


def _open(data: AnyData, target: str | Sequence[str] | None) -> Problem | Data | Sequence[Split]:
    if isinstance(data, Problem | Data | list | tuple):
        if target is not None:
            raise ArgumentError(
                f"`target` must be None for data that knows its targets, got {target!r}."
            )
        return data
    if target is None:
        raise ArgumentTypeError(
            "`data` must be a table (regaug.data.read_table, regaug.data.load), a list of splits, "
            f"a problem, or a path or a frame with `target`, got {type(data).__name__} without it."
        )
    return read_table(data, target=target)


def _given(data: Data | None) -> Mapping[str, object]:
    """Return how the user named the data, for commands to copy."""
    if isinstance(data, Table):
        return data.given
    return {} if data is None else {"source": data.info.name}


@contextmanager
def _observer(progress: bool | Observer | None) -> Iterator[Observer | None]:
    """Give what is told how far a study has come; a progress bar if only that is asked for."""
    if progress is not True:
        yield progress or None
        return
    with bar_from_first_call("run") as show:

        def observe(event: Progress) -> None:
            words = event.records[-1].run.method if event.records else ""
            show(sum(event.done.values()), len(event.plan.runs), words)

        yield observe
