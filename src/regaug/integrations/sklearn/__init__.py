"""Estimators for scikit-learn and for pipelines of imbalanced-learn."""

from regaug.integrations.sklearn.regressor import AugmentedMLPRegressor
from regaug.integrations.sklearn.sampler import AugmentingSampler

__all__ = ["AugmentedMLPRegressor", "AugmentingSampler"]
