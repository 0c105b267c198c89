"""What a study is going to do: its configuration and its runs."""

import time as clock
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from regaug import _random, methods
from regaug._checks import check_integer
from regaug._random import Stream
from regaug.data.scaling import StandardizedSplit, is_skewed
from regaug.ensemble.prepared import default_names
from regaug.methods import MAKERS, NO_ROWS
from regaug.problems import Problem
from regaug.runs.run import Run, run_key
from regaug.studies.budget import Asked, Budget, Extent
from regaug.studies.config import REFERENCE, Search, StudyConfig
from regaug.studies.eligibility import find_baselines, leave_out
from regaug.studies.ladder import choose_budget, measure_paces
from regaug.studies.limits import describe_groups
from regaug.studies.logged import check_logged, draw_logged, look_at
from regaug.studies.makers import draw_makers, with_cost
from regaug.studies.rehearsal import rehearse
from regaug.studies.search import draw_settings
from regaug.training.baselines import PREDICTORS
from regaug.training.recipe import draw_network_recipes, draw_recipes, network_epochs
from regaug.training.settings import Settings

QUICK_METHODS = (REFERENCE, "mixup", "c-mixup", "ada", "foma-rho")
# Runs of every method on a split, in the second stage.
TRIALS, QUICK_TRIALS = 6, 3
SPLITS, QUICK_SPLITS = 10, 5
# Recipes of the first stage: so many for each trial of the second one, and not fewer than that.
RECIPES_PER_TRIAL, FEWEST_RECIPES = 2, 6
_LOGARITHM = "The target is positive and skewed: half the recipes fit its logarithm."


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
        budget: How large it is, for a network of one's own; None for tables.
    """

    config: StudyConfig
    problem: Problem
    runs: Sequence[Run]
    notes: Sequence[str]
    budget: Budget | None = None


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
    :func:`regaug.compare`. Of a network of one's own nothing is measured: see
    :func:`measure_budget` and :func:`make_network_plan`.
    """
    if (training := problem.lightning) is not None:
        problem = look_at(problem, training)
    names, left_out = _check_methods(methods, quick), list[str]()
    if settings is None or problem.kind == "estimator":
        names, left_out = leave_out(problem, names)
    if settings is None and problem.kind == "network":
        asked = Asked(None if methods is None else names, trials, quick=quick)
        budget = choose_budget(asked, names, Extent.of(problem))
        budget = replace(budget, notes=(*budget.notes, *left_out))
        return make_network_plan(problem, budget, seed=seed, search=search)
    usual = 1 if settings is not None else QUICK_TRIALS if quick else TRIALS
    count = check_integer("trials", usual if trials is None else trials, 1)
    check_integer("seed", seed, 0)
    if training is not None:
        count = check_logged(training, count, trials, search)
    notes, recipes = [*problem.notes, *describe_groups(problem), *left_out], []
    own = {name: [settings[name]] for name in names} if settings is not None else {}
    may_log = settings is None and problem.kind == "table" and _may_log(problem)
    if may_log:
        notes.append(_LOGARITHM)
    config = _configure(problem, names, count, seed, search)
    if problem.kind == "estimator":
        problem = with_cost(problem)
        own = own or draw_makers(config, problem)
    elif settings is None and training is not None:
        own = draw_logged(training, config)
        config = replace(config, repeats=1 if training.varies else config.splits)
    elif settings is None:
        recipes = _draw_recipes(problem, max(FEWEST_RECIPES, RECIPES_PER_TRIAL * count), seed)
        own = _draw_trials(config, recipes)
    config = replace(
        config,
        recipes=len(recipes),
        recipe=_recipe_key(recipes or [known for tried in own.values() for known in tried]),
    )
    if not baselines:
        config = replace(config, baselines=())
    return Plan(config, problem, plan_runs(config, recipes, own, may_log=may_log), notes)


def measure_budget(problem: Problem, asked: Asked, *, seed: int = 0, jobs: int = 1) -> Budget:
    """Find out how large the study of a network is to be: a short warm-up, then a plan that fits.

    Args:
        problem: What is to be learned, with a network of one's own.
        asked: What somebody wants.
        seed: Decides the steps that are measured.
        jobs: Workers.
    """
    names, left_out = leave_out(problem, _check_methods(asked.methods, asked.quick))
    extent, clocks = Extent.of(problem), (clock.perf_counter(), clock.process_time())
    paces = measure_paces(problem, names, seed=seed)
    # What others do on the machine is part of the paces; baselines are no quicker.
    wall, own = clock.perf_counter() - clocks[0], clock.process_time() - clocks[1]
    extent = extent.slowed(max(1.0, wall / max(own, 1e-3)))
    budget = choose_budget(asked, names, extent, paces, fewer=QUICK_METHODS, jobs=jobs, spent=wall)
    return replace(budget, notes=(*budget.notes, *left_out))


