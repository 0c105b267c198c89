"""Extremely randomized trees: the mean of many trees with random thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regaug.training.baselines.base import (
    Array,
    Error,
    Fitted,
    Rows,
    best_of,
    small_seed,
)
from regaug.training.baselines.nodes import MOST_DEPTH, Forest
from regaug.training.baselines.stored import check_keys
from regaug.training.predictor import Predictor

# Rows in a leaf, at least, and the share of the columns that a node may look at.
CANDIDATES = ((1, 1.0), (1, 0.5), (5, 1.0))
# In the end, to choose by at most, and however many rows there are. More trees are a little better
# each time they double, and take twice the time and the file.
TREES, FIRST_TREES, FEWEST_TREES = 250, 50, 50
# Training rows times trees: fewer trees for many rows, as the nodes are to be stored.
MOST_LEAVES = 600_000


@dataclass(frozen=True, eq=False)
class Trees(Predictor):
    """Predicts the mean of what the trees predict.

    Attributes:
        forest: The trees; their thresholds are float32, as what they are compared with.
        columns: Number of columns that it takes.
    """

    forest: Forest
    columns: int

    @property
    def inputs(self) -> int:
        """Number of columns that it takes."""
        return self.columns

    def _predict(self, x: Tensor) -> Tensor:
        total = self.forest.total(np.zeros(self.forest.outputs), x.numpy())
        return torch.from_numpy(total / len(self.forest))

    def to_state(self) -> dict[str, object]:
        """Return the arrays of the trees."""
        return {"trees": self.forest.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, object], inputs: int, outputs: int) -> Self:
        """Return the trees that were written down."""
        check_keys(state, "trees")
        return cls(Forest.from_state(state["trees"], inputs, outputs, torch.float32), inputs)


def fit_trees(train: Rows, validation: Rows, *, seed: int, error: Error) -> Fitted:
    """Grow trees, with the leaves and the share of columns that the validation rows choose.

    A part of the trees is enough to choose by; then the chosen forest gets the others.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    trees = min(TREES, max(FEWEST_TREES, MOST_LEAVES // len(train)))
    x, y = train.x.numpy(), train.y.numpy()
    y = y[:, 0] if y.shape[1] == 1 else y  # scikit-learn warns of a column
    columns = x.shape[1]
    models = [
        ExtraTreesRegressor(
            min(FIRST_TREES, trees // 2),
            min_samples_leaf=leaf,
            max_features=share,
            max_depth=MOST_DEPTH,
            random_state=small_seed(seed),
            n_jobs=1,
            warm_start=True,
        ).fit(x, y)
        for leaf, share in CANDIDATES
    ]
    predictors = (Trees(_forest(model), columns) for model in models)
    best, _ = best_of((predictor(validation.x) for predictor in predictors), error)
    models[best].set_params(n_estimators=trees).fit(x, y)
    leaf, share = CANDIDATES[best]
    forest = _forest(models[best])
    return Fitted(Trees(forest, columns), {"leaf": leaf, "columns": share, "trees": trees})


def _forest(model: Any) -> Forest:
    trees = (estimator.tree_ for estimator in model.estimators_)
    return Forest.join(
        [
            Forest.grown(
                tree.children_left,
                tree.children_right,
                tree.feature,
                _round_down(tree.threshold),
                tree.value[:, :, 0],
            )
            for tree in trees
        ]
    )


def _round_down(threshold: Array) -> NDArray[np.float32]:
    """Return the largest float32 numbers that are not above: the same for inputs in float32."""
    rounded = threshold.astype(np.float32)
    return np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)
