"""
skorch: a method in a grid search
=================================

``AugmentedNetRegressor`` is skorch's ``NeuralNetRegressor`` with two more parameters,
``method`` and ``method_settings``. So a grid search can try methods as it tries learning rates.
Keep ``"erm"``, plain training, in the grid.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from torch import nn

from regaug.integrations.skorch import AugmentedNetRegressor

x, y = load_diabetes(return_X_y=True)
x = (x / x.std(0)).astype(np.float32)
y = ((y - y.mean()) / y.std()).astype(np.float32)[:, None]

net = AugmentedNetRegressor(
    nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)),
    optimizer=torch.optim.Adam,
    lr=3e-3,
    max_epochs=15,
    train_split=None,
    verbose=0,
)
torch.manual_seed(0)
grid = {"method": ["erm", "noise", "mixup", "c-mixup", "foma-rho"]}
search = GridSearchCV(net, grid, cv=4, scoring="neg_root_mean_squared_error", refit=False)
search.fit(x, y)

# %%
# A line is a fold: what a method changes is seen along it, whatever the fold's own difficulty. Only
# what is alike on every line is worth a second look, and four folds are few: ``regaug.compare``
# says how surely. The methods have their default settings here.

scores = -np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(4)])
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
for fold in scores:
    axis.plot(fold, range(5), color="0.85", zorder=0)
axis.plot(scores.T, range(5), "o", color="0.6")
axis.plot(scores.mean(0), range(5), "D", color="#0072b2", label="mean of the folds")
axis.set(yticks=range(5), yticklabels=grid["method"], xlabel="RMSE of a fold (targets have 1)")
axis.invert_yaxis()
axis.legend(frameon=False)
plt.show()
