"""A model folder: the same model comes back, and nothing else is accepted."""

import errno
import json
import os
import shutil
from dataclasses import replace

import pytest
import torch

from regaug import _files
from regaug._files import seal
from regaug.data import load
from regaug.ensemble import Ensemble, fit_ensemble
from regaug.ensemble.folder import read_state, write_state
from regaug.exceptions import CheckpointError, OverwriteError


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
    for part in ("targets", "method", "settings", "held_out", "group", "notes", "made_by"):
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
    with pytest.raises(OverwriteError, match="something else"):
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
        state = state[int(key)] if isinstance(state, list) else state[key]
    state[last] = value


NETS = "components/0"
WEIGHT = f"{NETS}/weights/head.bias"
NAN = torch.full((3, 2), float("nan"))
HOSTILE = {
    "targets": [[], ["price"], ["price", "price"], [1, 2], "price", None],
    "method": ["automatic", "os.system", 3, ["erm"]],
    "components": [[], None, {}, [None], [{}]],
    f"{NETS}/method": ["auto", "os.system", 3, ["erm"], "ridge"],
    f"{NETS}/share": [0.0, -0.5, 0.5, 2.0, float("nan"), float("inf"), 1, True, None],
    f"{NETS}/settings": [{}, None, []],
    f"{NETS}/settings/epochs": [-1, "many", None, 1.5, torch.ones(2)],
    f"{NETS}/settings/method_settings": [None, {"rho": 0.5}, {1: 2}, {"place": {"a": 1}}],
    f"{NETS}/settings/metric": ["__import__", []],
    f"{NETS}/log": [0, "no", None],
    f"{NETS}/outputs/std": [[1.0], [1.0, 0.0], [1.0, float("nan")], [1.0, 1e308]],
    f"{NETS}/predictors": [[], [{}], None],
    "low": [None, torch.zeros(1).double(), torch.full((2,), 1e9).double(), torch.zeros(2)],
    "high": [None, 5.0, torch.full((2,), float("inf")).double()],
    "made_by": [None, [], {"torch": 2}],
    "encoder": ["", "{}", 5, '{"format": "regaug-encoder"}'],
    "inputs": [None, {}, {"mean": [], "std": []}, {"mean": [0.0], "std": [1.0]}],
    "outputs/std": [
        [1.0],
        [1.0, 0.0],
        [1.0, float("nan")],
        [1.0, float("inf")],
        [1, 10**400],
        [1e308, 1.0],
    ],
    "outputs/mean": [["a", "b"], [[0.0], [0.0]], None, "ab"],
    "log": [0, "no", None],
    f"{NETS}/form": [None, {}, []],
    f"{NETS}/form/hidden": [
        [10**9],
        [16, 10**9],
        [],
        [16],
        [8, 16],
        [16.0, 8],
        [True, 8],
        16,
        None,
    ],
    f"{NETS}/form/inputs": [1, 10**9, None],
    f"{NETS}/form/periodic": [[-1], [0, 0], [99], ["a"], None],
    f"{NETS}/form/slope": [2.0, -1.0, float("nan"), None],
    f"{NETS}/weights": [{}, None, [torch.zeros(3)]],
    WEIGHT: [None, 1.0, NAN, torch.zeros(2), torch.zeros(2, 3), torch.zeros(3, 2).double()],
    f"{NETS}/weights/more": [torch.zeros(0)],
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
    "held_out/rare": [None, 1, {"rmse": 1.0}, {"tail-rmse": float("nan")}, [["tail-rmse", 1.0]]],
    "held_out/tenths": [None, 1, [1], [[1, 2.0]], [[1, 2.0, "x"]], [[1, 2.0, float("inf")]]],
    "held_out/targets": [[{}], {}, None, [1, 2], "ab"],
    "group": [3, ["city"], {}],
    "notes": [None, "a note", [3]],
    "surplus": [1],
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in HOSTILE.items() for value in values]
)
def test_a_folder_that_says_something_impossible_is_refused(folder, path, value):
    state = read_state(folder)
    change(state, path, value)
    write_state(folder, state)  # with sums that fit
    with pytest.raises(CheckpointError, match="Cannot use the model"):
        Ensemble.load(folder)


