"""Trainings that keep to groups and masks, and whose targets are windows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regaug import methods
from regaug.augment import Augmentation
from regaug.data import Part, Split, standardize
from regaug.exceptions import ArgumentError, CheckpointError, PlaceError
from regaug.training import Machine, Settings, fit, fit_many
from regaug.training.limits import TrainingBatches

CPU = Machine("cpu")
FILLED = -9.0  # where there is no value


def make_split(n=120, *, steps=5, columns=2, ahead=3, **limits):
    """Windows of a series in groups, of unequal length, whose targets are windows too."""
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 6, n)[:, None] + 0.4 * np.arange(steps + ahead)
    series = np.stack([np.sin(start), np.cos(start)], axis=2)[..., :columns]
    values = torch.tensor(series + 0.05 * rng.standard_normal(series.shape), dtype=torch.float32)
    x, y = values[:, :steps].clone(), values[:, steps:]
    lengths = torch.from_numpy(rng.integers(2, steps + 1, n))
    x[torch.arange(steps) >= lengths[:, None]] = FILLED
    groups = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    cuts = np.split(np.arange(n), [n // 2, 3 * n // 4])
    return Split(*(Part(x[own], y[own], own, groups[own]) for own in cuts), **limits)


def is_there(x):
    return x[..., :1] != FILLED


class Forecaster(nn.Module):
    """Puts out windows; looks at its inputs while it trains."""

    places = ("hidden",)

    def __init__(self, steps=5, columns=2, ahead=3, look=None):
        super().__init__()
        torch.manual_seed(0)
        self.hidden = nn.Linear(steps * columns, 8)
        self.out = nn.Linear(8, ahead * columns)
        self.form, self.look = (ahead, columns), look

    def forward(self, x):
        if self.look is not None and self.training:
            self.look(x)
        return self.out(self.hidden(x.flatten(1)).tanh()).unflatten(1, self.form)


@pytest.mark.parametrize("method", methods.names())
@pytest.mark.parametrize("limits", [{}, {"pairs_within": "group"}])
def test_every_method_learns_windows(method, limits):
    split = standardize(make_split(**limits))
    result = fit(Forecaster(), split, method, Settings(epochs=2, batch_size=16), machine=CPU)
    assert result.predictions["test"].shape == split.test.y.shape == (30, 6)
    assert result.ending == "finished"
    assert all(np.isfinite([epoch.loss for epoch in result.history]))


def test_a_window_is_learned_as_its_values_side_by_side():
    split = standardize(make_split())
    flat = Forecaster()
    flat.out = nn.Sequential(flat.out, nn.Flatten())
    flat.form = (6,)
    settings = Settings(epochs=2, batch_size=16)
    one, two = (fit(net, split, "mixup", settings, machine=CPU) for net in (Forecaster(), flat))
    assert torch.equal(one.predictions["test"], two.predictions["test"])


@pytest.mark.parametrize("method", ["mixup", "c-mixup", "ada", "cems"])
@pytest.mark.parametrize("batch_size", [16, 60])
def test_what_a_net_sees_is_of_one_group(method, batch_size):
    split = make_split(pairs_within="group")
    code = {"a": 0.0, "b": 10.0, "c": 20.0}

    marks = torch.tensor([code[label] for label in split.train.groups])
    x = 0.1 * split.train.x.clamp(min=-1)
    x[..., 0] = marks[:, None]  # the same in a group, and far from the others
    split = replace(split, train=replace(split.train, x=x))
    seen = []
    net = Forecaster(look=lambda x: seen.append(x[..., 0].detach()))
    own = {"sigma": 0.05, "neighbors": 8} if method == "cems" else {}
    settings = Settings(epochs=3, batch_size=batch_size, method_settings=own)
    fit(net, split, method, settings, machine=CPU)
    values = torch.cat(seen)
    apart = torch.stack([(values - place).abs() for place in code.values()]).amin(dim=0)
    assert apart.max() < 1.0


def test_without_pairs_within_groups_are_mixed():
    split = make_split()
    marks = torch.tensor([10.0 * (label == "b") for label in split.train.groups])
    split = replace(split, train=replace(split.train, x=marks[:, None, None].expand(-1, 5, 2)))
    seen = []
    net = Forecaster(look=lambda x: seen.append(x[:, 0, 0].detach()))
    fit(net, split, "mixup", Settings(epochs=2, batch_size=16), machine=CPU)
    values = torch.cat(seen)
    assert ((values > 1) & (values < 9)).any()  # the test above could fail


@pytest.mark.parametrize("place", ["input", "layer", "both"])
def test_groups_are_known_wherever_a_method_acts(place, monkeypatch):
    found = []
    act = Augmentation._act_within

    def note(self, x, y, limits):
        found.append(limits.groups)
        return act(self, x, y, limits)

    monkeypatch.setattr(Augmentation, "_act_within", note)
    split = standardize(make_split(pairs_within="group"))
    settings = Settings(epochs=1, batch_size=16, method_settings={"place": place})
    fit(Forecaster(), split, "foma-rho", settings, machine=CPU)
    assert len(found) == 3 * (2 if place == "both" else 1)
    assert all(len(groups) == 16 for groups in found)


def test_plain_training_does_not_change_with_groups():
    settings = Settings(epochs=2, batch_size=16)
    results = [
        fit(Forecaster(), standardize(make_split(**limits)), "erm", settings, machine=CPU)
        for limits in ({}, {"pairs_within": "group"})
    ]
    assert results[0].history == results[1].history


@pytest.mark.parametrize("method", ["erm", "noise", "mixup", "c-mixup"])
@pytest.mark.parametrize("machine", [CPU, pytest.param(Machine("cpu", workers=1), id="workers")])
def test_what_is_not_there_is_never_mixed(method, machine):
    split = standardize(make_split(mask=is_there, pairs_within="group"))
    assert (split.train.x == FILLED).any()
    low = split.train.x[split.train.x != FILLED].min().item()
    seen = []
    net = Forecaster(look=lambda x: seen.append(x.detach()))
    fit(net, split, method, Settings(epochs=2, batch_size=16), machine=machine)
    values = torch.cat(seen)
    gone = values == FILLED
    assert gone.any()
    assert values[~gone].min() > low - 1.0


def test_without_its_mask_it_would_be_mixed():
    split = standardize(make_split(mask=is_there))
    split = replace(split, mask=None)
    seen = []
    net = Forecaster(look=lambda x: seen.append(x.detach()))
    fit(net, split, "mixup", Settings(epochs=2, batch_size=16), machine=CPU)
    values = torch.cat(seen)
    assert ((values < -4) & (values > FILLED + 0.1)).any()


def test_a_mask_sees_inputs_in_their_own_units():
    split = make_split(mask=is_there)
    batch = [3, 1, 4]
    x, y, groups, mask = TrainingBatches(standardize(split))[batch]
    assert torch.equal(mask, is_there(split.train.x[batch]))
    assert groups is None
    assert (len(x), len(y)) == (3, 3)
    few = standardize(split).subsample(30, seed=1)
    rows = few.train.rows[batch]
    assert torch.equal(TrainingBatches(few)[batch][3], is_there(split.train.x[rows]))


@pytest.mark.parametrize("method", ["ada", "cems", "foma", "foma-rho"])
def test_methods_that_need_whole_rows_say_so(method):
    split = standardize(make_split(mask=is_there))
    with pytest.raises(ArgumentError, match="`mask` must be None for"):
        fit(Forecaster(), split, method, Settings(epochs=1, batch_size=16), machine=CPU)


def test_a_layer_has_no_mask():
    split = standardize(make_split(mask=is_there))
    with pytest.raises(PlaceError, match="`place` must be 'input' for inputs with a mask, got 'la"):
        fit(Forecaster(), split, "manifold-mixup", Settings(epochs=1), machine=CPU)


@pytest.mark.parametrize("limits", [{"pairs_within": "group"}, {"mask": torch.isfinite}])
def test_runs_side_by_side_refuse_limits(limits):
    split = standardize(make_split(**limits))
    with pytest.raises(ArgumentError, match=f"`{next(iter(limits))}` must be None.*training.fit"):
        fit_many([split], "mixup", [Settings(epochs=1)])


def test_a_checkpoint_is_of_a_training_with_the_same_limits(tmp_path):
    settings = Settings(epochs=1, batch_size=16)
    fit(Forecaster(), standardize(make_split()), "mixup", settings, checkpoint=tmp_path)
    split = standardize(make_split(pairs_within="group"))
    with pytest.raises(CheckpointError, match="pairs within was None and is 'group'"):
        fit(Forecaster(), split, "mixup", settings, checkpoint=tmp_path)
