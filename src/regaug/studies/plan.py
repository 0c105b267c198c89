"""What a study is going to do: its configuration and its runs."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from regaug import _random, methods
from regaug._checks import check_integer
from regaug._random import Stream
from regaug.data.base import Split
from regaug.data.scaling import StandardizedSplit, is_skewed
from regaug.ensemble.prepared import default_names
from regaug.exceptions import ArgumentError
from regaug.methods import MAKERS, NO_ROWS, ROWS
from regaug.metrics import METRICS, MetricName, Mode, logged_metric
from regaug.problems import Cost, Problem
from regaug.runs.run import Run, run_key
from regaug.runs.threads import one_thread
from regaug.studies.config import REFERENCE, Search, StudyConfig
from regaug.studies.limits import describe_groups, leave_out_by_mask
from regaug.studies.rehearsal import leave_out_by_place, rehearse
from regaug.studies.search import draw_settings
from regaug.training.baselines import PREDICTORS, baseline_names
from regaug.training.estimators import check_estimator
from regaug.training.logged import LoggedTraining
from regaug.training.recipe import draw_recipes
from regaug.training.settings import Settings

QUICK_METHODS = (REFERENCE, "mixup", "c-mixup", "ada", "foma-rho")
# Runs of every method on a split, in the second stage.
TRIALS, QUICK_TRIALS = 6, 3
SPLITS, QUICK_SPLITS = 10, 5
# Recipes of the first stage: so many for each trial of the second one, and not fewer than that.
RECIPES_PER_TRIAL, FEWEST_RECIPES = 2, 6
# New rows for every training row in a usual run of a regressor.
USUAL_SHARE = 0.5
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
    usual = 1 if settings is not None else QUICK_TRIALS if quick else TRIALS
    count = check_integer("trials", usual if trials is None else trials, 1)
    check_integer("seed", seed, 0)
    if (training := problem.lightning) is not None:
        problem = look_at(problem, training)
        count = _check_logged(training, count, trials, search)
    names, left_out = leave_out(problem, _check_methods(methods, quick))
    notes, recipes = [*problem.notes, *describe_groups(problem), *left_out], []
    own = {name: [settings[name]] for name in names} if settings is not None else {}
    is_net = problem.kind != "estimator"
    may_log = settings is None and is_net and not problem.is_scaled and _is_skewed(problem.splits)
    if may_log:
        notes.append("The target is positive and skewed: half the recipes fit its logarithm.")
    config = _configure(problem, names, count, seed, search)
    if not is_net:
        problem = _with_cost(problem)
        own = own or _draw_makers(config, names)
    elif settings is None and training is not None:
        own = {name: _draw_logged(training, name, config) for name in names}
    elif settings is None:
        recipes = _draw_recipes(problem, max(FEWEST_RECIPES, RECIPES_PER_TRIAL * count), seed)
        for name in names:
            rows, reach = config.train_rows, config.reach
            tried = enumerate(draw_settings(name, count, seed=seed, rows=rows, reach=reach))
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


def look_at(problem: Problem, training: LoggedTraining) -> Problem:
    """Return the problem of somebody else's training with what a look at it has shown."""
    facts = training.facts
    mode: Mode = "max" if METRICS[problem.metric].higher_is_better else "min"
    return replace(
        problem,
        metric=cast(MetricName, logged_metric(facts.judged_by, mode)),
        cost=Cost(facts.step_seconds),
        notes=[*problem.notes, *facts.notes],
    )


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


