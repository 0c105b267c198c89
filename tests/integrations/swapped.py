"""A plugin of pytest: other packages' own tests meet our classes under the names of theirs.

``REGAUG_SWAP`` names the package and the method, such as ``skorch:mixup``.
"""

import inspect
import os

import pytest
import torch


def pytest_configure():
    """Put ours in the place of theirs, before any test is read."""
    package, method = os.environ["REGAUG_SWAP"].split(":")
    {"skorch": swap_skorch, "sklearn": swap_sklearn}[package](method)


def swap_skorch(chosen):
    import skorch

    from regaug.integrations.skorch import AugmentedNetRegressor

    class NeuralNetRegressor(AugmentedNetRegressor):
        """Ours under the name that error messages are compared with."""

        def __init__(self, module, *args, method=chosen, **options):
            super().__init__(module, *args, method=method, **options)

    skorch.NeuralNetRegressor = NeuralNetRegressor


def swap_sklearn(method):
    import sklearn.neural_network

    from regaug.integrations.sklearn import AugmentedMLPRegressor

    shared = inspect.signature(AugmentedMLPRegressor).parameters

    def make_regressor(**options):
        """Return ours with the parameters that both have, and scikit-learn's default of one."""
        known = {name: value for name, value in options.items() if name in shared}
        return AugmentedMLPRegressor(method, members=2, **{"early_stopping": False, **known})

    make_regressor.__name__ = "MLPRegressor"  # the names of tests have it
    sklearn.neural_network.MLPRegressor = make_regressor


@pytest.fixture(autouse=True)
def _one_thread():
    """Undo what scikit-learn's tests set: small nets are slower with several threads."""
    torch.set_num_threads(1)
