"""SMOGN in a training, against a slow version of the same formula."""

import numpy as np
import pytest
import torch

from regaug import SMOGN
from regaug.exceptions import ArgumentError, NotFittedError, PlaceError
from regaug.methods import Method
from regaug.training import Settings, fit_many


def make_rows(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = np.exp(x[:, :1]) + 0.1 * rng.standard_normal((n, 1))
    return torch.from_numpy(x), torch.from_numpy(y)


def slow_row(x, y, rare, uniform, *, neighbors, sigma):
    """One new row by the words of the docstring, with loops."""
    d, m = x.shape[1], y.shape[1]
    i = rare[int(uniform[0] * len(rare))]
    others = sorted((float(torch.dist(x[i], x[j])), j) for j in rare if j != i)[:neighbors]
    apart, j = others[int(uniform[1] * neighbors)]
    distances = sorted(own for own, _ in others)
    reach = distances[(len(distances) - 1) // 2] / 2
    if apart < reach:
        share = float(uniform[2])
        return x[i] + share * (x[j] - x[i]), y[i] + share * (y[j] - y[i])
    noise = torch.special.ndtri(uniform[3:])
    width = min(reach, sigma)
    return x[i] + width * noise[:d], y[i] + width * noise[d : d + m]


def test_new_rows_are_those_of_the_slow_version():
    x, y = make_rows()
    augment = SMOGN(neighbors=3, sigma=0.2, focus="high", rate=1.0).fit(x, y)
    augment.generator.manual_seed(5)
    new_x, new_y = augment(x[:40], y[:40])
    generator = torch.Generator().manual_seed(5)
    uniform = torch.rand(40 * 8, generator=generator, dtype=torch.float64).reshape(40, 8)
    rare = y[:, 0].argsort(descending=True)[:20].sort().values.tolist()
    for row, own in enumerate(uniform):
        slow_x, slow_y = slow_row(x, y, rare, own[1:], neighbors=3, sigma=0.2)
        torch.testing.assert_close(new_x[row], slow_x)
        torch.testing.assert_close(new_y[row], slow_y)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_so_many_rows_become_new_ones(rate):
    x, y = make_rows(4_000)
    augment = SMOGN(focus="high", rate=rate).fit(x, y)
    new_x, new_y = augment(x, y)
    is_new = (new_x != x).any(dim=1)
    assert abs(float(is_new.double().mean()) - rate) < 0.03
    assert torch.equal(new_y[~is_new], y[~is_new])
    tenth = y.quantile(0.9)
    assert float((new_y[is_new] > tenth - 0.5).double().mean()) == 1.0


def test_rare_targets_come_up_more_often():
    x, y = make_rows(2_000)
    _, new_y = SMOGN(focus="high").fit(x, y)(x, y)
    tenth = y.quantile(0.9)
    assert 0.5 < float((new_y >= tenth).double().mean()) < 0.6  # half of them, and a tenth


def test_with_groups_a_row_becomes_one_of_its_own_group():
    x, y = make_rows()
    labels = torch.arange(200) % 2
    x[labels == 1] += 100.0
    new_x, _ = SMOGN(rate=1.0).fit(x, y, groups=labels)(x, y, groups=labels)
    assert torch.equal(new_x[:, 0] > 50.0, labels == 1)


def test_what_a_training_learns_instead_of_the_targets_is_interpolated():
    x, y = make_rows()
    plain, restated = (SMOGN(focus="high", rate=1.0, sigma=0.0).fit(x, y) for _ in range(2))
    restated.restate(lambda rows, targets: targets - rows @ torch.ones(3, 1, dtype=rows.dtype))
    (one_x, one_y), (two_x, two_y) = plain(x, y), restated(x, y)
    torch.testing.assert_close(one_x, two_x)  # the same rows are rare
    torch.testing.assert_close(two_y, one_y - one_x.sum(dim=1, keepdim=True))


def test_nets_are_trained_with_it_in_a_stack(registries):
    from regaug import methods
    from regaug.data import load, standardize

    start = {"sampler": "random", "place": "input", "rate": 0.3}
    methods.register("rare-rows", Method("rows where targets are rare", SMOGN, start))
    split = standardize(load("diabetes").split(0))
    runs = [Settings(epochs=2, seed=seed, linear=seed == 1) for seed in range(2)]
    together = fit_many(split, "rare-rows", runs)
    for number, settings in enumerate(runs):
        (alone,) = fit_many(split, "rare-rows", [settings])
        assert alone.history[-1].loss == pytest.approx(together[number].history[-1].loss, rel=1e-4)
    plain = fit_many(split, "erm", runs)
    assert plain[0].history[-1].loss != pytest.approx(together[0].history[-1].loss, rel=1e-3)


def test_wrong_use_is_said():
    x, y = make_rows(20)
    with pytest.raises(NotFittedError, match=r"`SMOGN` must see the training rows first"):
        SMOGN()(x, y)
    with pytest.raises(PlaceError, match="SMOGN makes new inputs"):
        SMOGN().at(torch.nn.Sequential(torch.nn.Linear(3, 1)), "0")
    with pytest.raises(ArgumentError, match=r"`x` and `y` must have 3 and 1 columns"):
        SMOGN().fit(x, y)(x[:, :2], y)
    with pytest.raises(ArgumentError, match=r"`rate` must be"):
        SMOGN(rate=0.0)
    with pytest.raises(ArgumentError, match=r"`focus` must be"):
        SMOGN(focus="column")
    labels = torch.arange(20) % 2
    with pytest.raises(NotFittedError, match="must know the groups"):
        SMOGN().fit(x, y)(x, y, groups=labels)
    with pytest.raises(ArgumentError, match="`groups` must be given"):
        SMOGN().fit(x, y, groups=labels)(x, y)
    with pytest.raises(ArgumentError, match="`fit` has not seen"):
        SMOGN().fit(x, y, groups=labels)(x, y, groups=labels + 7)
