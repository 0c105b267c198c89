"""How good predictions are, by many metrics: of all rows, by target, by group, along the target."""

from regaug.metrics.along import FOCUSES, Focus, balanced_rmse, by_tenth, tail_rmse
from regaug.metrics.functions import mae, mape, pearson, r2, rmse, spreads
from regaug.metrics.logged import LoggedScores, read_scores
from regaug.metrics.metric import (
    METRICS,
    RARE_METRICS,
    Metric,
    MetricName,
    Mode,
    Score,
    as_signed,
    check_metric,
    focus_of,
    focused,
    is_logged,
    logged_metric,
)
from regaug.metrics.scores import Scores, evaluate

__all__ = [
    "FOCUSES",
    "METRICS",
    "RARE_METRICS",
    "Focus",
    "LoggedScores",
    "Metric",
    "MetricName",
    "Mode",
    "Score",
    "Scores",
    "as_signed",
    "balanced_rmse",
    "by_tenth",
    "check_metric",
    "evaluate",
    "focus_of",
    "focused",
    "is_logged",
    "logged_metric",
    "mae",
    "mape",
    "pearson",
    "r2",
    "read_scores",
    "rmse",
    "spreads",
    "tail_rmse",
]
