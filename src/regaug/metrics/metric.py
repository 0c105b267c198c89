"""Metrics by name: which way is better, what a reader knows them by, how a difference is told.

A :class:`Metric` gives every target the same weight, as long as nobody says that the targets are
one quantity: prices in millions beside shares below one would be all that counts otherwise.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from torch import Tensor

from regaug._checks import check_choice
from regaug.exceptions import ArgumentError
from regaug.formatting import Unit, short
from regaug.metrics.along import FOCUSES, Focus, balanced_rmse, tail_rmse
from regaug.metrics.functions import (
    check_shapes,
    counted,
    mae,
    mape,
    mean_over_varying,
    pearson,
    r2,
    rmse,
    spreads,
)

MetricName = Literal[
    "rmse",
    "mae",
    "mape",
    "r2",
    "pearson",
    "balanced-rmse",
    "tail-rmse",
    "tail-rmse-high",
    "tail-rmse-low",
]
Mode = Literal["min", "max"]
# How the name of a metric begins that somebody else computes, and of one that has been below zero.
_SIGNED = "signed-"
_LOGGED = re.compile(rf"({_SIGNED})?(min|max):(.+)", re.DOTALL)


@dataclass(frozen=True)
class Metric:
    """A metric, its direction and its name.

    Attributes:
        function: From predictions and targets ``(..., n, m)`` to a number per run, ``(...)``.
        higher_is_better: Whether it measures agreement rather than error.
        title: What a reader knows it by.
        has_unit: Whether it is in the target's own units.
        is_signed: Whether an error may be below zero, so that there is no ratio of two of them.
        meaning: What it is, in a sentence, where the title does not say it.

    Example:
        >>> import torch
        >>> target = torch.tensor([[1.0, 1000.0], [3.0, 3000.0]])
        >>> METRICS["rmse"](target + torch.tensor([1.0, 500.0]), target).item()  # 1 and a half
        0.75
    """

    function: Callable[..., Tensor]
    higher_is_better: bool
    title: str
    has_unit: bool = False
    is_signed: bool = False
    meaning: str = ""

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
        check_shapes(prediction, target)
        by_target = prediction.mT.unsqueeze(-1), target.mT.unsqueeze(-1)  # (..., m, n, 1)
        mask = None if rows is None else rows.unsqueeze(-2).expand(by_target[0].shape[:-1])
        values = self.function(*by_target, rows=mask)
        if self.has_unit:
            return (values / (spreads(target, rows=rows) if spread is None else spread)).mean(-1)
        known = counted(prediction, target, rows)[1].abs().sum(dim=-2)
        return mean_over_varying(values, known)

    def title_for(self, targets: int) -> str:
        """Return what a reader knows it by where there are so many targets.

        Example:
            >>> METRICS["rmse"].title_for(1), [METRICS[n].title_for(2) for n in ("rmse", "r2")]
            ('RMSE', ['RMSE / spread', 'R2'])
        """
        return f"{self.title} / spread" if self.has_unit and targets > 1 else self.title

    def explain(self, targets: int) -> str:
        """Return what it means, in sentences; empty for a well-known one of one target."""
        if targets == 1:
            return self.meaning
        several = f"{self.title}: mean over the {targets} targets."
        if self.has_unit:
            several = (
                f"{self.title_for(targets)}: the {self.title} of every target divided by its "
                f"standard deviation among the scored rows, mean over the {targets} targets."
            )
        return f"{several} {self.meaning}".strip()

    @property
    def sign(self) -> float:
        """1 or -1: times this, a lower value is the better one for every metric."""
        return -1.0 if self.higher_is_better else 1.0

    @property
    def is_ratio(self) -> bool:
        """Whether two values are compared by their ratio: errors are, which are never negative."""
        return not (self.higher_is_better or self.is_signed)

    @property
    def unit(self) -> Unit:
        """In what a change is told: per cent of an error, or plain points of an agreement."""
        return "percent" if self.is_ratio else "points"

    def error(self, value: float | None) -> float:
        """Return what is lower for the better value of any metric, infinite where there is none.

        Example:
            >>> METRICS["rmse"].error(0.5), METRICS["r2"].error(0.5), METRICS["r2"].error(None)
            (0.5, -0.5, inf)
        """
        is_known = value is not None and math.isfinite(value)
        return self.sign * value if is_known and value is not None else math.inf


class MetricTable(dict[str, Metric]):
    """The metrics by name, and those that somebody else computes and logs.

    Of the latter there are as many as names (:func:`logged_metric`), so that going through the
    table does not meet them.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and is_logged(name))

    def __missing__(self, name: str) -> Metric:
        if (found := _LOGGED.fullmatch(name)) is None:
            raise KeyError(name)
        signed, mode, title = found.groups()
        return Metric(_not_ours, mode == "max", title, is_signed=signed is not None)