@pytest.mark.parametrize("key", ["components", "low", "floor", "outputs"])
def test_a_folder_that_lacks_something_is_refused(folder, key):
    state = read_state(folder)
    del state[key]
    write_state(folder, state)
    with pytest.raises(CheckpointError, match="Cannot use the model"):
        Ensemble.load(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("format", value) for value in ("pickle", None, [1.0])],
        *[("version", value) for value in (2, 4, "3", None, True)],
        *[("tensors", value) for value in ("00000000", None)],
        *[("state", value) for value in ([], None, {"low": {"$tensor": "nowhere"}})],
    ],
)
def test_a_document_of_another_form_is_refused(folder, key, value):
    document = json.loads((folder / "model.json").read_text())
    del document["crc32"]
    for changed in (document | {key: value}, {k: v for k, v in document.items() if k != key}):
        (folder / "model.json").write_bytes(seal(changed))  # with a sum that fits
        with pytest.raises(CheckpointError, match="Cannot use .*model.* Fit "):
            Ensemble.load(folder)


def test_a_newer_model_names_the_version_that_wrote_it(folder):
    document = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(document | {"version": 4, "regaug": "9.8.7"}))
    with pytest.raises(CheckpointError, match=r"format 4, written by regaug 9\.8\.7, .*Use the"):
        Ensemble.load(folder)


def test_a_model_of_an_earlier_version_is_refused_with_the_way_out(folder):
    document = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(document | {"version": 2}))
    with pytest.raises(CheckpointError, match=r"it has format 2, .* Fit it again"):
        Ensemble.load(folder)


def test_a_model_of_two_models_is_refused(model, folder, tmp_path):
    (own,) = model.components
    weights = {name: 2 * weight for name, weight in own.models.weights.items()}
    other = replace(own, models=replace(own.models, weights=weights))
    replace(model, components=(other,)).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    with pytest.raises(CheckpointError, match=r"`model\.json` must fit model\.safetensors"):
        Ensemble.load(folder)


@pytest.mark.parametrize(
    ("function", "at"), [("fsync", 0), ("fsync", 2), ("replace", 0), ("replace", 1)]
)
def test_a_failed_write_leaves_the_model_it_would_replace(
    model, folder, tmp_path, monkeypatch, function, at
):
    real, calls = getattr(os, function), []

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) == at + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(_files.os, function, fail)
    with pytest.raises(CheckpointError, match="No space left on device. Free some space"):
        replace(model, targets=("other", "names")).save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert os.listdir(tmp_path) == ["model"]


def test_a_kill_between_the_two_renames_leaves_the_earlier_model(model, folder, tmp_path):
    folder.rename(folder.with_name("model.previous"))
    assert Ensemble.load(folder).targets == model.targets
    replace(model, targets=("other", "names")).save(folder)
    assert Ensemble.load(folder).targets == ("other", "names")
    assert os.listdir(tmp_path) == ["model"]


def test_the_same_model_gives_the_same_files(model, folder, tmp_path):
    model.save(tmp_path / "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_members_without_weights_cannot_hide_a_net_of_any_size(folder):
    state = read_state(folder)
    (own,) = state["components"]
    own["weights"] = {name: weight[:0] for name, weight in own["weights"].items()}
    own["form"]["hidden"] = [10**9, 10**9]
    write_state(folder, state)
    with pytest.raises(CheckpointError, match="fit the layers"):
        Ensemble.load(folder)


def test_the_checks_accept_what_was_written(folder):
    state = read_state(folder)
    write_state(folder, state)
    assert Ensemble.load(folder).targets == ("price", "tax")
    document = json.loads((folder / "model.json").read_text())
    assert document["state"]["components"][0]["form"]["hidden"] == [16, 8]


@pytest.mark.parametrize(
    ("path", "times", "words"),
    [
        ("floor", 1e306, "its intervals are not finite"),
        ("scores", 1e306, "its intervals are not finite"),
    ],
)
def test_a_model_of_finite_numbers_that_predicts_none_is_refused(folder, path, times, words):
    state = read_state(folder)
    value = state
    for key in path.split("/"):
        value = value[int(key)] if isinstance(value, list) else value[key]
    large = value * times
    change(state, path, large)
    change(state, "outputs/std", [1e4, 1e4])
    write_state(folder, state)
    with pytest.raises(CheckpointError, match=words):
        Ensemble.load(folder)
