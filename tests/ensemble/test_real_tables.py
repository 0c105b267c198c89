"""Real tables: the defaults against scikit-learn's net, and the share of rows covered."""

import warnings

import numpy as np
import pytest

from regaug.data import load
from regaug.ensemble import fit_ensemble, leave_out

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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "no2", "airfoil"])
def test_defaults_are_as_good_as_sklearns_net_and_intervals_cover(name, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    data = load(name)
    errors, others, covered = [], [], []
    for seed in range(SPLITS):
        test = data.split(seed).test.rows
        train = np.setdiff1d(np.arange(len(data)), test)
        model = fit_ensemble(leave_out(data, test), seed=seed)
        prediction = model.predict(data.x[test], interval=0.9)
        y = data.y[test]
        errors.append(np.sqrt(np.mean((prediction.mean.numpy() - y) ** 2)))
        covered.append((prediction.low.numpy() <= y) & (y <= prediction.high.numpy()))
        others.append(sklearn_error(data, train, test, seed))
    assert np.mean(errors) <= 1.02 * np.mean(others)
    assert 0.86 <= np.mean(covered) <= 0.94
