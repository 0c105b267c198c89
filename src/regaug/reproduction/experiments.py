"""Run a table of the paper: find the data, plan, train what is missing, read off the result."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regaug._files import JSON, write_json
from regaug._outputs import check_own_folder
from regaug._registry import lookup
from regaug.data.base import Rules
from regaug.problems import Problem
from regaug.reproduction import tables
from regaug.reproduction.measured import Measured, measure
from regaug.reproduction.outlook import Outlook
from regaug.reproduction.problems import PaperData, find_all
from regaug.reproduction.tables import EXPERIMENTS, PROTOCOLS, SPLITS, Row, Size, list_runs
from regaug.reproduction.timing import DATASETS, TIME, Times, measure_times, plan_rounds
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import STUDY, Store
from regaug.runs.tasks import Report, Workforce, do_runs, estimate_seconds
from regaug.runs.worker import Worker

WHAT: Mapping[str, JSON] = {"what": "the reproduction of the FOMA paper"}
TABLES = "tables"


@dataclass(frozen=True)
class Wanted:
    """Which part of an experiment is wanted: all data sets and methods if none is named."""

    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()
    seeds: int = 3
    protocols: tuple[Rules, ...] = PROTOCOLS
    epochs: int | None = None  # of the paper's protocol, at most
    whole: bool = False  # stop when the time is up, instead of cutting what does not fit


@dataclass(frozen=True, eq=False)
class Progress:
    """How far an experiment has come; told when it begins, and whenever something is finished."""

    planned: int
    left: int  # not finished when it began
    seconds: float  # that these take, about
    records: Sequence[RunRecord] = ()  # just finished; nothing at the beginning
    notes: Sequence[str] = ()  # for a reader, at the beginning


Observer = Callable[[Progress], None]


def run_experiment(
    name: str,
    folder: Path,
    wanted: Wanted | None = None,
    *,
    workforce: Workforce | None = None,
    progress: Observer | None = None,
) -> list[Measured]:
    """Train what an experiment needs and a store does not have, and return what it shows.

    The tables are written to the store's folder too, as JSON. Epochs and settings are cut to about
    the time that the workforce has, and nothing starts after it. If the whole is wanted nothing is
    cut: networks pause after an epoch when the time is up, and the same call goes on.
    """
    check_own_folder(folder, STUDY)
    wanted, workforce = wanted or Wanted(), workforce or Workforce()
    experiment, minutes, jobs = EXPERIMENTS[name], workforce.max_minutes, workforce.jobs
    found, missing = tables.find_data(experiment, wanted.datasets)
    splits = max(SPLITS, wanted.seeds)
    problems = [data.problem(protocol, splits) for data in found for protocol in data.protocols]

    def make(size: Size) -> list[Row]:
        return [
            row
            for data in found
            for row in tables.make_rows(experiment, data, methods=wanted.methods, size=size)
        ]

    whole = Size(seeds=wanted.seeds, epochs=wanted.epochs, protocols=wanted.protocols)
    by_name = {problem.name: problem for problem in problems}
    limit = None if wanted.whole else minutes
    rows, size = tables.fit_to_time(make, by_name, size=whole, max_minutes=limit, jobs=jobs)
    store, runs = Store(folder, WHAT), list_runs(rows)
    tell = _begin(runs, by_name, store, progress, missing, jobs)
    _do_all(problems, runs, store, workforce, tell)
    records, measured = store.records(), []
    rest = [run for run in list_runs(make(whole)) if run.key not in records]
    for data in found:
        own = [row for row in rows if row.data == data.name]
        command = _command(name, data, wanted, workforce)
        outlook = Outlook(list_runs(own), [run for run in rest if _is_of(run, data)], size)
        left = outlook.say(data.name, records, by_name, replace(workforce, max_minutes=limit))
        table = measure(experiment, data, own, records, size=size, command=command, left=left)
        write_json(folder / TABLES / f"{name}-{data.name}.json", table.to_dict(), indent=1)
        measured.append(table)
    return measured


def run_timing(
    folder: Path,
    datasets: Sequence[str] = (),
    *,
    max_minutes: float | None = None,
    progress: Observer | None = None,
) -> list[Times]:
    """Time an epoch of every variant of FOMA on the data sets of the paper's table 2.

    One process, one thread. Nothing more is timed after so many minutes, the first round of every
    data set excepted.
    """
    check_own_folder(folder, STUDY)
    for name in datasets:
        lookup("data set of the paper's table 2", name, dict.fromkeys(DATASETS))
    found, missing = find_all(datasets or DATASETS)
    store, rounds = Store(folder, WHAT), {data: plan_rounds(data) for data in found}
    problems = {data.problem_name(TIME): data.problem(TIME) for data in found}
    planned = [run for own in rounds.values() for runs in own for run in runs]
    tell = _begin(planned, problems, store, progress, missing)
    measured = []
    for data, (first, *others) in rounds.items():
        worker = Worker([problems[data.problem_name(TIME)]])
        # The first round takes the time it needs; who presses Ctrl-C does not want the others.
        if _do(worker, [first], store, Workforce(), tell):
            _do(worker, others, store, Workforce(max_minutes=max_minutes), tell)
        times = measure_times(data, store.records().values())
        if times is not None:
            write_json(folder / TABLES / f"{TIME}-{data.name}.json", times.to_dict(), indent=1)
            measured.append(times)
    return measured


def _begin(
    runs: Sequence[Run],
    problems: Mapping[str, Problem],
    store: Store,
    observer: Observer | None,
    missing: Sequence[str],
    jobs: int = 1,
) -> Report:
    """Tell an observer, if there is one, that runs begin; return what tells it of records."""
    tell, done = observer or (lambda progress: None), store.done()
    left = [run for run in runs if run.key not in done]
    state = Progress(len(runs), len(left), estimate_seconds(left, problems) / jobs)
    tell(replace(state, notes=[f"Left out: {message}" for message in missing]))
    return lambda records: tell(replace(state, records=records))


def _do(
    worker: Worker, rounds: Sequence[Sequence[Run]], store: Store, by: Workforce, tell: Report
) -> bool:
    total = len(store.done() | {run.key for runs in rounds for run in runs})
    return do_runs(worker, rounds, store, total=total, workforce=by, report=tell)


def _do_all(
    problems: Sequence[Problem], runs: Sequence[Run], store: Store, by: Workforce, tell: Report
) -> None:
    """Do runs of tables, then those of networks, which can pause and go on another time."""
    start = time.monotonic()
    stacked = {problem.name for problem in problems if problem.is_stacked}
    small = [run for run in runs if run.problem in stacked]
    if small and not _do(Worker(problems), [small], store, by, tell):
        return
    large = [run for run in runs if run.problem not in stacked]
    until = None
    if by.max_minutes is not None:
        left = by.max_minutes - (time.monotonic() - start) / 60
        if left <= 0:
            return
        by, until = replace(by, max_minutes=left), time.time() + 60 * left
    if large:
        _do(Worker(problems, folder=store.folder, until=until), [large], store, by, tell)


def _is_of(run: Run, data: PaperData) -> bool:
    return run.problem in {data.problem_name(protocol) for protocol in data.protocols}


def _command(name: str, data: PaperData, wanted: Wanted, workforce: Workforce) -> str:
    words = ["regaug", "reproduce", name, "--datasets", data.name]
    words += ["--methods", ",".join(wanted.methods)] if wanted.methods else []
    words += ["--seeds", str(wanted.seeds)]
    words += ["--protocol", wanted.protocols[0]] if len(wanted.protocols) == 1 else []
    words += ["--epochs", str(wanted.epochs)] if wanted.epochs is not None else []
    words += ["--whole"] if wanted.whole else []
    minutes = None if wanted.whole else workforce.max_minutes
    # The time of several processes is shared: their number is a part of what is run.
    words += [] if minutes is None else ["--max-minutes", f"{minutes:g}", "-j", f"{workforce.jobs}"]
    return shlex.join(words)
