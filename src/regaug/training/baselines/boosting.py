"""Gradient boosting: trees that correct the ones before, an ensemble for each target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from regaug._files import entry
from regaug.training.baselines.base import Array, Error, Fitted, Rows, small_seed
from regaug.training.baselines.nodes import MOST_DEPTH, Forest
from regaug.training.baselines.stored import check_keys, check_stored, stored_tensor
from regaug.training.predictor import Predictor

Options: TypeAlias = Mapping[str, float]
# For small tables scikit-learn's 20 rows in a leaf are too many.
CANDIDATES: tuple[Options, ...] = (
    {"min_samples_leaf": 10, "max_leaf_nodes": 31, "learning_rate": 0.1, "max_features": 1.0},
    {"min_samples_leaf": 2, "max_leaf_nodes": 16, "learning_rate": 0.05, "max_features": 0.5},
    {"min_samples_leaf": 2, "max_leaf_nodes": 4, "learning_rate": 0.1, "max_features": 0.5},
)
# So many trees decide between these; more are added in rounds until one is no better.
FIRST, ROUND, MOST_TREES = 100, 50, 1000
# Numbers of the training inputs, times targets, up to which there is a choice.
MOST_NUMBERS = 2_500_000


@dataclass(frozen=True, eq=False)
class Boosting(Predictor):
    """Predicts a constant plus the sum of what the trees predict, for each target.

    Attributes:
        start: The constants, ``(m,)``, float64.
        forests: The trees of each target; their thresholds are float64.
        columns: Number of columns that it takes.
    """

    start: Tensor = field(repr=False)
    forests: tuple[Forest, ...]
    columns: int

    @property
    def inputs(self) -> int:
        """Number of columns that it takes."""
        return self.columns

    def _predict(self, x: Tensor) -> Tensor:
        pairs = zip(self.start.numpy(), self.forests, strict=True)
        columns = [forest.total(np.array([start]), x.numpy()) for start, forest in pairs]
        return torch.from_numpy(np.hstack(columns))

    def to_state(self) -> dict[str, object]:
        """Return the constants and the arrays of the trees."""
        return {"start": self.start, "trees": [forest.to_state() for forest in self.forests]}

    @classmethod
    def from_state(cls, state: Mapping[str, object], inputs: int, outputs: int) -> Self:
        """Return the ensembles that were written down."""
        check_keys(state, "start", "trees")
        start = stored_tensor(state, "start", torch.float64, (outputs,))
        trees = entry(state, "trees", list)
        check_stored(len(trees) == outputs, "trees", f"be of {outputs} target(s)")
        forests = (Forest.from_state(own, inputs, 1, torch.float64) for own in trees)
        return cls(start, tuple(forests), inputs)


def fit_boosting(train: Rows, validation: Rows, *, seed: int, error: Error) -> Fitted:
    """Boost with a few settings, of which the best goes on, and keep the best number of trees."""
    # Where a tree takes long there are many rows, and what suits few is not to be tried.
    candidates = CANDIDATES[: 1 if train.x.numel() * train.y.shape[1] > MOST_NUMBERS else None]
    growing = [_Growing(own, train, validation, seed, error) for own in candidates]
    for ensembles in growing:
        ensembles.grow(FIRST)
    best = min(growing, key=lambda ensembles: ensembles.lowest)
    while best.is_promising and len(best.errors) < MOST_TREES:
        best.grow(ROUND)
    trees = int(np.argmin(best.errors)) + 1
    return Fitted(best.first(trees), {**best.options, "trees": trees})


class _Growing:
    """An ensemble for each target, with equally many trees, and the error after each tree."""

    def __init__(
        self, options: Options, train: Rows, validation: Rows, seed: int, error: Error
    ) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        self.options, self.train, self.validation, self.error = options, train, validation, error
        # Early stopping of its own would set other rows aside than the split's.
        fixed = {"early_stopping": False, "warm_start": True, "max_depth": MOST_DEPTH}
        self.models = [
            HistGradientBoostingRegressor(**fixed, **options, random_state=small_seed(seed))
            for _ in range(train.y.shape[1])
        ]
        self.rounds: list[list[Forest]] = []
        self.errors: list[float] = []
        self.total = np.empty(0)  # what is predicted for the validation rows

    @property
    def lowest(self) -> float:
        return min(self.errors)

    @property
    def is_promising(self) -> bool:
        """Whether one of the last trees was the best."""
        return int(np.argmin(self.errors)) >= len(self.errors) - ROUND

    @property
    def start(self) -> Array:
        return np.array([model._baseline_prediction.item() for model in self.models])

    def grow(self, trees: int) -> None:
        """Add so many trees for each target."""
        before, x = len(self.errors), self.train.x.numpy()
        for model, column in zip(self.models, self.train.y.numpy().T, strict=True):
            model.set_params(max_iter=before + trees).fit(x, column)
        if not before:
            self.total = np.tile(self.start, (len(self.validation), 1))
        self.rounds.append([_forest(model, before) for model in self.models])
        stages = _stages(self.rounds[-1], self.total, self.validation.x.numpy())
        self.errors += [self.error(stage) for stage in stages]

    def first(self, trees: int) -> Boosting:
        """Return the first of the trees."""
        forests = [Forest.join(own).first(trees) for own in zip(*self.rounds, strict=True)]
        return Boosting(torch.from_numpy(self.start), tuple(forests), self.train.x.shape[1])


def _forest(model: Any, first: int) -> Forest:
    """Return the trees of a model from number ``first`` on."""
    names = ("left", "right", "feature_idx", "num_threshold", "value")
    trees = ([tree.nodes[name] for name in names] for (tree,) in model._predictors[first:])
    return Forest.join([Forest.grown(*tree) for tree in trees])


def _stages(forests: Sequence[Forest], total: Array, x: Array) -> Iterator[Tensor]:
    """Add a tree per target after the other to ``total``, and yield it after each."""
    columns = [forest.add_to(total[:, i : i + 1], x) for i, forest in enumerate(forests)]
    for _ in zip(*columns, strict=True):
        yield torch.from_numpy(total)
