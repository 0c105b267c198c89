"""Targets ``(n,)`` and nets that predict ``(n,)``: as good as a column, everywhere."""

import numpy as np
import pytest
import torch
from torch import nn

import regaug
from regaug.data import Part, Split, standardize
from regaug.metrics import evaluate
from regaug.models import MLP
from regaug.problems import Problem
from regaug.runs.run import Run
from regaug.runs.worker import Worker
from regaug.training import Machine, Settings, fit, fit_many
from regaug.training.baselines import fit_baseline
from regaug.training.scores import score_parts


def make_splits(*, flat, splits=2, n=80):
    made = []
    for seed in range(splits):
        rng = np.random.default_rng(seed)
        x = torch.from_numpy(rng.standard_normal((n, 3)).astype(np.float32))
        y = 5 + x.sin().sum(1) + 0.1 * torch.from_numpy(rng.standard_normal(n).astype(np.float32))
        y = y if flat else y[:, None]
        rows = np.split(np.arange(n), [48, 64])
        made.append(Split(*(Part(x[own], y[own], own) for own in rows)))
    return made


class Flat(nn.Module):
    """A net whose predictions are ``(n,)``."""

    places = ("net.block_1",)

    def __init__(self):
        super().__init__()
        self.net = MLP(3, hidden=(8,))

    def forward(self, x):
        return self.net(x)[:, 0]


def make_flat(split):
    return Flat()


def make_column(split):
    return MLP(3, hidden=(8,))


def test_a_part_has_one_column_of_targets():
    [flat], [column] = (make_splits(flat=flat, splits=1) for flat in (True, False))
    for one, other in zip(flat.parts.values(), column.parts.values(), strict=True):
        assert torch.equal(one.y, other.y)
        assert one[0][1].shape == (1,)
        assert torch.equal(one.take([3, 1]).y, other.take([3, 1]).y)
    assert torch.equal(standardize(flat).test.y, standardize(column).test.y)
    assert torch.equal(standardize(flat, log=True).train.y, standardize(column, log=True).train.y)


@pytest.mark.parametrize("place", ["input", "layer"])
def test_one_training_is_the_same(place):
    settings = Settings(epochs=3, method_settings={"place": place})
    found = []
    for flat, model in ((False, MLP(3, hidden=(8,))), (True, MLP(3, hidden=(8,))), (True, Flat())):
        split = standardize(make_splits(flat=flat, splits=1)[0])
        result = fit(model, split, "foma-rho", settings, machine=Machine("cpu"))
        assert result.predictions["test"].shape == (16, 1)
        found.append((result.scores["test"].rmse, [epoch.validation for epoch in result.history]))
    assert found[0] == found[1] == found[2]


def test_many_trainings_are_the_same():
    found = []
    for flat in (False, True):
        splits = [standardize(split) for split in make_splits(flat=flat)]
        results = fit_many(splits, "c-mixup", [Settings(epochs=3, seed=seed) for seed in (0, 1)])
        found.append([result.scores["test"].rmse for result in results])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["mean", "ridge", "trees"])
def test_baselines_are_the_same(name):
    one, two = (
        fit_baseline(name, standardize(make_splits(flat=flat, splits=1)[0])).scores["test"].rmse
        for flat in (False, True)
    )
    assert one == two


def test_scores_are_the_same():
    [split] = make_splits(flat=True, splits=1)
    scores, *_ = score_parts(split, lambda part: part.x.sum(1, keepdim=True))
    test = split.test
    expected = evaluate(test.x.sum(1, keepdim=True), test.y)
    assert scores["test"].rmse == expected.rmse


@pytest.mark.parametrize("make", [None, make_column, make_flat])
def test_a_problem_may_have_them(make):
    records = []
    for flat in (False, True):
        problem = Problem(make_splits(flat=flat), make, name="flat", hidden=(8,))
        settings = Settings(epochs=2, method_settings=regaug.methods.get("mixup").settings())
        task = tuple(Run("flat", "mixup", number, 0, settings, 0) for number in range(2))
        records.append([record.scores["test"].rmse for record in Worker([problem]).do(task)])
        assert problem.checksum()
    assert records[0] == records[1]
