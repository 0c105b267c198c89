"""What stands for the paper's data sets: the real rows, stand-ins, or how to get them."""

import numpy as np
import pytest

from regaug.data.scaling import StandardizedSplit
from regaug.exceptions import DataNotFoundError, UnknownNameError
from regaug.reproduction.sources import find


@pytest.fixture
def _here(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))


def test_what_is_not_here_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    for name in ("airfoil", "dti", "electricity", "echo"):
        with pytest.raises(DataNotFoundError, match=f"{name}|davis.* is not on this disk. To get"):
            find(name)


def test_an_unknown_data_set_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'airfoil'"):
        find("airfoyl")


def test_the_papers_protocol_keeps_raw_targets_and_the_tuned_one_standardizes(made_up):
    source = find("airfoil")
    raw, tuned = source.split(0, "paper"), source.split(0, "tuned")
    assert source.note == ""
    assert raw.train.y.mean() > 100
    assert isinstance(tuned, StandardizedSplit)
    assert abs(tuned.train.y.mean()) < 1e-4
    assert np.array_equal(raw.test.rows, tuned.test.rows)


@pytest.mark.usefixtures("_here")
def test_crimes_has_the_papers_states_or_other_ones_for_every_seed():
    source = find("crimes")
    raw = source.split(0, "paper")
    assert [len(part) for part in (raw.train, raw.validation, raw.test)] == [1390, 231, 373]
    first, second = (source.split(seed, "tuned") for seed in (0, 1))
    assert set(first.test.groups) != set(second.test.groups)
    assert not set(first.test.groups) & set(first.train.groups)


@pytest.mark.usefixtures("_here")
def test_a_series_is_scored_in_the_papers_scale():
    split = find("exchange-rate").split(0, "paper")
    assert not isinstance(split, StandardizedSplit)
    assert split.test.y.abs().max() <= 1.0
    last = split.test.x[:][:, -1]
    error = (last - split.test.y).double().square().mean().sqrt().item()
    assert error == pytest.approx(0.01348, abs=1e-5)


@pytest.mark.usefixtures("_here")
def test_stand_ins_say_that_they_are():
    electricity, dti = find("electricity"), find("dti")
    assert electricity.note.startswith("stands in")
    assert dti.note.startswith("stands in")
    assert electricity.split(0, "paper").train.x.shape == (409, 168, 203)
    split = dti.split(0, "paper")
    assert set(split.test.groups) == {6, 7}
    assert set(split.train.groups) == {0, 1, 2, 3, 4, 5}
    assert len(split.train) == 1000
