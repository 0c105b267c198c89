"""What a study is going to do: its configuration and its runs."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from regaug import _random, methods
from regaug._checks import check_integer
from regaug._random import Stream
from regaug.data.base import Split
from regaug.data.scaling import StandardizedSplit, is_skewed
from regaug.problems import Problem
from regaug.runs.run import Run
from regaug.studies.config import REFERENCE, Search, StudyConfig
from regaug.studies.search import Trial, draw_trials
from regaug.training.baselines import baseline_names
from regaug.training.settings import Settings

QUICK_METHODS = (REFERENCE, "mixup", "c-mixup", "ada", "foma-rho")
TRIALS, QUICK_TRIALS = 20, 8
SPLITS, QUICK_SPLITS = 10, 5
# A run ends earlier when its validation error stops falling.
EPOCHS, PATIENCE = 200, 20


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a study is going to do.

    Attributes:
        config: What makes the study what it is.
        problem: What is to be learned.
        runs: Its runs, early trials of all methods first. A search by ``tpe`` decides on the
            settings after its first round later.
        notes: What a reader should know, in sentences.
    """

    config: StudyConfig
    problem: Problem
    runs: Sequence[Run]
    notes: Sequence[str]


def make_plan(
    problem: Problem,
    *,
    methods: Sequence[str] | None = None,
    trials: int | None = None,
    seed: int = 0,
    quick: bool = False,
    search: Search = "random",
    settings: Mapping[str, Settings] | None = None,
    baselines: bool = True,
) -> Plan:
    """Decide everything that a study will do.

    ``settings`` are the only ones that are tried of every method, drawn ones if None; ``baselines``
    says whether to fit them beside the nets. All else is as in :func:`regaug.compare`.
    """
    names = _check_methods(methods, quick)
    usual = 1 if settings is not None else QUICK_TRIALS if quick else TRIALS
    count = check_integer("trials", usual if trials is None else trials, 1)
    check_integer("seed", seed, 0)
    may_log = settings is None and not problem.is_scaled and _is_skewed(problem.splits)
    notes = list(problem.notes)
    if may_log:
        share = "half" if search == "random" else "some of"
        notes.append(f"The target is positive and skewed: {share} the settings fit its logarithm.")
    own = Settings(epochs=EPOCHS, patience=PATIENCE, metric=problem.metric)
    tried = {
        name: draw_trials(name, count, seed=seed, settings=own, may_log=may_log)
        if settings is None
        else [Trial(name, 0, settings[name])]
        for name in names
    }
    config = _configure(problem, names, count, seed, search)
    if not baselines:
        config = replace(config, baselines=())
    return Plan(config, problem, plan_runs(config, tried), notes)


def plan_runs(config: StudyConfig, tried: Mapping[str, Sequence[Trial]]) -> list[Run]:
    """Return all runs of a study: the baselines, then the first trial of every method ..."""
    splits = range(config.splits)
    runs = [
        Run(config.problem, name, split, config.seed)
        for name in config.baselines
        for split in splits
    ]
    for number in range(config.trials):
        for method, trials in tried.items():
            runs += [_run(config, method, trials[number], split) for split in splits]
    return runs


def _run(config: StudyConfig, method: str, trial: Trial, split: int) -> Run:
    own = zlib.crc32(method.encode())
    seed = _random.derive(Stream.RUNS, config.seed, own, split, trial.number)
    return Run(config.problem, method, split, seed, trial.settings, trial.number, trial.log)


def _check_methods(names: Sequence[str] | None, quick: bool) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(names or (QUICK_METHODS if quick else methods.names())))
    for name in wanted:
        methods.get(name)
    return wanted if REFERENCE in wanted else (REFERENCE, *wanted)


def _configure(
    problem: Problem, names: tuple[str, ...], trials: int, seed: int, search: Search
) -> StudyConfig:
    splits, first = problem.splits, problem.splits[0]
    sizes = [(len(own.train), len(own.validation), len(own.test)) for own in splits]
    return StudyConfig(
        problem=problem.name,
        methods=names,
        baselines=baseline_names(first),
        trials=trials,
        splits=len(splits),
        metric=problem.metric,
        # Validation rows make the model too: they choose the epoch and the setting.
        test_share=sum(test / (train + valid) for train, valid, test in sizes) / len(sizes),
        independent=problem.independent,
        search=search,
        seed=seed,
        epochs=EPOCHS,
        patience=PATIENCE,
        hidden=tuple(problem.hidden) if problem.is_stacked else (),
        rows=sum(sizes[0]),
        columns=prod(first.train.x.shape[1:]),
        targets=first.train.y.shape[1],
        checksum=problem.checksum(),
    )


def _is_skewed(splits: Sequence[Split]) -> bool:
    """Tell whether all targets are positive and those to train on strongly skewed."""
    if isinstance(splits[0], StandardizedSplit):  # its scale is given, without a logarithm
        return False
    if any(bool((part.y <= 0).any()) for split in splits for part in split.parts.values()):
        return False
    return is_skewed(splits[0].train.y)