def make_network_plan(
    problem: Problem, budget: Budget, *, seed: int = 0, search: Search = "random"
) -> Plan:
    """Decide everything that a study of a network will do, by its budget.

    A problem with a single split is repeated with other seeds.
    """
    check_integer("seed", seed, 0)
    if budget.rows is not None:
        problem = problem.subsample(budget.rows, seed=seed)
    problem = problem.with_splits(budget.splits)
    config = replace(
        _configure(problem, budget.methods, budget.trials, seed, search),
        baselines=budget.baselines,
        recipes=budget.recipes,
        repeats=budget.splits if problem.is_repeated else 1,
        epochs=budget.epochs,
        fair=budget.fair,
        rungs=budget.rungs,
    )
    rows, number = len(problem.splits[0].train), max(1, budget.recipes)
    recipes = draw_network_recipes(
        number, seed=seed, rows=rows, epochs=budget.longest, metric=problem.metric
    )
    notes = [*problem.notes, *describe_groups(problem)]
    may_log = budget.recipes > 1 and _may_log(problem)
    if may_log:
        notes.append(_LOGARITHM)
    tried = _draw_trials(config, recipes)
    config = replace(config, recipe=_recipe_key(recipes))
    runs = plan_runs(config, recipes if budget.recipes else [], tried, may_log=may_log)
    # Split by split: what is finished when the time is over is worth something then.
    later = [run for run in runs if run.stage == "method"]
    later.sort(key=lambda run: (run.trial, run.split))
    runs = [*(run for run in runs if run.stage != "method"), *later]
    return Plan(config, problem, runs, [*notes, *budget.notes], budget)


def _draw_trials(config: StudyConfig, recipes: Sequence[Settings]) -> dict[str, list[Settings]]:
    """Return the settings of every method's trials.

    Until each split has chosen its own, the first recipes stand in.
    """
    own = {}
    lengths = dict(zip(config.methods, config.epochs, strict=False))
    for name in config.methods:
        tried = draw_settings(
            name,
            config.trials,
            seed=config.seed,
            rows=config.train_rows,
            reach=config.reach,
            beside=config.beside,
        )
        like = [recipes[number % len(recipes)] for number in range(config.trials)]
        own[name] = [
            replace(recipe, method_settings=v, epochs=lengths.get(name, recipe.epochs))
            for recipe, v in zip(like, tried, strict=True)
        ]
    return own


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
    rows, metric = len(problem.splits[0].train), problem.metric
    if problem.is_stacked:
        recipes = draw_recipes(count, seed=seed, rows=rows, metric=metric)
        return [replace(own, halve=True) for own in recipes]
    # The net for tables by itself, as some of its rows must not be mixed.
    epochs = network_epochs(rows)
    return draw_network_recipes(count, seed=seed, rows=rows, epochs=epochs, metric=metric)


def _recipe_key(settings: Sequence[Settings]) -> str:
    return run_key({"recipes": [own.to_dict() for own in settings]})[:8]


def _check_methods(names: Sequence[str] | None, quick: bool) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(names or (QUICK_METHODS if quick else methods.usual())))
    for name in wanted:
        if name not in MAKERS:
            methods.get(name)
    return wanted if REFERENCE in wanted else (REFERENCE, *wanted)


def _configure(
    problem: Problem, names: tuple[str, ...], trials: int, seed: int, search: Search
) -> StudyConfig:
    splits, first, found = problem.splits, problem.splits[0], rehearse(problem)
    sizes = [(len(own.train), len(own.validation), len(own.test)) for own in splits]
    return StudyConfig(
        problem=problem.name,
        methods=names,
        baselines=find_baselines(problem),
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
        target_names=tuple(problem.target_names) or default_names(first.train.y.shape[1]),
        places=found.places,
        pairs_pass=found.reach.pairs,
        checksum=problem.checksum(),
        reference=NO_ROWS if problem.kind == "estimator" else REFERENCE,
        kind=problem.kind,
        model=problem.model_name,
        keep_integers=problem.keep_integers,
        network=problem.network_key(),
        categories=first.has_categories,
    )


def _may_log(problem: Problem) -> bool:
    """Tell whether all targets are positive and those to train on strongly skewed."""
    splits = problem.splits[:1] if problem.is_repeated else problem.splits
    # Those that have a scale have one without a logarithm.
    if problem.is_scaled or isinstance(splits[0], StandardizedSplit):
        return False
    if any(bool((part.y <= 0).any()) for split in splits for part in split.parts.values()):
        return False
    return is_skewed(splits[0].train.y)
