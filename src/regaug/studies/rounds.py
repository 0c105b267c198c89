"""The rounds of a study: what runs next depends on the configuration and on what came out before.

First baselines and recipes; then, on every split, all methods at that split's best recipes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.selection import train_as
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
    if config.recipes:
        yield first
        best = best_recipes(first, records(), config=config)
        later = [train_as(run, _turn(best[run.split], run.trial)) for run in later]
        first = []
    if config.search == "random":
        yield [*first, *later]
        return
    if first:
        yield first
    yield from learn_rounds(later, records, config=config)


def best_recipes(
    runs: Sequence[Run], found: Mapping[str, RunRecord], *, config: StudyConfig
) -> list[list[Run]]:
    """Return for every split the runs with its best recipes, by its own validation rows.

    Those that have failed are left out; the first recipe is taken where all have.
    """
    best = []
    for split in range(config.splits):
        own = [found[run.key] for run in runs if run.stage == "recipe" and run.split == split]
        ranked = sorted(own, key=lambda record: record.validation_error(config.metric))
        worked = [one for one in ranked if one.validation_error(config.metric) < float("inf")]
        best.append([record.run for record in (worked or own[:1])[:BEST_RECIPES]])
    return best


def _turn(recipes: Sequence[Run], trial: int | None) -> Run:
    return recipes[(trial or 0) % len(recipes)]
