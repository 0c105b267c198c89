"""The baselines that can be stored, by name: how they are fitted, and how they come back."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from torch import Tensor

from regaug._checks import check_integer
from regaug._registry import lookup
from regaug.exceptions import ArgumentError
from regaug.metrics import METRICS
from regaug.training.baselines.base import Error, Fitted, Rows
from regaug.training.baselines.boosting import Boosting, fit_boosting
from regaug.training.baselines.linear import Linear, fit_ridge
from regaug.training.baselines.mean import Mean, fit_mean
from regaug.training.baselines.process import GaussianProcess, fit_process
from regaug.training.baselines.trees import Trees, fit_trees
from regaug.training.predictor import Predictor


class Fit(Protocol):
    """Fits to training rows, choosing what has the smallest error on the validation rows."""

    def __call__(self, train: Rows, validation: Rows, *, seed: int, error: Error) -> Fitted:
        """Return what was fitted."""


class Baseline(NamedTuple):
    """One baseline: how it is fitted, and what comes out."""

    fit: Fit
    predictor: type[Predictor]


PREDICTORS: dict[str, Baseline] = {
    "mean": Baseline(fit_mean, Mean),
    "ridge": Baseline(fit_ridge, Linear),
    "boosting": Baseline(fit_boosting, Boosting),
    "trees": Baseline(fit_trees, Trees),
    "gp": Baseline(fit_process, GaussianProcess),
}


def fit_predictor(
    name: str, train: Rows, validation: Rows, *, seed: int = 0, error: Error | None = None
) -> Fitted:
    """Fit a baseline to rows in any scale, and return what predicts.

    Args:
        name: One of ``"mean"``, ``"ridge"``, ``"boosting"``, ``"trees"`` and ``"gp"``;
            :func:`regaug.training.baselines.fit_baseline` says what they are.
        train: Everything is fitted on these rows.
        validation: What there is to choose (a penalty, a number of trees) is chosen on these.
        seed: Seed of what is drawn.
        error: From predictions ``(n, m)`` for the validation rows to what is to be small, such as
            an error in other units than those of ``y``; None takes the RMSE.

    Returns:
        The predictor, in the scale of the rows, and what was chosen.

    Example:
        >>> import torch
        >>> x = torch.linspace(0.0, 1.0, 20).reshape(20, 1)
        >>> rows = Rows(x, 3.0 * x)
        >>> fitted = fit_predictor("ridge", rows, rows)
        >>> fitted.predictor(torch.tensor([[0.5]])).round(decimals=2).tolist(), fitted.chosen
        ([[1.5]], {'penalty': 0.01})
        >>> state = fitted.predictor.to_state()  # tensors, for a file
        >>> predictor = load_predictor("ridge", state, inputs=1, outputs=1)
    """
    own = lookup("baseline", name, PREDICTORS)
    check_integer("seed", seed, 0)
    shapes = [(rows.x.shape[1], rows.y.shape[1]) for rows in (train, validation)]
    if shapes[0] != shapes[1]:
        raise ArgumentError(
            "`train` and `validation` must have equal numbers of columns and of targets, got "
            f"{shapes[0]} and {shapes[1]}."
        )

    def error_in_scale(prediction: Tensor) -> float:
        return METRICS["rmse"](prediction, validation.y).item()

    return own.fit(train, validation, seed=seed, error=error or error_in_scale)


def load_predictor(
    name: str, state: Mapping[str, object], *, inputs: int, outputs: int
) -> Predictor:
    """Return a predictor from what its ``to_state`` wrote down.

    Args:
        name: The baseline that it is.
        state: Nobody vouches for it: every shape, dtype, index and number is checked.
        inputs: Columns that it must take.
        outputs: Targets that it must predict.

    Raises:
        DataError: It is not such a state.
    """
    return lookup("baseline", name, PREDICTORS).predictor.from_state(state, inputs, outputs)
