"""What a study has found, read from its store."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from regaug.exceptions import StoreError
from regaug.metrics import METRICS
from regaug.runs.store import Store, StoredRun
from regaug.studies.statistics import Comparison, analyze
from regaug.studies.verdict import Verdict, make_verdict


@dataclass(frozen=True, eq=False)
class Study:
    """A comparison of methods on one data set.

    Attributes:
        configuration: What was asked for.
        chosen: For every method the run that each split has chosen, by its validation error.
        trials: How many settings of every method were compared.
        settings: For every method the settings with the best validation error over all splits: what
            to train with next. (A split's test error is that of its own choice.)
        comparison: The statistics of the chosen runs' test errors.
        verdict: What they mean, in words.
    """

    configuration: Mapping[str, Any]
    chosen: Mapping[str, Sequence[StoredRun]]
    trials: int
    settings: Mapping[str, Mapping[str, Any]]
    comparison: Comparison
    verdict: Verdict

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read a study from its store, as far as it has come."""
        store = Store.open(folder)
        return cls.read(store.configuration, list(store.results().values()))

    @classmethod
    def read(cls, configuration: Mapping[str, Any], runs: Sequence[StoredRun]) -> Self:
        """Make the study of some finished runs.

        Every method must be judged by the same number of settings on the same splits: a trial
        counts if all methods have finished it on all splits.
        """
        from scipy.stats import rankdata

        methods, splits = configuration["methods"], range(configuration["splits"])
        metric = configuration["metric"]
        found = {(run.run["method"], run.run.get("trial"), run.run["split"]): run for run in runs}
        trials = [
            trial
            for trial in range(configuration["trials"])
            if all((method, trial, split) in found for method in methods for split in splits)
        ]
        if not trials:
            raise StoreError(
                "The study has no setting yet that was tried with every method on every split. "
                "Run the same command again to continue it."
            )
        sign = METRICS[metric].sign

        def error(run: StoredRun) -> float:
            value = run.result["scores"]["validation"][metric]
            return math.inf if value is None else sign * float(value)

        chosen: dict[str, list[StoredRun]] = {}
        settings: dict[str, Mapping[str, Any]] = {}
        for method in methods:
            own = [[found[method, trial, split] for trial in trials] for split in splits]
            chosen[method] = [min(on_split, key=error) for on_split in own]
            # Ranks, because a split with large errors would decide alone otherwise.
            ranks = np.array([rankdata([error(run) for run in on_split]) for on_split in own])
            settings[method] = own[0][int(ranks.mean(axis=0).argmin())].run
        baselines = [
            name
            for name in configuration["baselines"]
            if all((name, None, split) in found for split in splits)
        ]
        chosen |= {name: [found[name, None, split] for split in splits] for name in baselines}
        comparison = analyze(
            {name: [_test_error(run, metric) for run in own] for name, own in chosen.items()},
            metric=metric,
            reference=configuration["reference"],
            baselines=baselines,
            test_share=configuration["test_share"],
            independent=configuration["independent"],
        )
        verdict = make_verdict(comparison)
        return cls(configuration, chosen, len(trials), settings, comparison, verdict)


def _test_error(run: StoredRun, metric: str) -> float:
    value = run.result["scores"]["test"][metric]
    return math.nan if value is None else float(value)
