"""Baselines, to stand beside every study: what predicts without our nets."""

from regaug.training.baselines.base import Error, Fitted, Rows
from regaug.training.baselines.baseline import BASELINES, baseline_names, fit_baseline
from regaug.training.baselines.predictors import PREDICTORS, fit_predictor, load_predictor
from regaug.training.predictor import Predictor

__all__ = [
    "BASELINES",
    "PREDICTORS",
    "Error",
    "Fitted",
    "Predictor",
    "Rows",
    "baseline_names",
    "fit_baseline",
    "fit_predictor",
    "load_predictor",
]
