"""Real tables: what `fit` gives against scikit-learn's net, and the share of rows covered."""

import warnings

import numpy as np
import pytest

from regaug.data import load
from regaug.ensemble import leave_out
from regaug.ensemble.entry import fit

SPLITS = 10


def sklearn_error(data, train, test, seed):
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    net = make_pipeline(StandardScaler(), MLPRegressor(random_state=seed))
    model = TransformedTargetRegressor(net, transformer=StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.x[train], data.y[train, 0])
    return np.sqrt(np.mean((model.predict(data.x[test]) - data.y[test, 0]) ** 2))


def measure(name, method):
    """Return the errors of the model and of scikit-learn's net, and which test rows are covered."""
    data = load(name)
    errors, others, covered, chosen = [], [], [], []
    for seed in range(SPLITS):
        test = data.split(seed).test.rows
        train = np.setdiff1d(np.arange(len(data)), test)
        model = fit(leave_out(data, test), method=method, seed=seed, jobs=2)
        prediction = model.predict(data.x[test], interval=0.9)
        y = data.y[test]
        errors.append(np.sqrt(np.mean((prediction.mean.numpy() - y) ** 2)))
        covered.append((prediction.low.numpy() <= y) & (y <= prediction.high.numpy()))
        others.append(sklearn_error(data, train, test, seed))
        chosen.append(model.method)
    return np.mean(errors), np.mean(others), np.mean(covered), chosen


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "erm"])
@pytest.mark.parametrize("name", ["diabetes", "no2", "airfoil"])
def test_the_model_is_as_good_as_sklearns_net_and_its_intervals_cover(
    name, method, real_data, monkeypatch
):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    error, other, covered, chosen = measure(name, method)
    print(f"{name}, {method}: {error:.4g} against {other:.4g}, covers {covered:.1%}; {chosen}")
    assert error <= 1.02 * other
    assert 0.86 <= covered <= 0.94
