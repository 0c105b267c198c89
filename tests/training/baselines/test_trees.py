"""Extremely randomized trees: those of scikit-learn to the last bit, stored as arrays."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesRegressor

from regaug.training.baselines import Rows, fit_predictor
from regaug.training.baselines import trees as module
from regaug.training.baselines.base import small_seed
from regaug.training.baselines.nodes import MOST_DEPTH
from regaug.training.baselines.trees import CANDIDATES, TREES, Trees, fit_trees

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
NOISY = (X[:, :1] ** 2 + 0.1 * RNG.standard_normal((60, 1))) * 10.0
# Rows that trees may stumble over: ties, constants, few values, numbers that float32 cannot tell
# apart, huge ones.
INPUTS = {
    "plain": X,
    "ties": X.round(),
    "a constant column": np.column_stack([X[:, 0], np.ones(60), X[:, 1]]),
    "constant": np.ones((60, 2)),
    "whole numbers": RNG.integers(0, 3, (60, 5)).astype(float),
    "beyond float32": 1.0 + 1e-9 * X,
    "large": 1e30 * X,
    "powers": 2.0 ** -np.arange(60.0)[:, None],
    "one column": X[:, :1],
}


def make_rows(x, y=NOISY):
    x, y = torch.tensor(x), torch.tensor(y)
    return Rows(x[:40], y[:40]), Rows(x[40:], y[40:]), x


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(module, "TREES", 10)
    monkeypatch.setattr(module, "FEWEST_TREES", 2)


def twin(train, fitted, seed):
    """Return the model of scikit-learn that was chosen."""
    own = fitted.chosen
    y = train.y.numpy()
    return ExtraTreesRegressor(
        own["trees"],
        min_samples_leaf=own["leaf"],
        max_features=own["columns"],
        max_depth=MOST_DEPTH,
        random_state=small_seed(seed),
        n_jobs=1,
    ).fit(train.x.numpy(), y[:, 0] if y.shape[1] == 1 else y)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("inputs", INPUTS)
def test_predictions_are_those_of_scikit_learn_to_the_last_bit(inputs, outputs, seed, few):
    y = NOISY * np.arange(1.0, outputs + 1) + np.sin(NOISY) ** np.arange(outputs)
    train, validation, x = make_rows(INPUTS[inputs], y)
    fitted = fit_predictor("trees", train, validation, seed=seed)
    # Rows between the training rows, on them, and far outside.
    new = torch.cat([x, x.flip(0) / 3.0, x * 7.0, torch.full((1, x.shape[1]), -1e37)])
    expected = twin(train, fitted, seed).predict(new.numpy()).reshape(-1, outputs)
    assert np.array_equal(fitted.predictor(new).numpy(), expected)
    back = Trees.from_state(fitted.predictor.to_state(), x.shape[1], outputs)
    assert np.array_equal(back(new).numpy(), expected)


@pytest.mark.parametrize("inputs", INPUTS)
def test_inputs_at_a_threshold_go_where_scikit_learn_sends_them(inputs, few):
    train, validation, _ = make_rows(INPUTS[inputs])
    fitted = fit_predictor("trees", train, validation)
    model = twin(train, fitted, 0)
    thresholds = np.concatenate([own.tree_.threshold for own in model.estimators_])
    near = np.concatenate([np.nextafter(thresholds, np.inf), thresholds])
    new = np.repeat(near[:, None], train.x.shape[1], axis=1)
    found = fitted.predictor(torch.from_numpy(new)).numpy()[:, 0]
    assert np.array_equal(found, model.predict(new))


def test_all_trees_are_grown_and_a_state_is_small():
    train, validation, _ = make_rows(X)
    fitted = fit_trees(train, validation, seed=0, error=lambda prediction: 0.0)
    assert (len(fitted.predictor.forest), fitted.chosen["trees"]) == (TREES, TREES)
    assert (fitted.chosen["leaf"], fitted.chosen["columns"]) == CANDIDATES[0]
    state = fitted.predictor.to_state()["trees"]
    size = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    assert size <= TREES * 40 * 20  # 20 bytes for a row and a tree


def test_the_validation_rows_choose_the_leaves(few):
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.standard_normal((300, 1)))
    noise = torch.from_numpy(rng.standard_normal((300, 1)))
    for y, leaf in ((noise, 5), (100.0 * x, 1)):
        train, validation = Rows(x[:150], y[:150]), Rows(x[150:], y[150:])
        assert fit_predictor("trees", train, validation).chosen["leaf"] == leaf


def test_many_rows_get_fewer_trees(monkeypatch):
    monkeypatch.setattr(module, "MOST_LEAVES", 40 * 60)
    train, validation, _ = make_rows(X)
    assert fit_predictor("trees", train, validation).chosen["trees"] == 60
    monkeypatch.setattr(module, "MOST_LEAVES", 1)
    assert fit_predictor("trees", train, validation).chosen["trees"] == module.FEWEST_TREES


def test_trees_are_never_deeper_than_can_be_read(few):
    # A random threshold between powers of two splits off the largest few, again and again.
    x = 2.0 ** np.arange(-140.0, 120.0, 0.5)[:, None]
    rows = Rows(torch.tensor(x), torch.tensor(np.arange(float(len(x)))[:, None]))
    predictor = fit_predictor("trees", rows, rows).predictor
    Trees.from_state(predictor.to_state(), 1, 1)
