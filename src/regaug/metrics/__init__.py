"""How good predictions are: RMSE, MAE, MAPE, R2, Pearson's R; of all rows, by target, by group."""

from regaug.metrics.functions import mae, mape, pearson, r2, rmse, spreads
from regaug.metrics.metric import METRICS, Metric, MetricName, Score
from regaug.metrics.scores import Scores, evaluate

__all__ = [
    "METRICS",
    "Metric",
    "MetricName",
    "Score",
    "Scores",
    "evaluate",
    "mae",
    "mape",
    "pearson",
    "r2",
    "rmse",
    "spreads",
]
