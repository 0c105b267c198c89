"""How many threads compute changes nothing that a seed fixes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from regaug import CEMS, FOMA, CMixup, FeatureMix, KernelPairSampler, Mixup, NearestBatchSampler
from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.training import Settings
from regaug.training.stacked import fit_many

X = torch.randn(300, 40, generator=torch.Generator().manual_seed(0))
Y = X[:, :3].square().sum(dim=1)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def with_each(make):
    found = []
    for count in (1, 2):
        with threads(count):
            found.append(make())
    return found


@pytest.mark.parametrize(
    "make", [FOMA, lambda: FOMA(k=3), CEMS, lambda: CEMS(neighbors=16), CMixup, FeatureMix, Mixup]
)
def test_augmentations_do_not_depend_on_threads(make):
    one, two = with_each(lambda: make().fit(X, Y)(X[:128], Y[:128]))
    assert all(map(torch.equal, one, two))


@pytest.mark.parametrize("make", [NearestBatchSampler, KernelPairSampler])
def test_batches_do_not_depend_on_threads(make):
    one, two = with_each(lambda: list(make(Y, 32)))
    assert one == two


@pytest.mark.parametrize("method", ["mixup", "foma-rho", "cems"])
def test_trainings_do_not_depend_on_threads(method):
    split = standardize(make_manifold("paraboloid", n=200, noise=0.3).split(seed=0))
    settings = [Settings(epochs=2, seed=seed) for seed in range(2)]
    one, two = with_each(lambda: fit_many(split, method, settings))
    for first, second in zip(one, two, strict=True):
        assert torch.equal(first.predictions["test"], second.predictions["test"])
