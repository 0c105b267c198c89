"""How good predictions are: RMSE, MAE, MAPE, R2, Pearson's R; of all rows, by target, by group.

The functions take all targets together. A :class:`Metric` gives every target the same weight, as
long as nobody says that the targets are one quantity: prices in millions beside shares below one
would be all that counts otherwise.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_finite
from regaug._registry import lookup
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.formatting import Unit, short


def rmse(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the root of the mean squared error, over all rows and targets together.

    As all the metrics here, it takes one run or a stack of runs, computes in float64, and is NaN or
    infinite for a run whose predictions are.

    Args:
        prediction: ``(..., n, m)``.
        target: The same shape.
        rows: Which rows count, bool, ``(..., n)``; the others may hold anything. None counts all.

    Returns:
        A number for each run, ``(...)``, float64.

    Example:
        >>> rmse(torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [9.0]])).item()
        5.0
    """
    prediction, target, n = _counted(prediction, target, rows)
    squares = (prediction - target).square().sum(dim=(-2, -1))
    return (squares / (n * target.shape[-1])).sqrt()


def mae(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the mean absolute error, over all rows and targets together; see :func:`rmse`.

    Example:
        >>> mae(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [4.0]])).item()
        1.0
    """
    prediction, target, n = _counted(prediction, target, rows)
    return (prediction - target).abs().sum(dim=(-2, -1)) / (n * target.shape[-1])


def mape(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the mean absolute error as a percentage of the target; see :func:`rmse`.

    Targets that are zero have no such percentage and are left out; NaN if all are.

    Example:
        >>> mape(torch.tensor([[1.0], [2.0], [7.0]]), torch.tensor([[1.0], [4.0], [0.0]])).item()
        25.0
    """
    prediction, target, _ = _counted(prediction, target, rows)
    # Rows that do not count have become zeros, so this leaves them out as well.
    is_zero = target == 0
    share = (prediction - target).abs() / target.abs()
    total = share.masked_fill(is_zero, 0.0).sum(dim=(-2, -1))
    return 100.0 * total / (~is_zero).sum(dim=(-2, -1))


