"""A search that learns: settings are asked for in rounds, each knowing the errors of those before.

The tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), as Optuna has it.
"""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regaug import _random, methods
from regaug.methods import Between, OneOf, Space
from regaug.metrics import METRICS
from regaug.runs.store import StoredRun
from regaug.runs.worker import PlannedRun
from regaug.studies.search import COMMON, Trial

# Trials in a round. The first round is that of the random search: something to learn from.
ROUND = 5


def plan_rounds(
    runs: Sequence[PlannedRun], results: Callable[[], Mapping[str, StoredRun]], *, seed: int
) -> Iterator[list[PlannedRun]]:
    """Give the runs of a study round by round.

    The next round may be asked for when all runs of the one before are among the results. What it
    contains depends on the runs and the seed alone: not on who has done them, in which order, or
    whether somebody was interrupted in between.

    Args:
        runs: The runs of a random search. Those of the first round stay; those after it keep their
            number, split and seed, and get settings that are learned.
        results: Returns the finished runs by key.
        seed: Seed of the study.
    """
    before: list[PlannedRun] = []
    last = max(_number(run) for run in runs)
    for start in range(0, last + 1, ROUND):
        current = [run for run in runs if start <= _number(run) < start + ROUND]
        if start:
            trials = _learn(before, results(), min(ROUND, last + 1 - start), seed)
            current = [replace(run, trial=trials[run.name, _number(run)]) for run in current]
        yield current
        before += [run for run in current if run.trial is not None]


def suggest_trials(
    before: Sequence[Trial], errors: Sequence[Sequence[float]], count: int, *, seed: int
) -> list[Trial]:
    """Suggest trials of a method that may be better than those before.

    The error of a trial is its mean rank over the splits: a split with large errors would decide
    alone otherwise, and an infinite error is just the last rank.

    Args:
        before: Trials of the method that have been run, the first one first.
        errors: Their validation errors on every split, lower is better: trials x splits.
        count: How many to suggest.
        seed: Seed of the study.

    Returns:
        Trials that differ from the first one in what is searched, numbered on from the last. They
        may fit the logarithm of the target if one of those before does.

    Example:
        >>> from regaug.studies.search import draw_trials
        >>> before = draw_trials("mixup", 5, seed=0, epochs=100, patience=10)
        >>> errors = [[0.3, 0.5], [0.2, 0.4], [0.4, 0.6], [0.5, 0.7], [0.6, 0.8]]
        >>> [trial.number for trial in suggest_trials(before, errors, 2, seed=0)]
        [5, 6]
    """
    import optuna
    from scipy.stats import rankdata

    first, start = before[0], len(before)
    space = _space_of(first.method, may_log=any(trial.log for trial in before))
    forms = {name: _distribution(choice) for name, choice in space.items()}
    ranks: NDArray[np.float64] = rankdata(errors, axis=0).mean(axis=1)
    method = zlib.crc32(first.method.encode())
    own_seed = _random.derive(_random.Stream.SEARCH, seed, method, start) % 2**32
    sampler = optuna.samplers.TPESampler(seed=own_seed, n_startup_trials=min(ROUND, start))
    with _quiet():
        study = optuna.create_study(sampler=sampler)
        for trial, rank in zip(before, ranks.tolist(), strict=True):
            study.add_trial(
                optuna.trial.create_trial(
                    value=rank, params=_to_params(trial, space), distributions=forms
                )
            )
        asked = [study.ask(forms).params for _ in range(count)]
    return [
        _to_trial(first, start + i, {name: _value(space[name], p) for name, p in params.items()})
        for i, params in enumerate(asked)
    ]


def _learn(
    before: Sequence[PlannedRun], found: Mapping[str, StoredRun], count: int, seed: int
) -> dict[tuple[str, int], Trial]:
    """Return the trials of the next round by method and number."""
    trials: dict[str, dict[int, Trial]] = {}
    errors: dict[tuple[str, int], list[float]] = {}
    for run in before:
        if run.trial is not None:
            trials.setdefault(run.name, {})[run.trial.number] = run.trial
            errors.setdefault((run.name, run.trial.number), []).append(_error(run, found))
    return {
        (name, trial.number): trial
        for name, own in trials.items()
        for trial in suggest_trials(
            list(own.values()), [errors[name, number] for number in own], count, seed=seed
        )
    }


def _error(run: PlannedRun, found: Mapping[str, StoredRun]) -> float:
    value = found[run.key].result["scores"]["validation"][run.metric]
    error = math.inf if value is None else METRICS[run.metric].sign * float(value)
    return error if math.isfinite(error) else math.inf


def _number(run: PlannedRun) -> int:
    return 0 if run.trial is None else run.trial.number


def _space_of(method: str, *, may_log: bool) -> Space:
    log: Space = {"log": OneOf((False, True))} if may_log else {}
    return {**COMMON, **methods.get(method).space, **log}


def _distribution(choice: Between | OneOf) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if isinstance(choice, OneOf):  # their places, because values may be anything
        return CategoricalDistribution(tuple(range(len(choice.values))))
    return FloatDistribution(choice.low, choice.high, log=choice.log)


def _to_params(trial: Trial, space: Space) -> dict[str, float]:
    """Return a trial as Optuna's parameters."""
    values = {**trial.settings.to_dict(), **trial.settings.method, "log": trial.log}
    return {
        name: choice.values.index(values[name])
        if isinstance(choice, OneOf)
        # Rounding can put a drawn number just outside.
        else min(max(values[name], choice.low), choice.high)
        for name, choice in space.items()
    }


def _value(choice: Between | OneOf, param: float) -> Any:
    return choice.values[int(param)] if isinstance(choice, OneOf) else float(param)


def _to_trial(first: Trial, number: int, values: Mapping[str, Any]) -> Trial:
    common = {name: value for name, value in values.items() if name in COMMON}
    own = {name: value for name, value in values.items() if name not in {*COMMON, "log"}}
    settings = methods.get(first.method).settings(**own)
    return Trial(
        first.method,
        number,
        replace(first.settings, method=settings, **common),
        log=values.get("log", False),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Optuna say warnings only, for a while."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