def _not_ours(*given: Any, **options: Any) -> Tensor:
    raise ArgumentError(
        "`metric` must be one that predictions can be scored by, got one that a module logs."
    )


METRICS: MetricTable = MetricTable(
    rmse=Metric(rmse, higher_is_better=False, title="RMSE", has_unit=True),
    mae=Metric(mae, higher_is_better=False, title="MAE", has_unit=True),
    mape=Metric(mape, higher_is_better=False, title="MAPE"),
    r2=Metric(r2, higher_is_better=True, title="R2"),
    pearson=Metric(pearson, higher_is_better=True, title="Pearson's R"),
)
METRICS["balanced-rmse"] = Metric(
    balanced_rmse,
    higher_is_better=False,
    title="balanced RMSE",
    has_unit=True,
    meaning="Balanced RMSE: every tenth of the target's range counts alike, however few its rows.",
)
_TAIL = "tail-rmse"
_ENDS = {"both": "highest and the tenth with the lowest", "high": "highest", "low": "lowest"}
_TAILS = {"both": _TAIL, "high": f"{_TAIL}-high", "low": f"{_TAIL}-low"}
for _focus in ("both", "high", "low"):
    METRICS[_TAILS[_focus]] = Metric(
        partial(tail_rmse, focus=_focus),
        higher_is_better=False,
        title="tail RMSE" if _focus == "both" else f"tail RMSE ({_focus})",
        has_unit=True,
        meaning=f"Tail RMSE: that of the tenth of the rows with the {_ENDS[_focus]} targets.",
    )
#: Those that can see how rare targets are predicted; the others hardly can.
RARE_METRICS = ("balanced-rmse", *_TAILS.values())


def focus_of(metric: str) -> Focus | None:
    """Return the end of the target that a metric looks at; None if it looks at all rows.

    Example:
        >>> focus_of("tail-rmse-high"), focus_of("tail-rmse"), focus_of("rmse")
        ('high', 'both', None)
    """
    return next((focus for focus in FOCUSES if _TAILS[focus] == metric), None)


def focused(metric: str, focus: Focus | None) -> str:
    """Return the metric that looks at one end of the target, or at both.

    Example:
        >>> focused("tail-rmse", "high"), focused("tail-rmse", None), focused("rmse", None)
        ('tail-rmse-high', 'tail-rmse', 'rmse')
    """
    if focus is None:
        return metric
    check_choice("focus", focus, FOCUSES)
    if metric not in (_TAIL, _TAILS[focus]):
        raise ArgumentError(
            f"`focus` must be None for the metric {metric!r}, which looks at all rows, got "
            f"{focus!r}. Take the metric {_TAIL!r}."
        )
    return _TAILS[focus]


def logged_metric(name: str, mode: Mode) -> str:
    """Return what a study calls a metric that a training of the user's logs by a name.

    Args:
        name: What it is logged as, such as ``"test_loss"``.
        mode: ``"min"`` if lower values are better, ``"max"`` if higher ones are.

    Example:
        >>> METRICS[logged_metric("test_loss", "min")].title, "min:test_loss" in METRICS
        ('test_loss', True)
    """
    return f"{check_choice('mode', mode, ('min', 'max'))}:{name}"


def is_logged(metric: str) -> bool:
    """Tell whether a metric is one that a training of the user's logs."""
    return _LOGGED.fullmatch(metric) is not None


def as_signed(metric: str) -> str:
    """Return the metric whose errors may be below zero, as a negative log-likelihood may be.

    Example:
        >>> METRICS["min:nll"].unit, METRICS[as_signed("min:nll")].unit
        ('percent', 'points')
    """
    return metric if metric.startswith(_SIGNED) else f"{_SIGNED}{metric}"


def check_metric(metric: str) -> str:
    """Return the name of a metric if there is such a one."""
    is_known = isinstance(metric, str) and metric in METRICS  # a logged one too
    return metric if is_known else check_choice("metric", metric, tuple(METRICS))


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
