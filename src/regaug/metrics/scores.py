"""All metrics of some predictions: of all rows, by target, by group."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_finite, check_flag
from regaug._registry import lookup
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.metrics.along import by_tenth
from regaug.metrics.functions import check_shapes, check_tensors, spreads
from regaug.metrics.metric import METRICS, RARE_METRICS

# Number of targets, their mean, RMSE: what is known of a tenth; the latter None if it is empty.
Tenth = tuple[int, float | None, float | None]


@dataclass(frozen=True)
class Scores:
    """All metrics of some predictions.

    Of one target they are in its own units. Of several they are means over the targets, RMSE and
    MAE divided by each target's spread (:class:`Metric`); ``targets`` has each in its own units.

    Attributes:
        n: Number of rows.
        rmse: Root of the mean squared error.
        mae: Mean absolute error.
        mape: Mean absolute error in per cent of the target; None if all targets are zero.
        n_zero: Targets that are zero and left out of ``mape``.
        r2: Share of the variance explained; None if no target varies.
        pearson: Pearson's correlation; None if no target varies.
        groups: The same for the rows of each group, by its name; empty without groups. Errors are
            divided by the spread among all rows, so that groups can be compared.
        targets: The scores of every target by itself; empty if there is one only, or if all count
            together.
        rare: The metrics that can see rare targets, by name; empty if they are not known.
        tenths: How many targets each tenth of the target's range has, their mean and their RMSE;
            see :func:`regaug.metrics.by_tenth`. Empty for several targets, which have their own,
            for the rows of a group, and if they are not known.
    """

    n: int
    rmse: float
    mae: float
    mape: float | None
    n_zero: int
    r2: float | None
    pearson: float | None
    groups: Mapping[str, "Scores"] = field(default_factory=dict)
    targets: tuple["Scores", ...] = ()
    rare: Mapping[str, float | None] = field(default_factory=dict)
    tenths: tuple[Tenth, ...] = field(default=(), compare=False)

    @property
    def by_target(self) -> tuple["Scores", ...]:
        """The scores of every target in its own units, also if there is one only."""
        return self.targets or (self,)

    def value(self, metric: str) -> float | None:
        """Return the value of a metric; None if it is undefined."""
        lookup("metric", metric, METRICS)
        value: float | None = (
            self.rare.get(metric) if metric in RARE_METRICS else getattr(self, metric)
        )
        return value

    def worst(self, metric: str) -> tuple[str, float]:
        """Return the name and the value of the group with the worst value of a metric.

        Groups for which the metric is undefined (Pearson's R of a single row) are passed over; of
        equally bad ones the first counts.

        Args:
            metric: A name of :data:`METRICS`, such as ``"rmse"``.
        """
        sign = lookup("metric", metric, METRICS).sign
        if not self.groups:
            raise ArgumentError("There is no worst group: these scores are of rows without groups.")
        values = {name: scores.value(metric) for name, scores in self.groups.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if not known:
            raise ArgumentError(
                f"There is no worst group: {metric!r} is undefined for all {len(values)} groups. "
                "Take a metric of errors, such as 'rmse'."
            )
        name = max(known, key=lambda name: sign * known[name])
        return name, known[name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a JSON file; None stands for what is undefined."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        own["groups"] = {name: scores.to_dict() for name, scores in self.groups.items()}
        own["targets"] = [scores.to_dict() for scores in self.targets]
        own["rare"] = dict(self.rare)
        own["tenths"] = [list(tenth) for tenth in self.tenths]
        for name in _OPTIONAL:
            if not own[name]:  # as in files that are older than they are
                del own[name]
        return own

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scores that :meth:`to_dict` wrote down."""
        names = {part.name for part in fields(cls)}
        if {*values, *_OPTIONAL} != names:
            raise ArgumentError(
                f"`values` must have the keys {sorted(names)}, got {sorted(values)}."
            )
        several = ("groups", *_OPTIONAL)
        numbers = {name: value for name, value in values.items() if name not in several}
        for name, value in numbers.items():
            may_be_none = name in ("mape", "r2", "pearson")
            if not isinstance(value, int | float) and not (may_be_none and value is None):
                raise ArgumentTypeError(f"`{name}` must be a number, got {value!r}.")
        groups = {name: cls.from_dict(scores) for name, scores in values["groups"].items()}
        targets = tuple(cls.from_dict(scores) for scores in values.get("targets", ()))
        rare, tenths = _read_rare(values.get("rare", {}), values.get("tenths", []))
        return cls(**numbers, groups=groups, targets=targets, rare=rare, tenths=tenths)


# What files need not have.
_OPTIONAL = ("targets", "rare", "tenths")


def evaluate(
    prediction: Tensor,
    target: Tensor,
    groups: NDArray[Any] | None = None,
    *,
    pooled: bool = False,
) -> Scores:
    """Score predictions over all rows, over the rows of each group, and target by target.

    Args:
        prediction: ``(n, m)`` or ``(n,)``, finite, in the target's own units.
        target: The same shape, finite.
        groups: Label of every row's group, ``(n,)``; None if there are no groups.
        pooled: Count several targets together, as one quantity in one unit.

    Example:
        >>> import torch
        >>> target = torch.tensor([1.0, 2.0, 3.0, 5.0])
        >>> scores = evaluate(torch.tensor([1.0, 2.0, 3.0, 4.0]), target, np.array(list("aabb")))
        >>> scores.rmse, scores.worst("mae")
        (0.5, ('b', 0.5))
    """
    check_tensors(prediction, target)
    if prediction.ndim == target.ndim == 1:
        prediction, target = prediction[:, None], target[:, None]
    if target.ndim != 2:
        raise ArgumentError(f"`target` must be (n, m) or (n,), got shape {tuple(target.shape)}.")
    check_shapes(prediction, target)
    check_finite(target=target)
    if not bool(prediction.isfinite().all()):
        raise NonFiniteError(
            f"`prediction` must be finite, got NaN or infinity in "
            f"{int((~prediction.isfinite()).sum())} of {prediction.numel()} values: the model "
            "diverged. Train it with a lower learning rate or with gradient clipping."
        )
    spread = None if check_flag("pooled", pooled) else spreads(target)
    if groups is None:
        (whole,) = _scores(prediction, target, spread)
        return whole
    if not isinstance(groups, np.ndarray) or groups.shape != (len(target),):
        came = f"shape {groups.shape}" if isinstance(groups, np.ndarray) else type(groups).__name__
        raise ArgumentError(
            f"`groups` must be an array with a label for each of the {len(target)} rows, got "
            f"{came}."
        )
    # Labels of several types cannot be sorted, but their names can.
    labels, places = np.unique(
        groups.astype(str) if groups.dtype == object else groups, return_inverse=True
    )
    by_group = dict[str, Scores]()
    for numbers, rows, counts in _alike(places, len(labels)):
        parts = _scores(prediction[rows], target[rows], spread, counts, with_tenths=False)
        by_group |= {str(labels[number]): own for number, own in zip(numbers, parts, strict=True)}
    (whole,) = _scores(prediction, target, spread)
    return replace(whole, groups={str(label): by_group[str(label)] for label in labels})


def _alike(
    places: NDArray[np.int64], count: int
) -> Iterator[tuple[list[int], NDArray[np.int64], Tensor]]:
    """Put groups of like sizes together: numbers, rows of each ``(groups, n)``, and which count.

    What a group lacks to the size of the largest is filled up, by no more than it has itself.
    """
    order, sizes = np.argsort(places, kind="stable"), np.bincount(places, minlength=count)
    starts = np.cumsum(sizes) - sizes
    doublings = np.frexp(sizes)[1]  # of each: how many bits its size has
    for doubling in np.unique(doublings):
        numbers = np.flatnonzero(doublings == doubling)
        own = np.arange(sizes[numbers].max())
        counts = own < sizes[numbers, None]
        rows = order[np.where(counts, starts[numbers, None] + own, starts[numbers, None])]
        yield numbers.tolist(), rows, torch.from_numpy(counts)


def _read_rare(
    rare: Mapping[str, float | None], tenths: Sequence[Sequence[Any]]
) -> tuple[dict[str, float | None], tuple[Tenth, ...]]:
    """Return what a file holds of rare targets, if it is that."""
    is_right = isinstance(rare, Mapping) and rare.keys() <= set(RARE_METRICS)
    is_right = is_right and isinstance(tenths, list | tuple)
    is_right = is_right and all(isinstance(own, list | tuple) and len(own) == 3 for own in tenths)
    numbers = [*rare.values(), *(own for tenth in tenths for own in tenth)] if is_right else []
    if not is_right or not all(own is None or _is_number(own) for own in numbers):
        raise ArgumentTypeError(
            "`rare` and `tenths` must be metrics by name and three numbers by tenth, got "
            f"{rare!r} and {tenths!r}."
        )
    return dict(rare), tuple((n, at, rmse) for n, at, rmse in tenths)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _scores(
    prediction: Tensor,
    target: Tensor,
    spread: Tensor | None,
    rows: Tensor | None = None,
    *,
    with_tenths: bool = True,
) -> list[Scores]:
    """Return all metrics of some parts at once, ``(parts, n, m)``, or of one, ``(n, m)``.

    Errors are divided by a spread, or all targets count together if it is None.

    Args:
        prediction: What was predicted.
        target: What was to be.
        spread: Of each target ``(m,)``, or of each part's ``(parts, m)``.
        rows: Which rows of a part count, ``(parts, n)``; None counts all.
        with_tenths: Look at the tenths of the target's range as well.
    """
    if target.ndim == 2:
        # In one order in memory, so that a target has the same sums alone and beside others.
        prediction, target = prediction[None].contiguous(), target[None].contiguous()
    n_parts, n, n_targets = target.shape
    values = {
        name: metric(prediction, target, rows=rows, pooled=spread is None, spread=spread).tolist()
        for name, metric in METRICS.items()
    }
    of_targets: list[tuple[Scores, ...]] = [()] * n_parts
    tenths: list[tuple[Tenth, ...]] = [()] * n_parts
    if spread is not None and n_targets > 1:
        of_prediction, of_target = (
            part.mT.contiguous().reshape(-1, n, 1) for part in (prediction, target)
        )
        own = None if rows is None else rows.repeat_interleave(n_targets, dim=0)
        found = _scores(of_prediction, of_target, None, own, with_tenths=with_tenths)
        of_targets = [tuple(found[at : at + n_targets]) for at in range(0, len(found), n_targets)]
    elif with_tenths:
        tenths = _tenths(prediction, target)
    is_counted = torch.ones(n_parts, n, dtype=torch.bool) if rows is None else rows
    n_zero = ((target == 0) & is_counted[..., None].to(target.device)).sum(dim=(1, 2)).tolist()
    scores = []
    for part, count in enumerate(is_counted.sum(dim=1).tolist()):
        defined: dict[str, Any] = {
            name: None if math.isnan(own[part]) else own[part] for name, own in values.items()
        }
        rare = {name: defined.pop(name) for name in RARE_METRICS}
        scores.append(
            Scores(
                count,
                n_zero=n_zero[part],
                targets=of_targets[part],
                rare=rare,
                tenths=tenths[part],
                **defined,
            )
        )
    return scores


def _tenths(prediction: Tensor, target: Tensor) -> list[tuple[Tenth, ...]]:
    found = by_tenth(prediction, target)
    parts = zip(found.n.tolist(), found.at.tolist(), found.mse.sqrt().tolist(), strict=True)
    return [
        tuple((int(n), _known(at), _known(rmse)) for n, at, rmse in zip(*own, strict=True))
        for own in parts
    ]


def _known(value: float) -> float | None:
    """Return a number as short as a file needs it; None if it is none."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
