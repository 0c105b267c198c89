"""The blend: nets and baselines, each with the share that rows they have not learned give it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from regaug.data.base import Data, Split
from regaug.ensemble.candidates import Candidate, Folds, Observer, Try
from regaug.ensemble.contents import AUTO, NETS
from regaug.ensemble.model import Ensemble
from regaug.ensemble.prepared import Prepared
from regaug.ensemble.rows import fold_rows
from regaug.ensemble.weights import weigh
from regaug.exceptions import DivergedError
from regaug.training.baselines import baseline_names
from regaug.training.deadline import Until
from regaug.training.recipe import HIDDEN, draw_recipes

T = TypeVar("T")

# The baselines that are worth a share; the mean is not.
BASELINES = ("ridge", "boosting", "trees", "gp")
PLAIN, METHODS = "erm", ("mixup", "c-mixup", "foma-rho")
# A smaller share is not worth the models that it stands for.
SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class Amounts:
    """How much is tried.

    Attributes:
        folds: Parts of the table; a candidate is a model for each.
        recipes: Recipes of plain training.
        repeats: Trainings of every method, each at another of the best recipes.
    """

    folds: int = 8
    recipes: int = 4
    repeats: int = 1

    @classmethod
    def of(cls, rows: int, *, quick: bool = False) -> "Amounts":
        """Return what a table of so many rows has time for, and sense."""
        if quick:
            return cls(folds=3, repeats=0)
        if rows < 25:
            return cls(folds=3)
        if rows <= 2_000:
            return cls()
        if rows <= 6_000:
            return cls(folds=5)
        return cls(folds=3, recipes=3)


def fit_blend(
    data: Data,
    *,
    method: str = AUTO,
    hidden: Sequence[int] = HIDDEN,
    seed: int = 0,
    quick: bool = False,
    jobs: int = 1,
    until: Until | None = None,
    observer: Observer | None = None,
) -> Ensemble:
    """Fit a blend of nets and baselines, of nets alone, or a baseline.

    Some rows are put aside first and used for nothing but the intervals
    (:func:`regaug.ensemble.calibration_rows`). The others are dealt into eight folds (fewer if they
    are fewer than 25, or thousands), and every candidate is fitted once for each fold, on the
    other folds: several recipes of plain training, the methods at the best of these, the
    baselines. What they predict for the folds decides the shares
    (:mod:`regaug.ensemble.weights`), and the models of the folds are the model: each row has
    taught all of them but one in eight.

    Where a target is positive and strongly skewed, every other recipe fits its logarithm, and of
    the baselines what does better.

    Args:
        data: A table of your own, or a named data set of that kind.
        method: ``"auto"``, ``"nets"`` (no baselines), or one of the baselines ``"ridge"``,
            ``"boosting"``, ``"trees"`` and ``"gp"``.
        hidden: Widths of the hidden layers of the nets.
        seed: Decides everything.
        quick: Fewer folds and recipes, and plain training alone.
        jobs: Worker processes; the model does not depend on it.
        until: When to begin nothing new, in seconds since 1970; None for never. What is finished
            then is the model, one candidate at least, and its notes say what was left out.
        observer: Told how far it has come.
    """
    ready = Prepared.of(data, seed=seed)
    found = fit_candidates(
        ready,
        method=method,
        hidden=hidden,
        seed=seed,
        quick=quick,
        jobs=jobs,
        until=until,
        observer=observer,
    )
    return make_blend(ready, method, found)


@dataclass(frozen=True)
class Candidates:
    """All that a blend may be made of.

    Attributes:
        nets: Nets, by their recipes and methods.
        baselines: Baselines.
        target: Targets ``(n, m)`` of the rows that they have predicted.
        notes: What is missing because the time was up, in sentences.
    """

    nets: Sequence[Candidate]
    baselines: Sequence[Candidate]
    target: Tensor
    notes: Sequence[str] = ()


def make_blend(ready: Prepared, method: str, found: Candidates) -> Ensemble:
    """Give candidates their shares and make the model of them."""
    log, target = ready.may_log, found.target
    shares = choose_shares(found.nets, found.baselines, target)
    components = [own.as_component(share) for own, share in shares]
    mean = sum((share * own.predicted for own, share in shares), torch.zeros_like(target))
    scale = ready.scale(log=log)
    errors = scale.transform(mean) - scale.transform(target)
    return ready.finish(method, components, errors, log=log, notes=found.notes)


def fit_candidates(
    ready: Prepared,
    *,
    method: str = AUTO,
    hidden: Sequence[int] = HIDDEN,
    seed: int = 0,
    quick: bool = False,
    jobs: int = 1,
    until: Until | None = None,
    observer: Observer | None = None,
) -> Candidates:
    """Fit all that a blend may be made of; arguments as for :func:`fit_blend`."""
    amounts, log = Amounts.of(len(ready.rest), quick=quick), ready.may_log
    folds = fold_rows(ready.data, ready.rest, amounts.folds, seed)
    scales = (False, True) if log else (False,)
    split, has_nets = ready.splits(folds[:1])[0], method in (AUTO, NETS)
    tries = [Try(name, 0, own) for name in _baselines(method, split) for own in scales]
    if has_nets:
        recipes = draw_recipes(amounts.recipes, seed=seed, rows=len(split.train))
        tries = [Try(PLAIN, i, log and i % 2 == 1, own) for i, own in enumerate(recipes)] + tries
    if until is not None:  # a line is fitted at once, so that there is something
        tries.sort(key=lambda own: own.method != "ridge")
    later = len(METHODS) * amounts.repeats if has_nets else 0
    bench = Folds(
        ready,
        folds,
        hidden=hidden,
        seed=seed,
        jobs=jobs,
        total=(len(tries) + later) * len(folds),
        until=until,
        observer=observer,
    )
    found, target = bench.fit(tries), bench.target
    nets = [own for own in found if not own.is_baseline]
    baselines = _better([own for own in found if own.is_baseline], target)
    if nets:
        best = sorted(nets, key=lambda own: _error(own, target))[: amounts.repeats]
        places = [(name, i, own.tried) for name in METHODS for i, own in enumerate(best)]
        nets += bench.fit([Try(name, i, own.log, own.recipe) for name, i, own in places])
    elif later and bench.is_over():
        bench.left_out += [Try(name, 0) for name in METHODS]
    return Candidates(nets, baselines, target, _left_out(bench))


def _left_out(bench: Folds) -> list[str]:
    """Say what is missing because the time was up."""
    missing = list(dict.fromkeys(own.method for own in bench.left_out))
    short = list(dict.fromkeys(own.method for own in bench.cut_short))
    notes = [f"The time was up before all was tried; left out: {', '.join(missing)}."]
    notes = notes if missing else []
    if short:
        notes.append(
            f"The time was up before the nets were trained to the end: {', '.join(short)}."
        )
    return notes


def _baselines(method: str, split: Split) -> Sequence[str]:
    """Return which baselines are fitted."""
    if method == NETS:
        return ()
    if method != AUTO:  # one that does not suit the table is refused when it is fitted
        return (method,)
    possible = baseline_names(split)
    return tuple(name for name in BASELINES if name in possible)


def _better(baselines: Sequence[Candidate], target: Tensor) -> list[Candidate]:
    """Return each baseline once: in the scale that does better."""
    best: dict[str, Candidate] = {}
    for own in sorted(baselines, key=lambda own: _error(own, target)):
        best.setdefault(own.tried.method, own)
    return list(best.values())


def _error(candidate: Candidate, target: Tensor) -> float:
    spread = target.std(dim=0, correction=0)
    errors = (candidate.predicted - target) / torch.where(spread > 0, spread, 1.0)
    return errors.square().mean().item()


class Predicted(Protocol):
    """A model of which it is known what it predicts for the rows that decide."""

    @property
    def predicted(self) -> Tensor:
        """Its predictions, ``(n, m)``."""


P = TypeVar("P", bound=Predicted)


def choose_shares(
    nets: Sequence[P], baselines: Sequence[P], target: Tensor
) -> list[tuple[P, float]]:
    """Return what the model is made of, each with its share; those of small shares are dropped."""
    if not nets and not baselines:
        raise DivergedError(
            "No model could be fitted: the loss of every net became NaN or infinite. Look for "
            "extreme values in the table."
        )
    groups: list[list[tuple[P, float]]] = []
    if nets:
        weights = weigh(torch.stack([own.predicted for own in nets]), target)
        groups.append(_large(zip(nets, weights.tolist(), strict=True)))
    groups += [[(own, 1.0)] for own in baselines]
    predicted = [
        sum((w * own.predicted for own, w in group), torch.zeros_like(target)) for group in groups
    ]
    shares = weigh(torch.stack(predicted), target).tolist()
    kept = _large(zip(groups, shares, strict=True))
    return [(own, share * w) for group, share in kept for own, w in group]


def _large(pairs: Iterable[tuple[T, float]]) -> list[tuple[T, float]]:
    """Return what has a share that is not small; the shares sum to one again."""
    kept = [(own, share) for own, share in pairs if share >= SMALLEST_SHARE]
    total = math.fsum(share for _, share in kept)
    return [(own, share / total) for own, share in kept]
