"""All metrics of some predictions: of all rows, by target, by group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
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
        return _scores(prediction, target, spread)
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
    members = (np.flatnonzero(places == place) for place in range(len(labels)))
    by_group = {
        str(label): _scores(prediction[rows], target[rows], spread, with_tenths=False)
        for label, rows in zip(labels, members, strict=True)
    }
    return _scores(prediction, target, spread, by_group)


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
    groups: Mapping[str, Scores] | None = None,
    *,
    with_tenths: bool = True,
) -> Scores:
    """Return all metrics; errors are divided by a spread, or all targets count together if None."""
    values = {
        name: metric(prediction, target, pooled=spread is None, spread=spread).item()
        for name, metric in METRICS.items()
    }
    defined: dict[str, Any] = {
        name: None if math.isnan(value) else value for name, value in values.items()
    }
    targets: tuple[Scores, ...] = ()
    if spread is not None and target.shape[1] > 1:
        columns = [slice(place, place + 1) for place in range(target.shape[1])]
        targets = tuple(
            _scores(prediction[:, own], target[:, own], None, with_tenths=with_tenths)
            for own in columns
        )
    rare = {name: defined.pop(name) for name in RARE_METRICS}
    return Scores(
        len(target),
        n_zero=int((target == 0).sum()),
        groups=groups or {},
        targets=targets,
        rare=rare,
        tenths=_tenths(prediction, target) if with_tenths and not targets else (),
        **defined,
    )


def _tenths(prediction: Tensor, target: Tensor) -> tuple[Tenth, ...]:
    found = by_tenth(prediction, target)
    lines = zip(found.n.tolist(), found.at.tolist(), found.mse.sqrt().tolist(), strict=True)
    return tuple((int(n), _known(at), _known(rmse)) for n, at, rmse in lines)


def _known(value: float) -> float | None:
    """Return a number as short as a file needs it; None if it is none."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
