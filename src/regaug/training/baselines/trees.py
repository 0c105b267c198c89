"""Extremely randomized trees: the mean of many trees with random thresholds."""

from collections.abc import Mapping, Sequence
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
    trees = min(TREES, max(FEWEST_TREES, MOST_LEAVES // len(train)))
    first, columns = min(FIRST_TREES, trees // 2), train.x.shape[1]
    # Those that scikit-learn's forest of this seed gives its trees.
    seeds = np.random.RandomState(small_seed(seed)).randint(np.iinfo(np.int32).max, size=trees)
    grown = [_grow(train, seeds[:first], *candidate) for candidate in CANDIDATES]
    predictors = (Trees(_forest(own), columns) for own in grown)
    best, _ = best_of((predictor(validation.x) for predictor in predictors), error)
    leaf, share = CANDIDATES[best]
    forest = _forest([*grown[best], *_grow(train, seeds[first:], leaf, share)])
    return Fitted(Trees(forest, columns), {"leaf": leaf, "columns": share, "trees": trees})


def _grow(train: Rows, seeds: NDArray[np.int64], leaf: int, share: float) -> list[Any]:
    """Grow a tree for each seed: those of scikit-learn's forest.

    That checks and copies the parameters of every tree, a third of the time on a few hundred rows.
    """
    from sklearn import config_context
    from sklearn.tree import ExtraTreeRegressor

    x = np.ascontiguousarray(train.x.numpy(), dtype=np.float32)
    y = np.ascontiguousarray(train.y.numpy(), dtype=np.float64)
    with config_context(skip_parameter_validation=True):
        return [
            ExtraTreeRegressor(
                min_samples_leaf=leaf, max_features=share, max_depth=MOST_DEPTH, random_state=own
            )
            .fit(x, y, check_input=False)
            .tree_
            for own in seeds.tolist()
        ]


def _forest(trees: Sequence[Any]) -> Forest:
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
