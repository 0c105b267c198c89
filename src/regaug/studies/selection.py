"""Which runs count: per method and split one, chosen by the split's own validation rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from regaug.exceptions import StoreError
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig


@dataclass(frozen=True, eq=False)
class Selection:
    """What a study has chosen.

    Attributes:
        chosen: For every method and baseline the record that counts on each split.
        best: For every method the run whose settings have the best validation errors over all
            splits: what to train with next. (A split's test error is that of its own choice.)
        trials: How many settings of every method were compared.
    """

    chosen: Mapping[str, Sequence[RunRecord]]
    best: Mapping[str, Run]
    trials: int


def select(config: StudyConfig, records: Sequence[RunRecord]) -> Selection:
    """Choose among the records of a study.

    Every method must be judged by the same number of settings on the same splits: a trial counts if
    all methods have finished it on all splits.
    """
    splits = range(config.splits)
    found = {(own.run.method, own.run.trial, own.run.split): own for own in records}
    trials = [
        trial
        for trial in range(config.trials)
        if all((method, trial, split) in found for method in config.methods for split in splits)
    ]
    if not trials:
        raise StoreError(
            "The study has no setting yet that was tried with every method on every split. "
            "Run the same command again to continue it."
        )
    chosen: dict[str, Sequence[RunRecord]] = {}
    best: dict[str, Run] = {}
    for method in config.methods:
        own = [[found[method, trial, split] for trial in trials] for split in splits]
        chosen[method] = [choose(tried, config.metric) for tried in own]
        ranks = mean_ranks(
            [[one.validation_error(config.metric) for one in tried] for tried in own]
        )
        best[method] = own[0][int(np.argmin(ranks))].run
    for name in config.baselines:
        if all((name, None, split) in found for split in splits):
            chosen[name] = [found[name, None, split] for split in splits]
    return Selection(chosen, best, len(trials))


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
