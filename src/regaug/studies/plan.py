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
from regaug.ensemble.prepared import default_names
from regaug.problems import Problem
from regaug.runs.run import Run, run_key
from regaug.studies.config import REFERENCE, Search, StudyConfig
from regaug.studies.search import draw_settings
from regaug.training.baselines import PREDICTORS, baseline_names
from regaug.training.recipe import draw_recipes
from regaug.training.settings import Settings

QUICK_METHODS = (REFERENCE, "mixup", "c-mixup", "ada", "foma-rho")
# Runs of every method on a split, in the second stage.
TRIALS, QUICK_TRIALS = 6, 3
SPLITS, QUICK_SPLITS = 10, 5
# Recipes of the first stage: so many for each trial of the second one, and not fewer than that.
RECIPES_PER_TRIAL, FEWEST_RECIPES = 2, 6
# What a recipe says of any network; all else is about the form of the table net.
_ANY_NETWORK = (
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "optimizer",
    "schedule",
    "clip",
    "patience",
    "patience_share",
    "metric",
)


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a study is going to do.

    Attributes:
        config: What makes the study what it is.
        problem: What is to be learned.
        runs: Its runs: baselines, recipes, then all methods, early trials first. Those of the
            second stage have other recipes when they run: each split chooses its own
            (:func:`regaug.studies.rounds.plan_rounds`).
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

    ``settings`` are the only ones that are tried of every method, without a search for a recipe;
    drawn ones if None. ``baselines`` says whether to fit them beside the nets. All else is as in
    :func:`regaug.compare`.
    """
    names = _check_methods(methods, quick)
    usual = 1 if settings is not None else QUICK_TRIALS if quick else TRIALS
    count = check_integer("trials", usual if trials is None else trials, 1)
    check_integer("seed", seed, 0)
    notes, recipes = list(problem.notes), []
    own = {name: [settings[name]] for name in names} if settings is not None else {}
    may_log = settings is None and not problem.is_scaled and _is_skewed(problem.splits)
    if may_log:
        notes.append("The target is positive and skewed: half the recipes fit its logarithm.")
    config = _configure(problem, names, count, seed, search)
    if settings is None:
        recipes = _draw_recipes(problem, max(FEWEST_RECIPES, RECIPES_PER_TRIAL * count), seed)
        for name in names:
            tried = enumerate(draw_settings(name, count, seed=seed, rows=config.train_rows))
            # Until each split has chosen its own, the first recipes stand in.
            own[name] = [replace(recipes[n % len(recipes)], method_settings=v) for n, v in tried]
    config = replace(
        config,
        recipes=len(recipes),
        recipe=_recipe_key(recipes or [known for tried in own.values() for known in tried]),
    )
    if not baselines:
        config = replace(config, baselines=())
    return Plan(config, problem, plan_runs(config, recipes, own, may_log=may_log), notes)


def plan_runs(
    config: StudyConfig,
    recipes: Sequence[Settings],
    tried: Mapping[str, Sequence[Settings]],
    *,
    may_log: bool = False,
) -> list[Run]:
    """Return all runs of a study: the baselines, the recipes, the first trial of every method ...

    With ``may_log`` every other recipe fits the logarithm of the target, and baselines try both.
    """
    splits, problem = range(config.splits), config.problem
    tried_baselines = [
        # The mean of logarithms is another mean, and no better one.
        (name, trial, trial == 1)
        for name in config.baselines
        for trial in ((0, 1) if may_log and name in PREDICTORS and name != "mean" else (None,))
    ]
    runs = [
        Run(problem, name, split, config.seed, trial=trial, log=log)
        for name, trial, log in tried_baselines
        for split in splits
    ]
    for number, recipe in enumerate(recipes):
        log = may_log and number % 2 == 1
        for split in splits:
            # Shorter than that of a method: no seed of a stage is one of the other.
            seed = _random.derive(Stream.RUNS, config.seed, split, number)
            runs.append(Run(problem, REFERENCE, split, seed, recipe, number, log, "recipe"))
    for number in range(config.trials):
        for method, settings in tried.items():
            own = zlib.crc32(method.encode())
            for split in splits:
                seed = _random.derive(Stream.RUNS, config.seed, own, split, number)
                run = Run(problem, method, split, seed, settings[number], number)
                runs.append(replace(run, stage="method"))
    return runs


def _draw_recipes(problem: Problem, count: int, seed: int) -> list[Settings]:
    rows = len(problem.splits[0].train)
    recipes = draw_recipes(count, seed=seed, rows=rows, metric=problem.metric)
    if problem.is_stacked:
        return [replace(own, halve=True) for own in recipes]
    return [Settings(**{name: getattr(own, name) for name in _ANY_NETWORK}) for own in recipes]


def _recipe_key(settings: Sequence[Settings]) -> str:
    return run_key({"recipes": [own.to_dict() for own in settings]})[:8]


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
        hidden=tuple(problem.hidden) if problem.is_stacked else (),
        rows=sum(sizes[0]),
        train_rows=min(train for train, _, _ in sizes),
        columns=prod(first.train.x.shape[1:]),
        target_names=tuple(problem.targets) or default_names(first.train.y.shape[1]),
        checksum=problem.checksum(),
        network=problem.network_key(),
    )


def _is_skewed(splits: Sequence[Split]) -> bool:
    """Tell whether all targets are positive and those to train on strongly skewed."""
    if isinstance(splits[0], StandardizedSplit):  # its scale is given, without a logarithm
        return False
    if any(bool((part.y <= 0).any()) for split in splits for part in split.parts.values()):
        return False
    return is_skewed(splits[0].train.y)
