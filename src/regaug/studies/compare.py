"""The study: good recipes first, then every method at them, on the same splits."""

import tempfile
import time as clock
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from regaug._outputs import Output, has_mark
from regaug.data.base import Data
from regaug.data.splits import SplitRule
from regaug.data.tabular.table import Table
from regaug.ensemble.blend import PLAIN, Amounts
from regaug.ensemble.diagnosis import read_diagnosis, write_diagnosis
from regaug.ensemble.entry import QUICK_ROWS
from regaug.exceptions import ArgumentError, RegaugError, StoreError
from regaug.formatting import count
from regaug.metrics import FOCUSES, Focus, MetricName, focused
from regaug.problems import Problem
from regaug.runs.claims import alone
from regaug.runs.origins import Origins
from regaug.runs.registrations import check_methods
from regaug.runs.sharing import borrow
from regaug.runs.store import Store
from regaug.runs.tasks import Executor, Workforce, do_runs, estimate_seconds
from regaug.runs.versions import check_store
from regaug.runs.worker import Worker
from regaug.studies.budget import Asked
from regaug.studies.config import Fair, Search
from regaug.studies.differences import say_differences
from regaug.studies.facts import describe, write_facts
from regaug.studies.folders import Place, claim_place, name_study
from regaug.studies.inputs import (
    AnyData,
    check_relevance,
    find_model,
    name_source,
    open_data,
    with_rows,
)
from regaug.studies.latest import REPORT, mark_latest
from regaug.studies.network_plan import kept_plan, plan_network, planning_alone, with_epochs
from regaug.studies.networks import describe_network, finish_network
from regaug.studies.plan import QUICK_SPLITS, SPLITS, Plan, make_plan
from regaug.studies.progress import Observer, begin, observing
from regaug.studies.rounds import plan_rounds
from regaug.studies.study import MODEL, Study
from regaug.studies.targets import make_targets, write_targets

# What one process at a time does in the folder of a study.
_TURN = "turn.json"


