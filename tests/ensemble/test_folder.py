"""A model folder: the same model comes back, and nothing else is accepted."""

import json

import pytest
import torch

from regaug.data import load
from regaug.ensemble import Ensemble, fit_ensemble
from regaug.exceptions import CheckpointError
from regaug.training.state_files import read_state, write_state


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def same(one, other):
    return all(
        torch.equal(getattr(one, part), getattr(other, part))
        for part in ("mean", "spread", "low", "high")
    )


def test_a_model_comes_back_bit_by_bit(model, folder, new_houses):
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]
    loaded = Ensemble.load(folder)
    assert same(loaded.predict(new_houses, interval=0.9), model.predict(new_houses, interval=0.9))
    for part in ("targets", "method", "settings", "held_out", "made_by"):
        assert getattr(loaded, part) == getattr(model, part)


def test_a_loaded_model_predicts_a_file_as_the_one_in_memory_does(
    model, folder, new_houses, tmp_path
):
    path = tmp_path / "new.csv"
    new_houses.to_csv(path, index=False)
    loaded = Ensemble.load(str(folder))
    in_memory = model.predict(new_houses, interval=0.8)
    assert same(loaded.predict(path, interval=0.8), model.predict(path, interval=0.8))
    torch.testing.assert_close(loaded.predict(path).mean, in_memory.mean)


def test_a_model_of_arrays_with_another_method_comes_back(tmp_path, quick):
    data = load("synthetic-plane", n=60)
    model = fit_ensemble(data, method="foma-rho", settings=quick, members=2, hidden=(8, 4))
    model.save(tmp_path / "model")
    loaded = Ensemble.load(tmp_path / "model")
    assert same(loaded.predict(data, interval=0.9), model.predict(data, interval=0.9))
    assert loaded.settings == model.settings


def test_a_model_that_is_there_is_replaced_and_other_files_are_not(model, folder):
    model.save(folder)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="something else"):
        model.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(CheckpointError, match=file):
        Ensemble.load(folder)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        Ensemble.load(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("place", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_changed_byte_is_noticed(folder, file, place):
    content = bytearray((folder / file).read_bytes())
    content[int(place * (len(content) - 1))] ^= 1
    (folder / file).write_bytes(content)
    with pytest.raises(CheckpointError):
        Ensemble.load(folder)


def change(state, path, value):
    *way, last = path.split("/")
    for key in way:
        state = state[key]
    state[last] = value


WEIGHT = "weights/head.bias"
NAN = torch.full((3, 2), float("nan"))
HOSTILE = {
    "format": ["pickle", None, torch.ones(2)],
    "version": [2, "1", None, torch.ones(2)],
    "targets": [[], ["price"], ["price", "price"], [1, 2], "price", None],
    "method": ["auto", "os.system", 3, ["erm"]],
    "settings": [{}, None, []],
    "settings/epochs": [-1, "many", None, 1.5, torch.ones(2)],
    "settings/method": [None, {"rho": 0.5}, {1: 2}, {"place": {"a": 1}}],
    "settings/metric": ["__import__", []],
    "made_by": [None, [], {"torch": 2}],
    "encoder": ["", "{}", 5, '{"format": "regaug-encoder"}'],
    "inputs": [None, {}, {"mean": [], "std": []}, {"mean": [0.0], "std": [1.0]}],
    "outputs/std": [[1.0], [1.0, 0.0], [1.0, float("nan")], [1.0, float("inf")], [1, 10**400]],
    "outputs/mean": [["a", "b"], [[0.0], [0.0]], None, "ab"],
    "log": [0, "no", None],
    "hidden": [[10**9], [16, 10**9], [], [16], [8, 16], [16.0, 8], [True, 8], 16, None, [-16, 8]],
    "weights": [{}, None, [torch.zeros(3)]],
    WEIGHT: [None, 1.0, NAN, torch.zeros(2), torch.zeros(2, 3), torch.zeros(3, 2).double()],
    "weights/more": [torch.zeros(0)],
    "floor": [None, torch.zeros(2).double(), torch.ones(3).double(), NAN[0].double()],
    "scores": [
        None,
        torch.ones(9, 3).double(),
        torch.ones(0, 2).double(),
        torch.ones(9).double(),
        -torch.ones(9, 2).double(),
        torch.tensor([[2.0, 2.0], [1.0, 3.0]]).double(),
        NAN.double(),
    ],
    "held_out": [None, {}, []],
    "held_out/rmse": ["low", float("nan")],
    "held_out/groups": [{"a": 1}, None],
    "surplus": [1],
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in HOSTILE.items() for value in values]
)
def test_a_folder_that_says_something_impossible_is_refused(folder, path, value):
    state = read_state(folder, name="model")
    change(state, path, value)
    write_state(folder, state, name="model")  # with sums that fit
    with pytest.raises(CheckpointError, match="Cannot use the model"):
        Ensemble.load(folder)


@pytest.mark.parametrize("key", ["hidden", "weights", "floor", "settings", "version"])
def test_a_folder_that_lacks_something_is_refused(folder, key):
    state = read_state(folder, name="model")
    del state[key]
    write_state(folder, state, name="model")
    with pytest.raises(CheckpointError, match="Cannot use the model"):
        Ensemble.load(folder)


def test_members_without_weights_cannot_hide_a_net_of_any_size(folder):
    state = read_state(folder, name="model")
    state["weights"] = {name: weight[:0] for name, weight in state["weights"].items()}
    state["hidden"] = [10**9, 10**9]
    write_state(folder, state, name="model")
    with pytest.raises(CheckpointError, match="fit the layers"):
        Ensemble.load(folder)


def test_the_checks_accept_what_was_written(folder):
    state = read_state(folder, name="model")
    write_state(folder, state, name="model")
    assert Ensemble.load(folder).targets == ("price", "tax")
    document = json.loads((folder / "model.json").read_text())
    assert document["state"]["hidden"] == [16, 8]