def leave_out(problem: Problem, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods that can act on a problem, and a sentence for those that cannot.

    For a regressor these are the methods that make rows; what the others are compared with is no
    new rows, and rows from elsewhere stand beside, if there are any.
    """
    if problem.lightning is not None:
        return _leave_out_logged(problem.lightning, names)
    if problem.kind != "estimator":
        by_mask, sentences = leave_out_by_mask(problem, names)
        by_place, more = leave_out_by_place(problem, by_mask)
        return by_place, [*sentences, *more]
    if ROWS in names and not problem.rows:
        raise ArgumentError(
            "`methods` must not have 'rows' without such rows, got none. Give them as `rows`."
        )
    others = [name for name in names if name not in (REFERENCE, NO_ROWS, ROWS)]
    lacking = [
        name for name in others if name not in MAKERS and methods.get(name).as_maker() is None
    ]
    makers = [name for name in others if name not in lacking]
    wanted = (NO_ROWS, *makers, *([ROWS] if problem.rows else []))
    if lacking and len(wanted) == 1:
        raise ArgumentError(
            f"`methods` must make new rows for a regressor, got {', '.join(lacking)}, which can "
            "make none. Choose others, such as 'mixup' or 'cems'."
        )
    said = f"Left out, as no rows of a table can be made that way: {', '.join(lacking)}."
    return wanted, [said] if lacking else []


def _leave_out_logged(
    training: LoggedTraining, names: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    kept, sentences = training.leave_out(names)
    if len(names) > 1 and len(kept) == 1:
        raise ArgumentError(
            f"`methods` must have one that can act on the module, got none. {' '.join(sentences)}"
        )
    return kept, sentences


def _baselines(problem: Problem) -> tuple[str, ...]:
    """Return what stands beside: nothing where the rows are not ours to know."""
    if problem.kind == "lightning":
        return ()
    # A regressor that is one of them is there anyway, without new rows.
    return tuple(name for name in baseline_names(problem.splits[0]) if name != problem.model)


def _with_cost(problem: Problem) -> Problem:
    """Check a regressor on some rows; return the problem with what a run takes."""
    first = problem.splits[0]
    with one_thread():  # as every run
        seconds = check_estimator(problem.make_regressor(first, 0), first)
    return replace(problem, cost=Cost(0.0, (1.0 + USUAL_SHARE) * seconds))


def _draw_makers(config: StudyConfig, names: Sequence[str]) -> dict[str, list[Settings]]:
    """Return what is tried of the methods that make rows for a regressor."""
    # An epoch stands for a fit.
    plain = Settings(epochs=1, metric=config.metric)
    options: dict[str, Any] = {"seed": config.seed, "rows": config.train_rows, "kind": config.kind}
    return {
        name: [
            replace(plain, method_settings=own)
            for own in draw_settings(name, config.trials, **options)
        ]
        for name in names
    }


def _draw_recipes(problem: Problem, count: int, seed: int) -> list[Settings]:
    rows = len(problem.splits[0].train)
    recipes = draw_recipes(count, seed=seed, rows=rows, metric=problem.metric)
    if problem.is_stacked:
        return [replace(own, halve=True) for own in recipes]
    return [Settings(**{name: getattr(own, name) for name in _ANY_NETWORK}) for own in recipes]


def _draw_logged(training: LoggedTraining, name: str, config: StudyConfig) -> list[Settings]:
    """Draw the settings of a method for a training whose recipe is the user's own."""
    drawn = draw_settings(name, config.trials, seed=config.seed, rows=config.train_rows)
    usual = Settings(epochs=training.epochs, batch_size=training.facts.batch_size)
    return [replace(usual, method_settings=training.adapt(own)) for own in drawn]


def _check_logged(training: LoggedTraining, count: int, trials: int | None, search: Search) -> int:
    """Return how many settings of a method are tried with a training that is the user's own."""
    if search != "random":
        raise ArgumentError(
            f"`search` must be 'random' for a Lightning module, got {search!r}: its settings are "
            "drawn with regard to where the module lets a method act."
        )
    if training.facts.has_test:
        return count
    if trials not in (None, 1):
        raise ArgumentError(
            f"`trials` must be 1 where no test rows judge what was chosen, got {trials}: the best "
            "of several settings on the validation rows would look better than it is. Give the "
            "data module a test_dataloader, or leave `trials` out."
        )
    return 1


def _recipe_key(settings: Sequence[Settings]) -> str:
    return run_key({"recipes": [own.to_dict() for own in settings]})[:8]


def _check_methods(names: Sequence[str] | None, quick: bool) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(names or (QUICK_METHODS if quick else methods.names())))
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
        baselines=_baselines(problem),
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
    )


def _is_skewed(splits: Sequence[Split]) -> bool:
    """Tell whether all targets are positive and those to train on strongly skewed."""
    if isinstance(splits[0], StandardizedSplit):  # its scale is given, without a logarithm
        return False
    if any(bool((part.y <= 0).any()) for split in splits for part in split.parts.values()):
        return False
    return is_skewed(splits[0].train.y)
