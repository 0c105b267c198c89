"""How large a study of a network can be in the time there is.

A net of one's own takes a second or an hour, so a few steps with every method are measured first.
Then splits, recipes, trials and epochs are chosen: a study with few splits has no verdict, one with
short trainings a useless one, so these grow by turns, and what costs more than it helps comes last.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from regaug.formatting import count, duration, short_time
from regaug.methods import teachers_of
from regaug.problems import Problem
from regaug.runs.threads import one_thread
from regaug.studies.budget import Asked, Budget, Extent
from regaug.studies.config import REFERENCE
from regaug.studies.names import listed
from regaug.studies.rehearsal import rehearse
from regaug.studies.search import suit
from regaug.training.pace import Pace, measure_pace
from regaug.training.recipe import draw_network_recipes, network_epochs

# The share of the time that is planned: paces are measured while a machine may be quiet.
MARGIN = 0.85
# Splits, trials, recipes and the share of the full number of epochs, from the least to the most.
LADDER = (
    (3, 1, 1, 1 / 6),
    (3, 1, 1, 1 / 3),
    (4, 1, 2, 1 / 3),
    (5, 1, 2, 1 / 2),
    (5, 1, 4, 1 / 2),
    (5, 1, 4, 1.0),
    (6, 2, 4, 1.0),
    (8, 2, 4, 1.0),
    (10, 2, 6, 1.0),
    (10, 3, 6, 1.0),
    (10, 4, 8, 1.0),
    (10, 6, 12, 1.0),
)
# The same without a limit of time, for several splits; a single one is repeated so often.
USUAL, QUICK, REPEATS = (10, 2, 4, 1.0), (3, 1, 2, 0.5), 5
_FEWEST_EPOCHS, _FEWEST_ROWS = 5, 600
# Baselines that hardly take time, and the share of it that the others may take.
_CHEAP, _BESIDE = ("mean", "last-value", "ridge"), 0.1
_LONG = 3600.0


def measure_paces(problem: Problem, methods: Sequence[str], *, seed: int = 0) -> dict[str, Pace]:
    """Measure how long trainings with every method take: a few steps of each, in one thread."""
    split, known = problem.split(0), rehearse(problem)
    usual = draw_network_recipes(1, seed=seed, rows=len(split.train), epochs=1)[0]
    usual = replace(usual, metric=problem.metric)
    paces = {}
    with one_thread():
        for name in methods:
            make = lambda: problem.make_net(split, seed)  # noqa: E731
            own = suit(name, len(split.train), known.reach).settings()
            paces[name] = measure_pace(make, split, name, replace(usual, method_settings=own))
    return paces


def choose_budget(
    asked: Asked,
    methods: Sequence[str],
    extent: Extent,
    paces: Mapping[str, Pace] | None = None,
    *,
    fewer: Sequence[str] = (),
    jobs: int = 1,
    spent: float = 0.0,
) -> Budget:
    """Choose how large a study is.

    Args:
        asked: What somebody wants.
        methods: The methods to compare.
        extent: What the problem allows.
        paces: How long trainings take; without them there is nothing to fit.
        fewer: The methods to compare if there is no time for all of them.
        jobs: Workers.
        spent: Seconds that are over already, because something was measured.

    Returns:
        The largest study that fits into ``asked.max_minutes``, the usual one without that.
    """
    usual = QUICK if asked.quick else USUAL
    if asked.max_minutes is None or not paces:
        size = usual if extent.splits > 1 else (min(usual[0], REPEATS), *usual[1:])
        budget = _make(asked, methods, extent, size, paces or {})
        return _tell(budget, methods, asked, extent, jobs)
    shares = [1.0]
    while extent.rows * shares[-1] / 2 >= _FEWEST_ROWS:
        shares.append(shares[-1] / 2)
    some = tuple(name for name in methods if name in fewer)
    tries = [(tuple(methods), 1.0)]
    if some and len(some) < len(methods) and asked.methods is None:
        tries.append((some, 1.0))
    # If no number of rows is few enough, that is said; the least that has a verdict is done.
    tries += [(tries[-1][0], share) for share in shares[1:]]
    for names, share in tries:
        part = replace(
            extent, rows=int(extent.rows * share), train_rows=int(extent.train_rows * share)
        )
        faster = {name: replace(own, epoch=own.epoch * share) for name, own in paces.items()}
        sizes = LADDER if not asked.quick else LADDER[: LADDER.index((5, 1, 2, 1 / 2)) + 1]
        plans = [_make(asked, names, part, size, faster) for size in sizes]
        limit = MARGIN * (60 * asked.max_minutes - spent)
        fitting = [own for own in plans if own.wall(jobs, _beside(own, part)) <= limit]
        budget = plans[0]
        if fitting:
            budget = fitting[-1]
            if asked.epochs is None:
                budget = _lengthen(budget, part, jobs, limit)
        budget = replace(budget, rows=None if share == 1.0 else part.rows)
        if fitting:
            break
    return _tell(budget, methods, asked, extent, jobs)


def _make(
    asked: Asked,
    methods: Sequence[str],
    extent: Extent,
    size: tuple[int, int, int, float],
    paces: Mapping[str, Pace],
) -> Budget:
    """Return the study of one size, with what was asked for instead where it was."""
    splits, trials, recipes, share = size
    epochs = asked.epochs or max(_FEWEST_EPOCHS, round(network_epochs(extent.train_rows) * share))
    most = splits if extent.splits == 1 else min(splits, extent.splits)
    budget = Budget(
        methods=tuple(methods),
        baselines=tuple(extent.baselines),
        splits=asked.splits or most,
        trials=asked.trials or trials,
        recipes=recipes if recipes > 1 else 0,
        epochs=(epochs,) * len(methods),
        fair=asked.fair,
        paces={name: paces[name] for name in methods if name in paces},
    )
    beside = _beside(budget, extent)
    if asked.max_minutes is not None and paces and beside > _BESIDE * 60 * asked.max_minutes:
        # Who labels rows stands beside the nets that learn from them.
        kept = {*_CHEAP, *(own for name in methods for own in teachers_of(name))}
        few = tuple(name for name in budget.baselines if name in kept)
        budget = replace(budget, baselines=few)
    return _with_epochs(budget, epochs)


def _with_epochs(budget: Budget, epochs: int) -> Budget:
    """Return the study with trainings of so many epochs, fewer where these take longer."""
    own = [epochs] * len(budget.methods)
    if budget.fair == "time" and budget.paces:
        plain = budget.paces[REFERENCE].epoch
        ratios = [plain / max(budget.paces[name].epoch, 1e-9) for name in budget.methods]
        own = [min(epochs, max(1, round(epochs * ratio))) for ratio in ratios]
        own[budget.methods.index(REFERENCE)] = epochs
    return replace(budget, epochs=tuple(own))


def _lengthen(budget: Budget, extent: Extent, jobs: int, limit: float) -> Budget:
    """Spend the time that is left on longer trainings, up to the full length."""
    full, beside = network_epochs(extent.train_rows), _beside(budget, extent)
    longer = (_with_epochs(budget, epochs) for epochs in range(full, budget.longest, -1))
    return next((own for own in longer if own.wall(jobs, beside) <= limit), budget)


def _beside(budget: Budget, extent: Extent) -> float:
    """Return what the baselines take; they do not differ between repetitions."""
    times = budget.splits if extent.splits > 1 else 1
    return times * sum(extent.baselines[name] for name in budget.baselines)


def _tell(
    budget: Budget, methods: Sequence[str], asked: Asked, extent: Extent, jobs: int
) -> Budget:
    """Add what a reader should know of the plan."""
    notes = [_say_size(budget, extent), _say_fairness(budget)]
    if budget.rungs:
        after = listed([str(rung) for rung in budget.rungs])
        notes.append(f"After {after} epochs the worse half of the recipes ends.")
    if budget.paces:
        notes.append(_say_paces(budget))
        wall = budget.wall(jobs, _beside(budget, extent))
        if asked.max_minutes is None:
            more = " Give max_minutes to have it planned for less." if wall > _LONG else ""
            notes.append(f"That takes about {duration(wall)}.{more}")
        else:
            notes += _say_limit(budget, asked, wall)
            notes += _say_left_out(budget, methods, extent)
    return replace(budget, notes=tuple(notes))


def _say_size(budget: Budget, extent: Extent) -> str:
    splits = count(budget.splits, "split")
    if extent.splits == 1 and budget.splits > 1:
        splits = f"{count(budget.splits, 'repetition')} of the one split, with other seeds"
    recipes = f"{count(budget.recipes, 'recipe')}, then " if budget.recipes else ""
    ends = dict.fromkeys((min(budget.epochs), max(budget.epochs)))
    tried = f"{count(budget.trials, 'setting')} of each of {count(len(budget.methods), 'method')}"
    length = f"{' to '.join(map(str, ends))} epochs"
    return (
        f"Plan: {splits}; on each {recipes}{tried}, {length}: "
        f"{count(budget.trainings, 'training')} in all."
    )


def _say_fairness(budget: Budget) -> str:
    if budget.fair == "epochs":
        return "Every method gets the same number of epochs."
    own = ", ".join(f"{name} {n}" for name, n in zip(budget.methods, budget.epochs, strict=True))
    return f"Every method gets the same time, slower ones fewer epochs: {own}."


def _say_paces(budget: Budget) -> str:
    slowest = max(budget.methods, key=lambda name: budget.paces[name].step)
    plain, most = budget.paces[REFERENCE].step, budget.paces[slowest].step
    other = f", of {slowest} {short_time(most)}" if most > plain else ""
    return f"Measured: a step of plain training takes {short_time(plain)}{other}."


def _say_limit(budget: Budget, asked: Asked, wall: float) -> list[str]:
    minutes = f"{asked.max_minutes:g} minutes"
    if wall <= 60 * (asked.max_minutes or math.inf):
        return [f"Planned for {minutes}: it takes about {duration(wall)}."]
    return [
        f"Even this small study takes about {duration(wall)}, and {minutes} were given: what is "
        "finished by then may be too little for a verdict. The same command continues it."
    ]


def _say_left_out(budget: Budget, methods: Sequence[str], extent: Extent) -> list[str]:
    said = []
    left = [name for name in methods if name not in budget.methods]
    left += [f"{name} (baseline)" for name in extent.baselines if name not in budget.baselines]
    if left:
        said.append(f"There is no time for {listed(left, most=9)}.")
    if budget.rows is not None:
        said.append(f"The study looks at {budget.rows:,} of the {extent.rows:,} rows.")
    return said
