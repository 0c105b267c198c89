"""
New rows in a pipeline of imbalanced-learn
==========================================

``AugmentingSampler`` puts new rows below the training rows, for any regressor. In the pipeline
of imbalanced-learn it acts when the pipeline is fitted, and at no other time: cross-validation
makes new rows from training folds alone.
"""

import matplotlib.pyplot as plt
import numpy as np
from imblearn.pipeline import Pipeline
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeRegressor

from regaug.integrations.sklearn import AugmentingSampler

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 60))[:, None]
y = np.sin(x[:, 0]) + 0.2 * rng.normal(size=60)

# %%
# What the sampler makes
# ----------------------

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
for axis, method in zip(axes, ("mixup", "foma-rho", "cems"), strict=True):
    more_x, more_y = AugmentingSampler(method, rows=120, random_state=0).fit_resample(x, y)
    axis.scatter(more_x[60:], more_y[60:], s=12, color="#0072b2", label="new rows")
    axis.scatter(x, y, s=18, color="#d55e00", label="training rows")
    axis.set(title=method, xlabel="input")
axes[0].set_ylabel("target")
axes[0].legend(frameon=False)

# %%
# Does it help?
# -------------
# A tree and a line, each without new rows and with as many as there are. The mean of ten folds
# has an error of its own, the bar.

models = {"tree": DecisionTreeRegressor(min_samples_leaf=3, random_state=0), "ridge": Ridge()}
choices = {"none": 0, "mixup": 1.0, "foma-rho": 1.0, "cems": 1.0}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    for place, (method, rows) in enumerate(choices.items()):
        sampler = AugmentingSampler(method if rows else "mixup", rows=rows, random_state=0)
        pipe = Pipeline([("sampler", sampler), ("model", model)])
        scores = -cross_val_score(pipe, x, y, cv=10, scoring="neg_root_mean_squared_error")
        axis.errorbar(place, scores.mean(), scores.std() / 10**0.5, fmt="o", color="#0072b2")
    axis.set(title=name, xticks=range(4), xticklabels=choices, xlabel="new rows")
    axis.set_ylim(bottom=0)
axes[0].set_ylabel("RMSE in cross-validation")
plt.show()
