"""A search that learns: settings are asked for in rounds, each knowing the errors of those before.

The tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), as Optuna has it.
"""

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from regaug import _random
from regaug._random import Stream
from regaug.methods import Between, OneOf, Reach, Space
from regaug.problems import Kind
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.studies.config import StudyConfig
from regaug.studies.search import suit
from regaug.studies.selection import mean_ranks

# Trials in a round. The first round is that of the random search: something to learn from.
ROUND = 5
Own = Mapping[str, Any]


def learn_rounds(
    runs: Sequence[Run], records: Callable[[], Mapping[str, RunRecord]], *, config: StudyConfig
) -> Iterator[list[Run]]:
    """Give the runs that compare the methods round by round.

    Those of the first round, which a random search has drawn, stay; the others keep their recipe,
    number, split and seed, and get settings of the method that are learned from the rounds before.
    """
    before: list[Run] = []
    last = max(run.trial or 0 for run in runs)
    for start in range(0, last + 1, ROUND):
        current = [run for run in runs if start <= (run.trial or 0) < start + ROUND]
        if start:
            learned = _learn(before, records(), min(ROUND, last + 1 - start), config)
            current = [_with_settings(run, learned[run.method, run.trial or 0]) for run in current]
        yield current
        before += current


def suggest_settings(
    method: str,
    before: Sequence[Own],
    errors: Sequence[Sequence[float]],
    count: int,
    *,
    seed: int,
    rows: int | None = None,
    reach: Reach | None = None,
    kind: Kind = "table",
    beside: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Suggest settings of a method that may be better than those before.

    The error of a trial is its mean rank over the splits: a split with large errors would decide
    alone otherwise, and an infinite error is just the last rank.

    ``errors`` are the validation errors of the trials before on every split, lower is better; so
    many ``rows`` are trained on, of a problem of such a ``kind``, methods can act within ``reach``,
    and teachers are among those ``beside``.

    Example:
        >>> from regaug.studies.search import draw_settings
        >>> before = draw_settings("mixup", 5, seed=0)
        >>> errors = [[0.3, 0.5], [0.2, 0.4], [0.4, 0.6], [0.5, 0.7], [0.6, 0.8]]
        >>> len(suggest_settings("mixup", before, errors, 2, seed=0))
        2
    """
    import optuna

    known, start = suit(method, rows, reach, kind, beside), len(before)
    if not known.space:  # plain training has nothing to be learned
        return [known.settings() for _ in range(count)]
    forms = {name: _distribution(choice) for name, choice in known.space.items()}
    ranks = mean_ranks(list(zip(*errors, strict=True)))
    own_seed = _random.derive(Stream.SEARCH, seed, zlib.crc32(method.encode()), start) % 2**32
    sampler = optuna.samplers.TPESampler(seed=own_seed, n_startup_trials=min(ROUND, start))
    with _quiet():
        study = optuna.create_study(sampler=sampler)
        for own, rank in zip(before, ranks, strict=True):
            study.add_trial(
                optuna.trial.create_trial(
                    value=rank, params=_to_params(own, known.space), distributions=forms
                )
            )
        asked = [study.ask(forms).params for _ in range(count)]
    return [
        known.settings(**{name: _value(known.space[name], p) for name, p in params.items()})
        for params in asked
    ]


def _learn(
    before: Sequence[Run], found: Mapping[str, RunRecord], count: int, config: StudyConfig
) -> dict[tuple[str, int], Own]:
    """Return the settings of the next round by method and number."""
    tried: dict[str, dict[int, Own]] = {}
    errors: dict[tuple[str, int], list[float]] = {}
    for run in before:
        if run.settings is not None and run.trial is not None:
            tried.setdefault(run.method, {}).setdefault(run.trial, run.settings.method_settings)
            error = found[run.key].validation_error(config.metric)
            errors.setdefault((run.method, run.trial), []).append(error)
    learned: dict[tuple[str, int], Own] = {}
    for name, own in tried.items():
        known = [errors[name, number] for number in own]
        rows, settings = config.train_rows or None, list(own.values())
        limits: dict[str, Any] = {"rows": rows, "reach": config.reach, "kind": config.kind}
        limits["beside"] = config.beside
        new = suggest_settings(name, settings, known, count, seed=config.seed, **limits)
        # What matters most is not learned: the first trial knows it.
        kept = {key: settings[0][key] for key in ("focus",) if key in settings[0]}
        learned |= {(name, len(own) + i): {**one, **kept} for i, one in enumerate(new)}
    return learned


def _with_settings(run: Run, own: Own) -> Run:
    if run.settings is None:
        return run
    return replace(run, settings=replace(run.settings, method_settings=own))


def _distribution(choice: Between | OneOf) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if isinstance(choice, OneOf):  # their places, because values may be anything
        return CategoricalDistribution(tuple(range(len(choice.values))))
    return FloatDistribution(choice.low, choice.high, log=choice.log)


def _to_params(own: Own, space: Space) -> dict[str, float]:
    """Return settings as Optuna's parameters."""
    return {
        name: choice.values.index(own[name])
        if isinstance(choice, OneOf)
        # Rounding can put a drawn number just outside.
        else min(max(own[name], choice.low), choice.high)
        for name, choice in space.items()
    }


def _value(choice: Between | OneOf, param: float) -> Any:
    return choice.values[int(param)] if isinstance(choice, OneOf) else float(param)


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