def compare(
    data: AnyData,
    *,
    target: str | Sequence[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    drop: str | Sequence[str] = (),
    methods: Sequence[str] | None = None,
    trials: int | None = None,
    splits: int | None = None,
    split: SplitRule | None = None,
    metric: MetricName = "rmse",
    focus: Focus | str | None = None,
    seed: int = 0,
    quick: bool = False,
    independent: bool = False,
    search: Search = "random",
    jobs: int | None = None,
    executor: Executor = "process",
    ray_address: str | None = None,
    ray_runtime_env: object = None,
    gpus_per_run: float = 0.0,
    max_minutes: float | None = None,
    epochs: int | None = None,
    fair: Fair = "epochs",
    out: str | Path | None = None,
    progress: bool | Observer | None = None,
    model: object = None,
    rows: object = None,
    keep_integers: bool = False,
) -> Study:
    """Find out which augmentation helps on some data, and how sure that is.

    A study has two stages. First plain training is tried with several recipes (learning rate,
    decay, batches, length) on every split. Then every method, plain training included, is run
    equally often on every split, at the recipes that are best there. What a method is worth on a
    split is the test error of the ensemble of its runs, weighted by the split's own validation
    rows. Two more rows are made of all runs: ``nets``, and ``auto``, which has the baselines too.

    A network of your own takes a second or an hour. A short warm-up measures it, and what is not
    asked for is chosen: by ``max_minutes``, or a usual study whose time is announced. Of its
    recipes, only the better half is trained further, twice. A single split is repeated with other
    seeds: intervals then say how much seeds vary, and nothing of other test rows.

    Args:
        data: A table: ``regaug.data.read_table(...)`` or ``regaug.data.load(...)``; a path or a
            frame with ``target=``; a list of splits of your own making; or a
            :class:`regaug.Problem`.
        target: The column to predict, or several, of a path or a frame.
        group: Its column whose groups are held out whole, if any.
        time: Its column of times, if any: the last rows are held out.
        drop: Its columns to leave out.
        methods: Names of methods; those of ``regaug.methods.usual()`` by default. Plain training is
            always among them.
        trials: Settings that are tried of every method on every split; 6, or 3 if ``quick``. The
            first stage has two recipes for each of them, and at least 6.
        splits: Repeated splits of the data; 10, or 5 if ``quick``.
        split: How a table of your own is split: ``"random"``, ``"group"`` or ``"time"``; by its
            groups or times by default, if it has such a column.
        metric: The error that chooses and is compared; a problem has its own. Where rare targets
            matter: ``"balanced-rmse"``, in which every tenth of the target's range counts alike, or
            ``"tail-rmse"``, that of the tenth of the rows at an end.
        focus: Which end of the target that is: ``"high"``, ``"low"``, or ``"both"``. With another
            metric, a column that says from 0 to 1 how much the target of every row matters: rows
            that ``"smogn"`` makes go by it, and it is no input.
        seed: Decides splits, settings and runs: the same seed gives the same table.
        quick: Fewer methods, settings and splits.
        independent: The splits have no rows in common, as draws of a simulation do.
        search: ``"random"`` draws the settings of the methods before anything runs; ``"tpe"``
            learns them, in rounds of five, from the validation errors of a method's earlier ones
            on all splits.
        jobs: Worker processes; 1 works in this one. None is 1, and all CPUs of a Ray cluster. The
            result does not depend on it.
        executor: ``"process"``, or ``"ray"`` for workers on Ray, which is an extra. The result does
            not depend on it either.
        ray_address: Where a Ray cluster listens; None takes that of ``RAY_ADDRESS``, and starts Ray
            on this machine if there is none.
        ray_runtime_env: What Ray gives to its workers, such as regaug where a node has none: a dict
            as ``ray.init`` takes it, a JSON file with one, a wheel or a folder that is sent there,
            or names of packages for pip.
        gpus_per_run: Graphics cards that Ray reserves for every run, such as 1 or 0.5. Without it
            Ray gives none; processes of this machine take the first one there is. Untried.
        max_minutes: Start nothing new after so many minutes, and report on what is finished. The
            study of a network of your own is planned to fit: how many splits, recipes, settings
            and epochs there are depends on the machine then, but not on who continues it in
            ``out``. A training that is not finished by then pauses after its epoch; the same call
            goes on there.
        epochs: Epochs of every training of a network of your own; None chooses.
        fair: What every method gets the same of: ``"epochs"``, or ``"time"``, for which methods
            with slower steps get fewer epochs. For a network of your own.
        out: The folder of all studies, as ``--out`` of the command. This one is kept below it, in a
            folder that is named after the table and what was asked for, such as
            ``out/houses/quick``: every finished run, what is known of the data, the report and the
            model. The same call continues there. ``study.folder`` says where it is, and
            ``out/houses/latest`` leads to the newest. Several processes, on any number of machines,
            that make the same call at the same time share the work. None forgets.
        progress: True for a progress bar, or a function that is told how far it has come.
        model: What is trained on a table or splits: None or ``"nets"`` for the nets for tables; a
            regressor (``"ridge"``, ``"boosting"``, ``"trees"``, ``"gp"``, any of scikit-learn, or
            a function that makes one) for which every method makes new training rows; a function
            that makes a network; or where it is written, ``"module:make"`` or ``"file.py:make"``.
        rows: Rows of the same columns that were made elsewhere, a path or a frame: for a regressor
            they are compared as one more method.
        keep_integers: Whether columns of whole numbers stay such in new rows for a regressor.

    Returns:
        The study; ``print(study)`` shows the table and says what it means.
    """
    start = clock.monotonic()
    workforce = Workforce(
        1 if jobs is None else jobs,
        executor,
        ray_address,
        max_minutes,
        gpus_per_run,
        ray_runtime_env,
    )
    workforce = workforce.for_cluster() if jobs is None else workforce
    jobs = workforce.jobs
    relevance = None if focus is None or focus in FOCUSES else focus
    if relevance is not None:
        check_relevance(relevance, metric, methods)
    metric = cast(MetricName, focused(metric, cast(Focus, None if relevance else focus)))
    if isinstance(data, Table) and data.relevance == relevance:
        relevance = None  # it knows
    table = open_data(data, target=target, group=group, time=time, drop=drop, relevance=relevance)
    if isinstance(table, Problem):
        problem = table
        for name, value in (("model", model), ("rows", rows)):
            if value is not None:
                raise ArgumentError(
                    f"`{name}` must be None for a problem, which has its own: "
                    f"Problem(splits, {name}=...)."
                )
        if metric not in ("rmse", problem.metric):
            raise ArgumentError(
                f"`metric` must be that of the problem, {problem.metric!r}, got {metric!r}. Leave "
                "it out, or make the problem with another one."
            )
    elif isinstance(table, Data):
        number = splits if splits is not None else QUICK_SPLITS if quick else SPLITS
        problem = Problem.from_table(
            table,
            splits=number,
            split=split,
            metric=metric,
            seed=seed,
            most_rows=QUICK_ROWS if quick else None,
            model=find_model(model),
        )
        problem = problem if rows is None else with_rows(problem, rows, table)
    else:
        problem = Problem(table, find_model(model), metric)
        if rows is not None:
            raise ArgumentError(
                "`rows` must be None for splits of your own making. Give them as parts: "
                "Problem(splits, model=..., rows=parts)."
            )
    if independent:
        problem = replace(problem, independent=True)
    if keep_integers:
        problem = replace(problem, keep_integers=True)
    asked = Asked(
        None if methods is None else tuple(methods),
        trials,
        splits if problem.kind == "network" else None,
        epochs,
        fair,
        max_minutes,
        quick,
    )
    source = table if isinstance(table, Data) else None
    root = None if out is None else Path(out).expanduser()
    with planning_alone(root, problem, asked):
        if problem.kind == "network":
            plan = plan_network(problem, asked, root, seed=seed, search=search, jobs=jobs)
            if max_minutes is not None and plan.budget is not None:
                latest = plan.budget.latest(max_minutes, (clock.monotonic() - start) / 60)
                workforce = replace(workforce, max_minutes=latest)
        else:
            problem = with_epochs(problem, asked)
            plan = make_plan(
                problem, methods=methods, trials=trials, seed=seed, quick=quick, search=search
            )
        place = None
        if root is not None:
            wish = None if plan.budget is None else asked
            name = name_study(plan.config, quick=quick, splits=splits, split=split, asked=wish)
            given = name_source(source, problem) | kept_plan(plan, asked)
            place = claim_place(root, plan.config, name=name, given=given)
    with observing(progress) as observer:
        if place is None:
            with tempfile.TemporaryDirectory() as path:
                place = Place(Path(path))
                study = run_plan(plan, place, workforce, data=source, observer=observer)
            return replace(study, folder=None)
        # Before anything is trained.
        Output(place.folder / REPORT, name="out", force=None, is_own=has_mark)
        study = run_plan(plan, place, workforce, data=source, observer=observer, keeps_model=True)
        with alone(place.folder / _TURN):  # others find the model that was made
            return _finish(study, place.folder, seed, jobs)


def run_plan(
    plan: Plan,
    place: Place,
    workforce: Workforce,
    *,
    data: Data | None = None,
    observer: Observer | None = None,
    keeps_model: bool = False,
) -> Study:
    """Do the runs of a plan that its folder does not have yet, and return what they say.

    ``keeps_model`` says that a model is fitted afterwards, which takes time as well.
    """
    if workforce.jobs > 1 and workforce.executor == "process":
        check_methods(plan.config.methods)  # now, not when their turn comes
    folder = place.folder
    store = Store(folder, plan.config.to_dict(), differ=say_differences)
    summary = getattr(data, "summary", plan.config.problem)
    notes = [summary, *plan.notes]
    facts, given = None, name_source(data, plan.problem)
    if plan.problem.kind in ("table", "estimator"):
        leaks = [str(leak) for leak in getattr(data, "leaks", ())]
        facts = describe(plan.problem.splits[0], "\n".join(notes), given=given, leaks=leaks)
    elif plan.problem.kind == "network":
        facts = describe_network(plan.problem, plan.notes, given=given)
    if facts is not None:
        write_facts(folder, facts)
    said = check_store(store) if len(store.done()) < len(plan.runs) else []
    notes += [*place.notes, *_borrow(plan, store, place), *said]
    afterwards = 0.0
    if keeps_model and _may_have_model(plan.problem.kind, data) and not (folder / MODEL).is_dir():
        afterwards = _estimate_model(plan) / workforce.jobs
    tell = begin(plan, store, workforce, observer, notes, afterwards=afterwards)
    targets = make_targets(plan.problem)
    if targets is not None:
        write_targets(folder, targets)
    rounds = plan_rounds(plan.runs, store.records, config=plan.config)
    # Stacks are finished: what they would have by then is no result that can go on.
    minutes = None if plan.problem.is_stacked else workforce.max_minutes
    until = None if minutes is None else clock.time() + 60 * minutes
    worker = Worker([plan.problem], details=True, until=until, folder=folder)
    if do_runs(
        worker,
        rounds,
        store,
        total=len(plan.runs),
        workforce=workforce,
        report=tell,
        origins=Origins([plan.problem]),
        say=said.append,
    ):
        worker.forget_all()
    records = list(store.records().values())
    study = Study.read(plan.config, records, targets=targets, facts=facts)
    if plan.problem.kind == "network":
        study = finish_network(study, plan.problem, folder)
        if study.facts is not None:
            write_facts(folder, study.facts)
    planned = () if plan.budget is None else plan.budget.notes
    notes = [*study.notes, *said]
    return replace(study, folder=folder, data=data, planned=planned, notes=notes)


def _may_have_model(kind: str, data: Data | None) -> bool:
    """Tell whether a study of something leaves a model in its folder."""
    return kind == "table" and data is not None


def _estimate_model(plan: Plan) -> float:
    """Return about how long one worker takes for the model that a study leaves in its folder."""
    amounts = Amounts.of(QUICK_ROWS, quick=True)
    runs = [run for run in plan.runs if run.split == 0 and run.is_baseline]
    plain = [run for run in plan.runs if run.method == PLAIN]
    runs += plain[: amounts.recipes]
    most = len(plan.problem.splits[0].train) * QUICK_ROWS // max(1, plan.config.rows)
    problems = {plan.problem.name: plan.problem}
    return estimate_seconds(runs * amounts.folds, problems, most_rows=most)


def _borrow(plan: Plan, store: Store, place: Place) -> list[str]:
    """Take runs over that other studies have; say from where."""
    if not place.others or len(store.done()) >= len(plan.runs):
        return []
    rounds = plan_rounds(plan.runs, store.records, config=plan.config)
    with alone(place.folder / _TURN):  # of two who take the same each would keep it
        given = borrow(rounds, store, place.others, plan.problem)
    return [f"{count(number, 'run')} taken from {folder}." for folder, number in given.items()]


def _finish(study: Study, folder: Path, seed: int, jobs: int) -> Study:
    """Write the report and the model of a study into its folder; a model that is there stays."""
    has_model = (folder / MODEL).is_dir()
    try:
        diagnosis = read_diagnosis(folder) if has_model else None
        study = replace(study, diagnosis=diagnosis)
    except StoreError as error:
        study = replace(study, notes=[*study.notes, str(error)])
    study.report(folder / REPORT)
    mark_latest(folder)
    is_due = study.is_complete and _may_have_model(study.config.kind, study.data)
    if has_model or not is_due:
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
