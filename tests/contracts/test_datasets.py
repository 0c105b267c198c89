"""What every named data set keeps to. A new one is covered by being in the table."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from regaug.data import NAMES, load, standardize
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.named import is_here

TASKS = ("table", "series", "image", "pair", "video")


@pytest.fixture(params=NAMES)
def data(request, monkeypatch):
    """Every data set that is on this disk, loaded without a network."""
    name = request.param
    if DATASETS[name].needs:
        monkeypatch.setenv("REGAUG_DATA", str(request.getfixturevalue("real_data")))
        if not is_here(name):
            pytest.skip(f"{name} is not on this disk")
    return load(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_are_complete(name):
    info = DATASETS[name].info
    assert info.name == name
    assert info.task in TASKS
    assert info.metric in ("rmse", "pearson")
    assert info.split
    assert info.license
    assert info.origin


@pytest.mark.parametrize("protocol", ["tuned", "paper"])
def test_three_parts_share_no_sample(data, protocol):
    split = data.split(seed=0, protocol=protocol)
    parts = (split.train, split.validation, split.test)
    rows = np.concatenate([part.rows for part in parts])
    assert len(set(rows.tolist())) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < len(data)
    for part in parts:
        assert len(part) == len(part.x) == len(part.y) == len(part.rows) > 0
        assert part.groups is None or len(part.groups) == len(part)


def test_samples_are_finite_float32(data):
    split = data.split(seed=0)
    for part in (split.train, split.validation, split.test, *split.more.values()):
        x, y = next(iter(DataLoader(part, batch_size=4)))
        assert x.dtype == y.dtype == torch.float32
        assert tuple(x.shape[1:]) == tuple(part.x.shape[1:])
        assert y.ndim == 2
        assert x.isfinite().all()
        assert part.y.isfinite().all()


def test_same_seed_same_split(data):
    first, second = data.split(seed=3), data.split(seed=3)
    assert np.array_equal(first.train.rows, second.train.rows)
    assert torch.equal(first.test.y, second.test.y)
    assert torch.equal(first.train.x[0], second.train.x[0])


def test_standardized_targets_come_back(data):
    split = data.split(seed=0)
    scaled = standardize(split)
    if scaled is split:
        pytest.skip("a series comes with its scale")
    back = scaled.restore(scaled.test.y)
    torch.testing.assert_close(back.float(), split.test.y, rtol=1e-4, atol=1e-4)
    assert scaled.train.y.mean(0).abs().max() < 1e-3
