"""Other people's tools take our estimators as they take scikit-learn's own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from regaug.integrations.sklearn import AugmentedMLPRegressor

SMALL = {"members": 2, "hidden_layer_sizes": (16,), "max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 3))
    return x, x @ [2.0, -1.0, 0.0] + 0.1 * rng.standard_normal(120)


def make_net(method="foma-rho", **changes):
    return AugmentedMLPRegressor(method, **{**SMALL, "early_stopping": False, **changes})


@pytest.mark.filterwarnings("ignore")
def test_mapie_makes_intervals_that_cover_as_they_say(rows):
    regression = pytest.importorskip("mapie.regression", reason="MAPIE is not installed")
    x, y = rows
    found = regression.CrossConformalRegressor(
        make_net(), confidence_level=0.9, method="plus", cv=KFold(5)
    )
    mean, bounds = found.fit_conformalize(x, y).predict_interval(x)
    assert mean.shape == y.shape
    inside = (bounds[:, 0, 0] <= y) & (y <= bounds[:, 1, 0])
    assert 0.85 <= inside.mean() <= 1.0


@pytest.mark.filterwarnings("ignore")
def test_shap_explains_what_a_prediction_is_made_of(rows):
    shap = pytest.importorskip("shap", reason="SHAP is not installed")
    x, y = rows
    net = make_net().fit(x, y)
    found = shap.Explainer(net.predict, x[:40], algorithm="permutation", seed=0)(x[:10])
    # What the columns add to the mean is the prediction, and the third column adds little.
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, net.predict(x[:10]), rtol=1e-3, atol=1e-3)
    weights = np.abs(found.values).mean(axis=0)
    assert weights[2] < 0.2 * weights[:2].min()


def test_optuna_searches_its_parameters(rows):
    optuna = pytest.importorskip("optuna")
    x, y = rows

    def objective(trial):
        method = trial.suggest_categorical("method", ["erm", "mixup"])
        rate = trial.suggest_float("learning_rate_init", 1e-5, 1e-2, log=True)
        net = clone(make_net()).set_params(method=method, learning_rate_init=rate)
        return cross_val_score(net, x, y, cv=2, error_score="raise").mean()

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0)
        )
        study.optimize(objective, n_trials=3)
    finally:
        optuna.logging.set_verbosity(level)
    assert study.best_value == max(trial.value for trial in study.trials)
    assert len({trial.value for trial in study.trials}) == 3
