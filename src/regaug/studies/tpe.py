"""A search that learns: settings are asked for in rounds, each knowing the errors of those before.

The tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), as Optuna has it.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from regaug import _random, methods
from regaug._random import Stream
from regaug.methods import Between, OneOf, Space
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.search import COMMON, Trial
from regaug.studies.selection import mean_ranks

# Trials in a round. The first round is that of the random search: something to learn from.
ROUND = 5


def plan_rounds(
    runs: Sequence[Run], records: Callable[[], Mapping[str, RunRecord]], *, config: StudyConfig
) -> Iterator[list[Run]]:
    """Give the runs of a study round by round.

    The next round may be asked for when all runs of the one before are among the records. What it
    contains depends on the runs and the seed alone: not on who has done them, in which order, or
    whether somebody was interrupted in between.

    Those of the first round, which a random search has drawn, stay; the others keep their number,
    split and seed, and get settings that are learned.
    """
    before: list[Run] = []
    last = max(run.trial or 0 for run in runs)
    for start in range(0, last + 1, ROUND):
        current = [run for run in runs if start <= (run.trial or 0) < start + ROUND]
        if start:
            trials = _learn(before, records(), min(ROUND, last + 1 - start), config)
            current = [_with_trial(run, trials[run.method, run.trial or 0]) for run in current]
        yield current
        before += [run for run in current if not run.is_baseline]


def suggest_trials(
    before: Sequence[Trial], errors: Sequence[Sequence[float]], count: int, *, seed: int
) -> list[Trial]:
    """Suggest trials of a method that may be better than those before.

    The error of a trial is its mean rank over the splits: a split with large errors would decide
    alone otherwise, and an infinite error is just the last rank.

    ``errors`` are the validation errors of the trials before on every split, lower is better. The
    new ones differ from the first in what is searched, and are numbered on from the last; they may
    fit the logarithm of the target if one of those before does.

    Example:
        >>> from regaug.studies.search import draw_trials
        >>> from regaug.training import Settings
        >>> before = draw_trials("mixup", 5, seed=0, settings=Settings(epochs=100))
        >>> errors = [[0.3, 0.5], [0.2, 0.4], [0.4, 0.6], [0.5, 0.7], [0.6, 0.8]]
        >>> [trial.number for trial in suggest_trials(before, errors, 2, seed=0)]
        [5, 6]
    """
    import optuna

    first, start = before[0], len(before)
    space = _space_of(first.method, may_log=any(trial.log for trial in before))
    forms = {name: _distribution(choice) for name, choice in space.items()}
    ranks = mean_ranks(list(zip(*errors, strict=True)))
    own_seed = _random.derive(Stream.SEARCH, seed, zlib.crc32(first.method.encode()), start) % 2**32
    sampler = optuna.samplers.TPESampler(seed=own_seed, n_startup_trials=min(ROUND, start))
    with _quiet():
        study = optuna.create_study(sampler=sampler)
        for trial, rank in zip(before, ranks, strict=True):
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
    before: Sequence[Run], found: Mapping[str, RunRecord], count: int, config: StudyConfig
) -> dict[tuple[str, int], Trial]:
    """Return the trials of the next round by method and number."""
    trials: dict[str, dict[int, Trial]] = {}
    errors: dict[tuple[str, int], list[float]] = {}
    for run in before:
        if run.settings is not None and run.trial is not None:
            trial = Trial(run.method, run.trial, run.settings, run.log)
            trials.setdefault(run.method, {}).setdefault(run.trial, trial)
            error = found[run.key].validation_error(config.metric)
            errors.setdefault((run.method, run.trial), []).append(error)
    return {
        (name, trial.number): trial
        for name, own in trials.items()
        for trial in suggest_trials(
            list(own.values()), [errors[name, number] for number in own], count, seed=config.seed
        )
    }


def _with_trial(run: Run, trial: Trial) -> Run:
    return replace(run, settings=trial.settings, log=trial.log)


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
    values = {**trial.settings.to_dict(), **trial.settings.method_settings, "log": trial.log}
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
        replace(first.settings, method_settings=settings, **common),
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
