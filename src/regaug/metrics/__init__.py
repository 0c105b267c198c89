"""How good predictions are: RMSE, MAE, MAPE, R2, Pearson's R; of all rows, by target, by group."""

from regaug.metrics.functions import mae, mape, pearson, r2, rmse, spreads
from regaug.metrics.logged import LoggedScores, read_scores
from regaug.metrics.metric import (
    METRICS,
    Metric,
    MetricName,
    Mode,
    Score,
    as_signed,
    check_metric,
    is_logged,
    logged_metric,
)
from regaug.metrics.scores import Scores, evaluate

__all__ = [
    "METRICS",
    "LoggedScores",
    "Metric",
    "MetricName",
    "Mode",
    "Score",
    "Scores",
    "as_signed",
    "check_metric",
    "evaluate",
    "is_logged",
    "logged_metric",
    "mae",
    "mape",
    "pearson",
    "r2",
    "read_scores",
    "rmse",
    "spreads",
]
