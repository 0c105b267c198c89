"""Which runs count, and which of them a split's own validation rows choose."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regaug.exceptions import StoreError
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import REFERENCE, StudyConfig

Place = tuple[str, int | None, int]
# Of a study that has run out of time; one says what it has seen, and that nothing is sure.
FEWEST_SPLITS = 1


@dataclass(frozen=True, eq=False)
class Selection:
    """What counts of a study, and what was chosen.

    Attributes:
        chosen: For every method the single run that each split's validation rows have chosen; for
            every baseline its record on each split, the better one if it has tried two.
        best: For every method the run to train like: the recipe and the method's settings that
            have the best validation errors over all splits. (What a method is worth on a split
            comes from this split's own choice.)
        trials: How many settings of every method were compared.
        tried: For every method the records that count, by split.
        recipes: The records of the first stage by split, in the order of the recipes; empty if
            there was none.
    """

    chosen: Mapping[str, Sequence[RunRecord]]
    best: Mapping[str, Run]
    trials: int
    tried: Mapping[str, Sequence[Sequence[RunRecord]]]
    recipes: Sequence[Sequence[RunRecord]] = ()


def select(config: StudyConfig, records: Sequence[RunRecord]) -> Selection:
    """Choose among the records of a study.

    Every method must be judged by the same number of settings on the same splits: a trial counts if
    all methods have finished it on all splits.
    """
    splits = range(config.splits)
    firsts = {
        _place(own): own
        for own in sorted(records, key=lambda own: reach(own.run))  # the furthest comes last
        if own.run.stage == "recipe"
    }
    found = {_place(own): own for own in records if own.run.stage != "recipe"}
    trials = [
        trial
        for trial in range(config.trials)
        if all((method, trial, split) in found for method in config.methods for split in splits)
    ]
    numbers = [(number, split) for split in splits for number in range(config.recipes)]
    if not trials or any((REFERENCE, *place) not in firsts for place in numbers):
        raise StoreError(
            "The study has no setting yet that was tried with every method on every split. "
            "Run the same command again to continue it."
        )
    recipes = [
        [firsts[REFERENCE, number, split] for number in range(config.recipes)]
        for split in splits
        if config.recipes
    ]
    tried = {
        method: [[found[method, trial, split] for trial in trials] for split in splits]
        for method in config.methods
    }
    chosen = {name: [choose(runs, config.metric) for runs in own] for name, own in tried.items()}
    for name in config.baselines:
        # With a skewed target the first is fitted to it, the second to its logarithm.
        own = [[found.get((name, trial, i)) for trial in (None, 0, 1)] for i in splits]
        known = [[record for record in tries if record is not None] for tries in own]
        if all(known):
            chosen[name] = [choose(tries, config.metric) for tries in known]
    recipe = _best(recipes, config.metric) if recipes else None
    best = {name: _like(_best(own, config.metric), recipe) for name, own in tried.items()}
    return Selection(chosen, best, len(trials), tried, recipes)


def finished_splits(config: StudyConfig, records: Sequence[RunRecord]) -> int | None:
    """Return how many of the first splits count if not one setting is finished on all of them.

    Runs of a network are done split by split, so that a study that has run out of time can be
    judged by the splits that are finished; None if that is not necessary, or not enough.
    """
    if not config.epochs:
        return None
    known = {(own.run.stage, *_place(own)) for own in records}

    def is_finished(split: int) -> bool:
        recipes = {("recipe", REFERENCE, number, split) for number in range(config.recipes)}
        return recipes | {("method", name, 0, split) for name in config.methods} <= known

    whole = next((n for n in range(config.splits) if not is_finished(n)), config.splits)
    return whole if FEWEST_SPLITS <= whole < config.splits else None


def choose(tried: Sequence[RunRecord], metric: str) -> RunRecord:
    """Return the record with the best validation error; of equal ones the first."""
    return min(tried, key=lambda record: record.validation_error(metric))


def mean_ranks(errors: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean rank of every setting over the splits, 1 is the best.

    Ranks, because a split with large errors would decide alone otherwise, and an infinite error is
    just the last rank.

    Args:
        errors: Validation errors, lower is better: splits x settings.

    Example:
        >>> mean_ranks([[0.3, 0.2], [50.0, 60.0]])
        [1.5, 1.5]
    """
    from scipy.stats import rankdata

    ranks: list[float] = rankdata(errors, axis=1).mean(axis=0).tolist()
    return ranks


def train_as(run: Run, recipe: Run) -> Run:
    """Return a run that is trained by another one's recipe, with its own method and settings."""
    if run.settings is None or recipe.settings is None:
        return run
    own = run.settings.method_settings
    # How long a training is, is the method's own where all are to take the same time.
    settings = replace(
        recipe.settings, method_settings=own, epochs=run.settings.epochs, stop_after=None
    )
    return replace(run, settings=settings, log=recipe.log)


def reach(run: Run) -> float:
    """Return the epoch at which a run pauses; infinite if it does not."""
    stop = None if run.settings is None else run.settings.stop_after
    return math.inf if stop is None else stop


def _place(record: RunRecord) -> Place:
    return record.run.method, record.run.trial, record.run.split


def _best(tried: Sequence[Sequence[RunRecord]], metric: str) -> Run:
    """Return the run whose place among the tried ones, splits x settings, is the best."""
    ranks = mean_ranks([[one.validation_error(metric) for one in own] for own in tried])
    return tried[0][int(np.argmin(ranks))].run


def _like(run: Run, recipe: Run | None) -> Run:
    """Return a run by the recipe that is best over all splits: its own is that of one split."""
    return run if recipe is None else train_as(run, recipe)
