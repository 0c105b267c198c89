"""Gradient boosting: that of scikit-learn to the last bit, stored as arrays."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingRegressor

from regaug.training.baselines import Rows, fit_predictor
from regaug.training.baselines import boosting as module
from regaug.training.baselines.base import small_seed
from regaug.training.baselines.boosting import CANDIDATES, Boosting
from regaug.training.baselines.nodes import MOST_DEPTH

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3))
Y = 10.0 * X[:, :1] ** 2 + RNG.standard_normal((90, 1))
INPUTS = {
    "plain": X,
    "ties": X.round(),
    "a constant column": np.column_stack([X[:, 0], np.ones(90), X[:, 1]]),
    "constant": np.ones((90, 2)),
    "beyond float32": 1.0 + 1e-9 * X,
    "large": 1e30 * X,
    "one column": X[:, :1],
}


def make_rows(x, y=Y):
    x, y = torch.tensor(x), torch.tensor(y)
    return Rows(x[:60], y[:60]), Rows(x[60:], y[60:]), x


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 6)
    monkeypatch.setattr(module, "ROUND", 6)
    monkeypatch.setattr(module, "MOST_TREES", 18)


def twins(train, fitted, seed):
    """Return the models of scikit-learn that were chosen, one for each target."""
    own = dict(fitted.chosen)
    trees = own.pop("trees")
    fixed = {"early_stopping": False, "max_depth": MOST_DEPTH, "random_state": small_seed(seed)}
    return [
        HistGradientBoostingRegressor(max_iter=trees, **fixed, **own).fit(train.x, column)
        for column in train.y.numpy().T
    ]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("inputs", INPUTS)
def test_predictions_are_those_of_scikit_learn_to_the_last_bit(inputs, outputs, seed, few):
    y = Y * np.arange(1.0, outputs + 1) + np.sin(Y) ** np.arange(outputs)
    train, validation, x = make_rows(INPUTS[inputs], y)
    fitted = fit_predictor("boosting", train, validation, seed=seed)
    # Grown in rounds, from which the last trees are taken away, they are those grown at once.
    models = twins(train, fitted, seed)
    thresholds = np.concatenate(
        [tree.nodes["num_threshold"] for model in models for (tree,) in model._predictors]
    )
    near = torch.from_numpy(np.concatenate([np.nextafter(thresholds, np.inf), thresholds]))
    new = torch.cat([x, x.flip(0) / 3.0, x * 7.0, near[:, None].expand(-1, x.shape[1])])
    expected = np.column_stack([model.predict(new.numpy()) for model in models])
    assert np.array_equal(fitted.predictor(new).numpy(), expected)
    back = Boosting.from_state(fitted.predictor.to_state(), x.shape[1], outputs)
    assert np.array_equal(back(new).numpy(), expected)


def test_the_number_of_trees_and_the_settings_have_the_smallest_error(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 10)
    monkeypatch.setattr(module, "ROUND", 10)
    train, validation, _ = make_rows(X)
    fitted = fit_predictor("boosting", train, validation)
    found = (fitted.predictor(validation.x) - validation.y).square().mean().sqrt().item()
    errors = []
    for own in CANDIDATES:
        fixed = {"early_stopping": False, "max_iter": 10, "random_state": small_seed(0)}
        model = HistGradientBoostingRegressor(**fixed, **own).fit(train.x, train.y[:, 0])
        stages = np.stack(list(model.staged_predict(validation.x.numpy())))
        errors.append(np.sqrt(np.square(stages - validation.y[:, 0].numpy()).mean(axis=1)).min())
    assert found <= min(errors) + 1e-12


def test_the_best_goes_on_until_a_round_brings_nothing(monkeypatch):
    errors = []

    def error(prediction):
        errors.append(abs(len(errors) - 269.0))  # the best is the 270th that is seen
        return errors[-1]

    monkeypatch.setattr(module, "FIRST", 100)
    monkeypatch.setattr(module, "ROUND", 50)
    monkeypatch.setattr(module, "CANDIDATES", CANDIDATES[:2])
    train, validation, _ = make_rows(X)
    fitted = fit_predictor("boosting", train, validation, error=error)
    # 100 of the first, 100 of the second, 50 more of it, of which the last is the best, and so on.
    assert fitted.chosen == {**CANDIDATES[1], "trees": 170}
    assert len(errors) == 350


def test_large_tables_have_no_choice(monkeypatch, few):
    train, validation, _ = make_rows(X)
    monkeypatch.setattr(module, "MOST_NUMBERS", train.x.numel() - 1)
    errors = []

    def error(prediction):
        errors.append(0.0)
        return float(len(errors))

    fit_predictor("boosting", train, validation, error=error)
    assert len(errors) == 12  # two rounds of one


def test_too_few_rows_for_a_leaf_are_a_constant(few):
    rows = Rows(torch.tensor(X[:3]), torch.tensor(Y[:3]))
    fitted = fit_predictor("boosting", rows, rows)
    predictions = fitted.predictor(torch.tensor(X))
    assert predictions.unique().numel() == 1
    assert predictions[0].item() == pytest.approx(Y[:3].mean())
