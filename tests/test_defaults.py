"""What a seed fixes does not depend on the user's default dtype or default device."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from sklearn.datasets import make_regression

import regaug
from regaug import CEMS, FOMA, CMixup, Compose, FeatureMix, GaussianNoise, Mixup, SKMixup
from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.ensemble import Ensemble
from regaug.integrations.sklearn import AugmentedMLPRegressor, AugmentingSampler
from regaug.training import Settings, fit_many

pytestmark = pytest.mark.filterwarnings("ignore:.*nets were trained for all max_iter")
X, Y = make_regression(60, 4, random_state=0, noise=10)
AUGMENTATIONS = {
    "foma": FOMA,
    "foma, two_nn": lambda: FOMA(k="two_nn"),
    "mixup": Mixup,
    "mixup, near": lambda: Mixup(pairs="neighbors"),
    "mixup, assigned": lambda: Mixup(pairs="assignment"),
    "c-mixup": CMixup,
    "sk-mixup": SKMixup,
    "feature-mix": FeatureMix,
    "cems": CEMS,
    "noise": GaussianNoise,
    "chain": lambda: Compose(Mixup(), FOMA()),
}


@contextmanager
def defaults(kind):
    """Change what torch makes numbers of; what lands on the device "meta" has no numbers."""
    dtype = torch.get_default_dtype()
    if kind == "float64":
        torch.set_default_dtype(torch.float64)
    else:
        torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)


KINDS = pytest.mark.parametrize("kind", ["float64", "meta"])


def both(kind, make):
    plain = make()
    with defaults(kind):
        return plain, make()


@KINDS
@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_augmentation_gives_the_same_batches(kind, name):
    x, y = torch.from_numpy(X[:16]).float(), torch.from_numpy(Y[:16, None]).float()

    def make():
        augment = AUGMENTATIONS[name]().fit(x, y)
        whole = [augment(x, y) for _ in range(3)]
        return [*whole, augment(x, y, groups=[0, 1] * 8)]

    for (old_x, old_y), (new_x, new_y) in zip(*both(kind, make), strict=True):
        assert torch.equal(old_x, new_x)
        assert torch.equal(old_y, new_y)


@KINDS
@pytest.mark.parametrize("method", ["foma-rho", "ada", "cems"])
def test_the_regressor_predicts_the_same(kind, method):
    def make():
        model = AugmentedMLPRegressor(method, members=2, max_iter=2, random_state=0)
        return model.fit(X, Y).predict(X)

    plain, other = both(kind, make)
    np.testing.assert_array_equal(plain, other)


@KINDS
@pytest.mark.parametrize("method", ["foma-rho", "ada", "cems", "k-mixup", "feature-mix", "smogn"])
def test_the_sampler_makes_the_same_rows(kind, method):
    settings = {"focus": "high"} if method == "smogn" else None
    plain, other = both(
        kind,
        lambda: AugmentingSampler(method, method_settings=settings, random_state=0).fit_resample(
            X, Y
        ),
    )
    for old, new in zip(plain, other, strict=True):
        np.testing.assert_array_equal(old, new)


@KINDS
def test_stacked_runs_end_with_the_same_weights(kind):
    split = standardize(make_manifold("sine", n=60).split(0))
    plain, other = both(kind, lambda: fit_many(split, "mixup", [Settings(epochs=2, seed=1)]))
    for name, weight in plain[0].weights.items():
        assert torch.equal(weight, other[0].weights[name])


@KINDS
def test_a_model_is_fitted_stored_and_read_alike(kind, tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)

    def make():
        model = regaug.fit(frame, target="y", method="erm", members=1, quick=True)
        model.save(tmp_path / kind)
        found = Ensemble.load(tmp_path / kind).predict(frame, interval=0.9)
        return [model.predict(frame).mean, found.low, found.high]

    for old, new in zip(*both(kind, make), strict=True):
        assert torch.equal(old, new)


@KINDS
def test_the_defaults_are_as_they_were_afterwards_even_after_an_error(kind):
    with defaults(kind):
        before = torch.get_default_dtype(), torch.get_default_device()
        with pytest.raises(ValueError, match="NaN"):
            AugmentedMLPRegressor().fit(X * np.nan, Y)
        assert (torch.get_default_dtype(), torch.get_default_device()) == before
