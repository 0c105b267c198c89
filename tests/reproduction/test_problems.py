"""The paper's data sets as problems: the real rows, stand-ins, or how to get them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from regaug.data.scaling import StandardizedSplit
from regaug.exceptions import DataNotFoundError, UnknownNameError
from regaug.reproduction.problems import find, find_all
from regaug.reproduction.recipes import paper_settings
from regaug.runs.run import Run
from regaug.runs.worker import Worker


@pytest.fixture
def _here(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))


def split_of(name, protocol, number=0):
    return find(name).problem(protocol, number + 1).split(number)


def test_what_is_not_here_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path))
    for name in ("airfoil", "dti", "electricity", "echo"):
        with pytest.raises(DataNotFoundError, match=f"{name}|davis.* is not on this disk. To get"):
            find(name)


def test_an_unknown_data_set_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="Did you mean 'airfoil'"):
        find("airfoyl")


def test_of_several_data_sets_those_that_are_here_are_taken(made_up):
    found, missing = find_all(["no2", "airfoil"])
    assert [data.name for data in found] == ["airfoil"]
    assert len(missing) == 1
    assert missing[0].startswith("no2 is not on this disk")
    with pytest.raises(DataNotFoundError, match="no2 is not .* crimes is not"):
        find_all(["no2", "crimes"])


def test_the_papers_protocol_keeps_raw_targets_and_the_tuned_one_standardizes(made_up):
    raw, tuned = split_of("airfoil", "paper"), split_of("airfoil", "tuned")
    assert find("airfoil").note == ""
    assert raw.train.y.mean() > 100
    assert isinstance(tuned, StandardizedSplit)
    assert abs(tuned.train.y.mean()) < 1e-4
    assert np.array_equal(raw.test.rows, tuned.test.rows)


def test_a_problem_travels_as_a_recipe_without_its_rows(made_up):
    problem = find("airfoil").problem("paper", 2)
    first = problem.splits[1]
    packed = pickle.dumps(problem)
    assert len(packed) < 2000
    assert torch.equal(pickle.loads(packed).splits[1].train.x, first.train.x)


def test_other_files_are_other_data(made_up, tmp_path, monkeypatch):
    before = split_of("airfoil", "paper").train.y
    file = made_up / "airfoil" / "airfoil_self_noise.dat"
    other = tmp_path / "other" / "airfoil"
    other.mkdir(parents=True)
    np.savetxt(other / file.name, np.loadtxt(file) + 1, delimiter="\t")
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "other"))
    assert torch.allclose(split_of("airfoil", "paper").train.y, before + 1)


def test_what_is_timed_has_all_training_rows_and_few_others(made_up):
    whole, few = split_of("airfoil", "paper"), split_of("airfoil", "time")
    assert torch.equal(few.train.x, whole.train.x)
    assert len(few.validation) == len(few.test) == 32
    assert not find("airfoil").problem("time").is_stacked


@pytest.mark.usefixtures("_here")
def test_crimes_has_the_papers_states_or_other_ones_for_every_seed():
    raw = split_of("crimes", "paper")
    assert [len(part) for part in (raw.train, raw.validation, raw.test)] == [1390, 231, 373]
    first, second = (split_of("crimes", "tuned", seed) for seed in (0, 1))
    assert set(first.test.groups) != set(second.test.groups)
    assert not set(first.test.groups) & set(first.train.groups)


@pytest.mark.usefixtures("_here")
def test_a_series_is_scored_in_the_papers_scale():
    split = split_of("exchange-rate", "paper")
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
    assert list(dti.problem("paper").notes) == [dti.note]
    assert split_of("electricity", "paper").train.x.shape == (409, 168, 203)
    split = split_of("dti", "paper")
    assert set(split.test.groups) == {6, 7}
    assert set(split.train.groups) == {0, 1, 2, 3, 4, 5}
    assert len(split.train) == 5000
    assert len(split.test) == 1250


def make_run(name, **changes):
    settings = replace(paper_settings("airfoil", name, seed=0), **changes)
    return Run("airfoil/paper", name, 0, 0, settings)


def test_a_stack_and_single_runs_are_scored_alike(made_up):
    worker = Worker([find("airfoil").problem("paper")])
    stacked = make_run("foma", epochs=2)
    single = make_run(
        "foma", epochs=2, method_settings={**stacked.settings.method_settings, "place": "both"}
    )
    for run in (stacked, single):
        (record,) = worker.do((run,))
        assert record.run == run
        assert record.sizes == (1003, 300, 200)
        assert record.scores["test"].n == 200
        assert record.score("test", "rmse") > record.score("test", "mae") > 0


def test_a_run_that_diverges_is_a_finding(made_up):
    run = make_run("foma", epochs=3, learning_rate=1e30, method_settings={"place": "both", "k": 1})
    (record,) = Worker([find("airfoil").problem("paper")]).do((run,))
    assert record.ending == "diverged"
    assert record.score("test", "rmse") is None
