"""Run a table of the paper: find the data, plan, train what is missing, read off the result."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regaug._files import write_json
from regaug.data.base import Rules
from regaug.exceptions import DataNotFoundError
from regaug.reproduction import timing
from regaug.reproduction.measured import Measured, measure
from regaug.reproduction.sources import Source, find
from regaug.reproduction.tables import (
    EXPERIMENTS,
    PROTOCOLS,
    Size,
    estimate_seconds,
    find_sources,
    fit_to_budget,
    make_rows,
)
from regaug.reproduction.work import Worker, make_tasks
from regaug.runs.store import Store
from regaug.runs.tasks import Executor, run_tasks
from regaug.runs.worker import Outcome

STUDY = {"what": "the reproduction of the FOMA paper"}
TIME = "time"
Say = Callable[[str], None]


def run_experiment(
    name: str,
    folder: Path,
    *,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: int = 3,
    protocols: Sequence[Rules] = PROTOCOLS,
    budget: float | None = None,
    jobs: int = 1,
    executor: Executor = "process",
    ray_address: str | None = None,
    announce: Callable[[int, int, float], None] = lambda planned, left, seconds: None,
    watch: Callable[[Outcome], None] | None = None,
    say: Say = lambda text: None,
) -> list[Measured]:
    """Train what an experiment needs and a store does not have, and return what it shows.

    Args:
        name: One of ``EXPERIMENTS``.
        folder: The store; the tables are written there too, as JSON.
        datasets: Data sets of the paper; all of the experiment if empty.
        methods: Methods; all if empty.
        seeds: Repetitions in the paper's protocol.
        protocols: Which of ``"paper"`` and ``"tuned"``.
        budget: Minutes: epochs and settings are cut to about that, and nothing starts after it.
        jobs: Worker processes.
        executor: ``"process"`` or ``"ray"``.
        ray_address: Where a Ray cluster listens.
        announce: Told how many runs there are, how many are left, and about how long they take.
        watch: Called with what every finished piece of work has made.
        say: Told which data sets are left out, and why.

    Raises:
        DataNotFoundError: None of the data sets is here; says how to get them.
    """
    experiment = EXPERIMENTS[name]
    sources, missing = find_sources(experiment, datasets)
    if not sources:
        raise DataNotFoundError(" ".join(missing.values()))
    for message in missing.values():
        say(f"Left out: {message}")
    by_name = {source.data: source for source in sources}

    def make(size: Size) -> list[Any]:
        return [
            row
            for source in sources
            for row in make_rows(experiment, source, methods=methods, size=size)
        ]

    whole = Size(seeds=seeds, protocols=tuple(protocols))
    rows, size = fit_to_budget(make, by_name, size=whole, minutes=budget, jobs=jobs)
    store = Store(folder, STUDY)
    done = store.done()
    runs = list({run.key: run for row in rows for run in row.runs}.values())
    left = [run for run in runs if run.key not in done]
    share = len(left) / max(1, len(runs))
    announce(len(runs), len(left), share * estimate_seconds(rows, by_name) / jobs)
    run_tasks(
        Worker(),
        [make_tasks(left)],
        store,
        total=len(done) + len(left),
        jobs=jobs,
        executor=executor,
        ray_address=ray_address,
        max_minutes=budget,
        watch=watch,
    )
    measured = []
    for source in sources:
        own = [row for row in rows if row.data == source.data]
        command = _command(name, source, methods, size, budget, jobs)
        found = measure(experiment, source, own, store.results(), size=size, command=command)
        _keep(folder, f"{name}-{source.data}", found.to_dict())
        measured.append(found)
    return measured


def run_timing(
    folder: Path,
    *,
    datasets: Sequence[str] = (),
    budget: float | None = None,
    say: Say = lambda text: None,
) -> list[dict[str, Any]]:
    """Time an epoch of every variant of FOMA on the data sets of the paper's table 2."""
    found: list[dict[str, Any]] = []
    missing: list[str] = []
    store = Store(folder, STUDY)
    for data in datasets or timing.DATASETS:
        try:
            source = find(data)
        except DataNotFoundError as error:
            missing.append(str(error))
            continue
        times = timing.time_epochs(source, store, minutes=budget, watch=say)
        _keep(folder, f"{TIME}-{data}", times)
        found.append(times)
    if not found:
        raise DataNotFoundError(" ".join(missing))
    for message in missing:
        say(f"Left out: {message}")
    return found


def _command(
    name: str,
    source: Source,
    methods: Sequence[str],
    size: Size,
    budget: float | None,
    jobs: int,
) -> str:
    words = ["regaug", "reproduce", name, "--datasets", source.data]
    words += ["--methods", ",".join(methods)] if methods else []
    words += ["--seeds", str(size.seeds)]
    words += ["--protocol", size.protocols[0]] if len(size.protocols) == 1 else []
    # The budget of several processes is shared: their number is a part of what is run.
    words += ["--budget", f"{budget:g}", "-j", str(jobs)] if budget is not None else []
    return shlex.join(words)


def _keep(folder: Path, name: str, table: dict[str, Any]) -> None:
    write_json(folder / "tables" / f"{name}.json", table, indent=1)