def r2(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the share of the targets' variance that is explained; see :func:`rmse`.

    It is computed for each target and averaged over the targets that vary; NaN if none does.

    Example:
        >>> target = torch.tensor([[1.0], [2.0], [3.0]])
        >>> r2(target.flip(0), target).item()
        -3.0
    """
    prediction, target, _ = _counted(prediction, target, rows)
    spread = _centered(target, rows).square().sum(dim=-2)
    left = (prediction - target).square().sum(dim=-2)
    return _mean_over_varying(1.0 - left / spread, spread)


def pearson(prediction: Tensor, target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return Pearson's correlation of predictions and targets; see :func:`rmse`.

    It is computed for each target and averaged over the targets that vary; NaN if none does. A
    prediction that does not vary says nothing of a target that does: their correlation counts as 0.

    Example:
        >>> target = torch.tensor([[1.0], [2.0], [3.0]])
        >>> round(pearson(7 - 2 * target, target).item(), 6)
        -1.0
    """
    prediction, target, _ = _counted(prediction, target, rows)
    p, t = _centered(prediction, rows), _centered(target, rows)
    p_norm, t_norm = (torch.linalg.vector_norm(v, dim=-2, keepdim=True) for v in (p, t))
    # Each side is divided by its own norm, because a product of the two could under- or overflow.
    r = ((p / p_norm) * (t / t_norm)).sum(dim=-2).clamp(-1.0, 1.0)
    return _mean_over_varying(r.masked_fill(p_norm.squeeze(-2) == 0, 0.0), t_norm.squeeze(-2))


MetricName = Literal["rmse", "mae", "mape", "r2", "pearson"]


@dataclass(frozen=True)
class Metric:
    """A metric, its direction and its name.

    Attributes:
        function: From predictions and targets ``(..., n, m)`` to a number per run, ``(...)``.
        higher_is_better: Whether it measures agreement rather than error.
        title: What a reader knows it by.
        has_unit: Whether it is in the target's own units.

    Example:
        >>> target = torch.tensor([[1.0, 1000.0], [3.0, 3000.0]])
        >>> METRICS["rmse"](target + torch.tensor([1.0, 500.0]), target).item()  # 1 and a half
        0.75
    """

    function: Callable[..., Tensor]
    higher_is_better: bool
    title: str
    has_unit: bool = False

    def __call__(
        self,
        prediction: Tensor,
        target: Tensor,
        *,
        rows: Tensor | None = None,
        pooled: bool = False,
        spread: Tensor | None = None,
    ) -> Tensor:
        """Return the value for each run, ``(...)``, in which every target counts alike.

        With several targets it is the mean over those for which it is defined. What has a unit is
        divided by the target's spread before: the standard deviation among the rows that count, 1
        for a target that is constant.

        Args:
            prediction: ``(..., n, m)``.
            target: The same shape.
            rows: Which rows count, bool, ``(..., n)``; None counts all.
            pooled: Count all targets together, as one quantity in one unit.
            spread: What to divide by, ``(..., m)``, in place of the spread among these rows.
        """
        if pooled or target.shape[-1] == 1 or self.higher_is_better:
            return self.function(prediction, target, rows=rows)
        _check_shapes(prediction, target)
        by_target = prediction.mT.unsqueeze(-1), target.mT.unsqueeze(-1)  # (..., m, n, 1)
        counted = None if rows is None else rows.unsqueeze(-2).expand(by_target[0].shape[:-1])
        values = self.function(*by_target, rows=counted)
        if self.has_unit:
            return (values / (spreads(target, rows=rows) if spread is None else spread)).mean(-1)
        known = _counted(prediction, target, rows)[1].abs().sum(dim=-2)
        return _mean_over_varying(values, known)

    def title_for(self, targets: int) -> str:
        """Return what a reader knows it by where there are so many targets.

        Example:
            >>> METRICS["rmse"].title_for(1), [METRICS[n].title_for(2) for n in ("rmse", "r2")]
            ('RMSE', ['RMSE / spread', 'R2'])
        """
        return f"{self.title} / spread" if self.has_unit and targets > 1 else self.title

    def explain(self, targets: int) -> str:
        """Return what it means where there are several targets, in a sentence; empty for one."""
        if targets == 1:
            return ""
        if self.has_unit:
            return (
                f"{self.title_for(targets)}: the {self.title} of every target divided by its "
                f"standard deviation among the scored rows, mean over the {targets} targets."
            )
        return f"{self.title}: mean over the {targets} targets."

    @property
    def sign(self) -> float:
        """1 or -1: times this, a lower value is the better one for every metric."""
        return -1.0 if self.higher_is_better else 1.0

    @property
    def unit(self) -> Unit:
        """In what a change is told: per cent of an error, or plain points of an agreement."""
        return "points" if self.higher_is_better else "percent"

    def error(self, value: float | None) -> float:
        """Return what is lower for the better value of any metric, infinite where there is none.

        Example:
            >>> METRICS["rmse"].error(0.5), METRICS["r2"].error(0.5), METRICS["r2"].error(None)
            (0.5, -0.5, inf)
        """
        is_known = value is not None and math.isfinite(value)
        return self.sign * value if is_known and value is not None else math.inf


METRICS: dict[str, Metric] = {
    "rmse": Metric(rmse, higher_is_better=False, title="RMSE", has_unit=True),
    "mae": Metric(mae, higher_is_better=False, title="MAE", has_unit=True),
    "mape": Metric(mape, higher_is_better=False, title="MAPE"),
    "r2": Metric(r2, higher_is_better=True, title="R2"),
    "pearson": Metric(pearson, higher_is_better=True, title="Pearson's R"),
}


@dataclass(frozen=True)
class Score:
    """A value that knows its metric: which way is better, and how a difference is told.

    Attributes:
        metric: Name of the metric.
        value: The value.

    Example:
        >>> plain, other = Score("pearson", 0.074), Score("pearson", 0.461)
        >>> other.is_better_than(plain), other.against(plain)
        (True, 'better by 0.387')
        >>> Score("rmse", 2.0).against(Score("rmse", 1.6)), str(Score("rmse", 1.6))
        ('25 % worse', 'RMSE 1.6')
    """

    metric: str
    value: float

    def __str__(self) -> str:
        return f"{METRICS[self.metric].title} {short(self.value)}"

    def is_better_than(self, other: "Score") -> bool:
        """Tell whether this value is better than another one of the same metric."""
        error = METRICS[self.metric].error
        return error(self.value) < error(other.value)

    def against(self, other: "Score") -> str:
        """Say how much better or worse this is: errors in per cent, agreement in points."""
        word = "better" if self.is_better_than(other) else "worse"
        if METRICS[self.metric].unit == "points":
            return f"{word} by {abs(self.value - other.value):.3g}"
        return f"{100 * abs(self.value / other.value - 1):.3g} % {word}"


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

    @property
    def by_target(self) -> tuple["Scores", ...]:
        """The scores of every target in its own units, also if there is one only."""
        return self.targets or (self,)

    def value(self, metric: str) -> float | None:
        """Return the value of a metric; None if it is undefined."""
        lookup("metric", metric, METRICS)
        value: float | None = getattr(self, metric)
        return value

    def worst(self, metric: str) -> tuple[str, float]:
        """Return the name and the value of the group with the worst value of a metric.

        Groups for which the metric is undefined (Pearson's R of a single row) are passed over; of
        equally bad ones the first counts.

        Args:
            metric: ``"rmse"``, ``"mae"``, ``"mape"``, ``"r2"`` or ``"pearson"``.
        """
        sign = lookup("metric", metric, METRICS).sign
        if not self.groups:
            raise ArgumentError("There is no worst group: these scores are of rows without groups.")
        values = {name: getattr(scores, metric) for name, scores in self.groups.items()}
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
        if not self.targets:  # as in files that are older than they are
            del own["targets"]
        return own

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scores that :meth:`to_dict` wrote down."""
        names = {part.name for part in fields(cls)}
        if {*values, "targets"} != names:
            raise ArgumentError(
                f"`values` must have the keys {sorted(names)}, got {sorted(values)}."
            )
        several = ("groups", "targets")
        numbers = {name: value for name, value in values.items() if name not in several}
        for name, value in numbers.items():
            may_be_none = name in ("mape", "r2", "pearson")
            if not isinstance(value, int | float) and not (may_be_none and value is None):
                raise ArgumentTypeError(f"`{name}` must be a number, got {value!r}.")
        groups = {name: cls.from_dict(scores) for name, scores in values["groups"].items()}
        targets = tuple(cls.from_dict(scores) for scores in values.get("targets", ()))
        return cls(**numbers, groups=groups, targets=targets)


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
        >>> target = torch.tensor([1.0, 2.0, 3.0, 5.0])
        >>> scores = evaluate(torch.tensor([1.0, 2.0, 3.0, 4.0]), target, np.array(list("aabb")))
        >>> scores.rmse, scores.worst("mae")
        (0.5, ('b', 0.5))
    """
    if prediction.ndim == target.ndim == 1:
        prediction, target = prediction[:, None], target[:, None]
    if target.ndim != 2:
        raise ArgumentError(f"`target` must be (n, m) or (n,), got shape {tuple(target.shape)}.")
    _check_shapes(prediction, target)
    check_finite(target=target)
    if not bool(prediction.isfinite().all()):
        raise NonFiniteError(
            f"`prediction` must be finite, got NaN or infinity in "
            f"{int((~prediction.isfinite()).sum())} of {prediction.numel()} values: the model "
            "diverged. Train it with a lower learning rate or with gradient clipping."
        )
    spread = None if pooled else spreads(target)
    if groups is None:
        return _scores(prediction, target, spread)
    if groups.shape != (len(target),):
        raise ArgumentError(
            f"`groups` must have a label for each of the {len(target)} rows, got shape "
            f"{groups.shape}."
        )
    # Labels of several types cannot be sorted, but their names can.
    labels, places = np.unique(
        groups.astype(str) if groups.dtype == object else groups, return_inverse=True
    )
    members = (np.flatnonzero(places == place) for place in range(len(labels)))
    by_group = {
        str(label): _scores(prediction[rows], target[rows], spread)
        for label, rows in zip(labels, members, strict=True)
    }
    return _scores(prediction, target, spread, by_group)


def spreads(target: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return the standard deviation of each target among the rows that count; 1 for a constant one.

    From ``(..., n, m)`` to ``(..., m)``, float64.

    Example:
        >>> spreads(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
        tensor([1., 1.], dtype=torch.float64)
    """
    _, target, n = _counted(target, target, rows)
    count = n if isinstance(n, int) else n.unsqueeze(-1)
    found = (_centered(target, rows).square().sum(dim=-2) / count).sqrt()
    return torch.where(found == 0, 1.0, found)


def _scores(
    prediction: Tensor,
    target: Tensor,
    spread: Tensor | None,
    groups: Mapping[str, Scores] | None = None,
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
        targets = tuple(_scores(prediction[:, own], target[:, own], None) for own in columns)
    n_zero = int((target == 0).sum())
    return Scores(len(target), n_zero=n_zero, groups=groups or {}, targets=targets, **defined)


def _check_shapes(prediction: Tensor, target: Tensor) -> None:
    for name, value in (("prediction", prediction), ("target", target)):
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"`{name}` must be a torch.Tensor, got {type(value).__name__}. "
                f"Convert it with torch.as_tensor({name})."
            )
    if prediction.shape != target.shape or target.ndim < 2:
        raise ArgumentError(
            "`prediction` and `target` must have one shape, (..., n, m), "
            f"got {tuple(prediction.shape)} and {tuple(target.shape)}."
        )
    if target.shape[-2] == 0 or target.shape[-1] == 0:
        raise ArgumentError(
            f"`prediction` and `target` must not be empty, got shape {tuple(target.shape)}."
        )


def _counted(
    prediction: Tensor, target: Tensor, rows: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | int]:
    """Return both in float64, with zeros in the rows that do not count, and how many do count."""
    _check_shapes(prediction, target)
    prediction, target = prediction.detach().double(), target.detach().double()
    if rows is None:
        return prediction, target, target.shape[-2]
    if rows.dtype != torch.bool or rows.shape != target.shape[:-1]:
        raise ArgumentError(
            f"`rows` must be a bool mask of shape {tuple(target.shape[:-1])}, "
            f"got {rows.dtype} of shape {tuple(rows.shape)}."
        )
    left_out = ~rows[..., None]
    prediction, target = (v.masked_fill(left_out, 0.0) for v in (prediction, target))
    return prediction, target, rows.sum(dim=-1)


def _centered(values: Tensor, rows: Tensor | None) -> Tensor:
    """Subtract each column's mean; a constant column becomes exactly zero."""
    # A mean of equal numbers is rounded; the mean of their distances to one of them is zero.
    if rows is None:
        shifted = values - values[..., :1, :]
        return shifted - shifted.mean(dim=-2, keepdim=True)
    first = rows.int().argmax(dim=-1)[..., None, None]
    left_out = ~rows[..., None]
    shifted = (values - values.take_along_dim(first, dim=-2)).masked_fill(left_out, 0.0)
    mean = shifted.sum(dim=-2, keepdim=True) / rows.sum(dim=-1)[..., None, None]
    return (shifted - mean).masked_fill(left_out, 0.0)


def _mean_over_varying(values: Tensor, spread: Tensor) -> Tensor:
    """Average over the targets (last axis) whose spread is not zero; NaN if there are none."""
    is_constant = spread == 0
    return values.masked_fill(is_constant, 0.0).sum(dim=-1) / (~is_constant).sum(dim=-1)
