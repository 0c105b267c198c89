"""The rounds of a study: what runs next depends on the configuration and on what came out before.

First baselines and recipes; then, on every split, all methods at that split's best recipes. The
recipes of a network of one's own are halved: all are trained for a while, the better half goes on.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.selection import reach, train_as
from regaug.studies.tpe import learn_rounds

# Recipes of a split that its methods are trained by, in turn: one may be the best by luck.
BEST_RECIPES = 3
Records = Callable[[], Mapping[str, RunRecord]]


def plan_rounds(
    runs: Sequence[Run], records: Records, *, config: StudyConfig
) -> Iterator[Sequence[Run]]:
    """Give the runs of a study round by round.

    The next round may be asked for when all runs of the one before are among the records. What it
    contains depends on the runs, their records and the seed alone: not on who has done them, in
    which order, or whether somebody was interrupted in between.

    Runs of the second stage keep their method, its settings, number, split and seed, and get a
    recipe; a search that learns changes the settings of the method as well.
    """
    first = [run for run in runs if run.stage != "method"]
    later = [run for run in runs if run.stage == "method"]
    last: list[Run] = []
    if config.epochs:  # where nets take long, what only stands beside them comes last
        last = [run for run in first if run.is_baseline]
        first = [run for run in first if not run.is_baseline]
    if config.recipes:
        yield from _halve(first, records, config=config)
        best = best_recipes(first, records(), config=config)
        later = [train_as(run, _turn(best[run.split], run.trial)) for run in later]
        first = []
    if config.search == "random":
        yield [*first, *later, *last]
        return
    if first:
        yield first
    yield from learn_rounds(later, records, config=config)
    if last:
        yield last


def best_recipes(
    runs: Sequence[Run], found: Mapping[str, RunRecord], *, config: StudyConfig
) -> list[list[Run]]:
    """Return for every split the runs with its best recipes, by its own validation rows.

    Those that were trained further come first. Those that have failed are left out; the first
    recipe is taken where all have.
    """
    best = []
    for split in range(config.splits):
        recipes = [run for run in runs if run.stage == "recipe" and run.split == split]
        own = [_furthest(run, found, config) for run in recipes]
        ranked = sorted(
            own, key=lambda record: (-reach(record.run), record.validation_error(config.metric))
        )
        worked = [one for one in ranked if one.validation_error(config.metric) < float("inf")]
        best.append([record.run for record in (worked or own[:1])[:BEST_RECIPES]])
    return best


def _halve(
    runs: Sequence[Run], records: Records, *, config: StudyConfig
) -> Iterator[Sequence[Run]]:
    """Give baselines and recipes, and let the better half of a split's recipes go on."""
    others = [run for run in runs if run.stage != "recipe"]
    going = [run for run in runs if run.stage == "recipe"]
    for rung in config.rungs:
        yield [*others, *(pause_at(run, rung) for run in going)]
        others, found = [], records()
        errors = [found[pause_at(run, rung).key].validation_error(config.metric) for run in going]
        going = _better_half(going, errors)
    if others or going:
        yield [*others, *going]


def _better_half(runs: Sequence[Run], errors: Sequence[float]) -> list[Run]:
    """Return the better half of every split's recipes, in their order; none that has failed."""
    kept: set[int] = set()
    for split in {run.split for run in runs}:
        own = [place for place, run in enumerate(runs) if run.split == split]
        worked = sorted((n for n in own if errors[n] < math.inf), key=lambda n: errors[n])
        kept |= set(worked[: (len(own) + 1) // 2])
    return [run for place, run in enumerate(runs) if place in kept]


def pause_at(run: Run, epoch: int) -> Run:
    """Return a run that pauses after so many epochs."""
    if run.settings is None:
        return run
    return replace(run, settings=replace(run.settings, stop_after=epoch))


def _furthest(run: Run, found: Mapping[str, RunRecord], config: StudyConfig) -> RunRecord:
    """Return the record of the longest training of a recipe."""
    shorter = (pause_at(run, rung) for rung in reversed(config.rungs))
    return next(found[own.key] for own in (run, *shorter) if own.key in found)


def _turn(recipes: Sequence[Run], trial: int | None) -> Run:
    return recipes[(trial or 0) % len(recipes)]
