"""A training that was stopped, by whatever, goes on to the same bits as one that was not."""

import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from regaug import _random
from regaug.data import standardize
from regaug.data.base import Info
from regaug.data.datasets.series import SeriesData
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import CheckpointError
from regaug.models import MLP, LSTNet
from regaug.training import Machine, Settings, fit
from regaug.training.checkpoint import Checkpoints
from regaug.training.state import read_state, write_state

KEYS = (
    *("configuration", "weights", "best_epoch", "best_weights", "optimizer", "precision"),
    *("history", "seconds"),
)


class StoppedError(Exception):
    """Stands for whatever ends a process."""


def make_table(n=200, seed=0):
    return standardize(make_manifold("paraboloid", n=n, noise=0.3).split(seed=seed))


def make_series():
    time = np.arange(160)[:, None]
    series = 2 + np.sin(2 * np.pi * time / np.array([12, 8]))
    info = Info(name="waves", task="series", metric="rmse", split="By time.")
    return SeriesData(series, info=info, window=12, horizon=1).split()


def make_mlp():
    return MLP(2, hidden=(16, 16))


def make_normed():
    with _random.seeded(0):
        return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))


def make_lstnet():
    sizes = {"hidden_cnn": 6, "hidden_rnn": 6, "hidden_skip": 2, "kernel": 3, "skip": 4}
    return LSTNet(2, window=12, highway=4, dropout=0.3, **sizes)


PLAIN = Settings(epochs=20, batch_size=16, learning_rate=0.01, seed=4)
AT_LAYER = replace(PLAIN, method_settings={"place": "layer"})
# Data, model, method, settings, precision.
CASES = {
    "erm": (make_table, make_mlp, "erm", replace(PLAIN, optimizer="adam", weight_decay=0.1), "32"),
    "foma-rho at a layer": (make_table, make_mlp, "foma-rho", AT_LAYER, "64"),
    "c-mixup": (make_table, make_mlp, "c-mixup", replace(PLAIN, clip=0.5), "32"),
    "early": (make_table, make_normed, "ada", replace(PLAIN, patience=4, metric="mae"), "bf16"),
    "dropout": (make_series, make_lstnet, "foma-rho", replace(PLAIN, schedule="cosine"), "32"),
}


def run(case, folder=None, **more):
    make_data, make_model, method, settings, precision = CASES[case]
    options = {"machine": Machine(precision=precision), "checkpoint": folder, **more}
    return fit(make_model(), make_data(), method, settings, **options)


@functools.cache
def run_whole(case):
    """Train without a checkpoint: what every other way must come to."""
    return run(case)


def same_tensors(some, others):
    return some.keys() == others.keys() and all(torch.equal(some[n], others[n]) for n in some)


def check_same(result, expected):
    assert result.history == expected.history
    assert (result.best_epoch, result.ending) == (expected.best_epoch, expected.ending)
    assert same_tensors(result.weights, expected.weights)
    assert same_tensors(result.predictions, expected.predictions)
    assert result.scores == expected.scores


def contents(folder):
    return {path: path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def stop_at(patch, epoch, saved=True):
    """Raise an error when this epoch is saved, just after or just before it is written."""
    real_save = Checkpoints.save

    def save(self, number, state):
        if number != epoch or saved:
            real_save(self, number, state)
        if number == epoch:
            raise StoppedError

    patch.setattr(Checkpoints, "save", save)


def run_until(epoch, case, folder, saved=True):
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, epoch, saved)
        with pytest.raises(StoppedError):
            run(case, folder)


@pytest.mark.parametrize("case", CASES)
def test_a_training_stopped_after_every_epoch_ends_the_same(tmp_path, case):
    whole = run_whole(case)
    assert len(whole.history) > 5
    assert whole.ending == ("early" if case == "early" else "finished")
    for epoch in range(1, len(whole.history)):
        run_until(epoch, case, tmp_path)
        torch.rand(epoch)  # whatever else a process does with the global generator
    result = run(case, tmp_path)
    check_same(result, whole)
    assert len(list(tmp_path.iterdir())) == 2  # the last two epochs are kept


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("epoch", [1, 7, 20])
def test_a_training_stopped_once_ends_the_same(tmp_path, epoch, saved):
    whole = run_whole("foma-rho at a layer")
    run_until(epoch, "foma-rho at a layer", tmp_path, saved)
    check_same(run("foma-rho at a layer", tmp_path), whole)


@pytest.mark.parametrize("case", CASES)
def test_a_training_that_pauses_goes_on_as_if_it_had_not(tmp_path, case):
    whole = run_whole(case)
    make_data, make_model, method, settings, precision = CASES[case]
    for stop in (3, 4, 9, 99):
        paused = replace(settings, stop_after=stop)
        machine = Machine(precision=precision)
        part = fit(make_model(), make_data(), method, paused, machine=machine, checkpoint=tmp_path)
        done = min(stop, len(whole.history))
        assert part.history == whole.history[:done]  # rates are those of all the epochs
        assert part.ending == ("paused" if stop < len(whole.history) else whole.ending)
    check_same(run(case, tmp_path), whole)


def test_a_pause_needs_no_checkpoint_and_keeps_the_best_epoch_so_far():
    *given, settings, _ = CASES["erm"]
    make_data, make_model, method = given
    part = fit(make_model(), make_data(), method, replace(settings, stop_after=5))
    assert (part.ending, len(part.history)) == ("paused", 5)
    errors = [epoch.validation for epoch in part.history]
    assert part.best_epoch == 1 + errors.index(min(errors))


def test_a_pause_does_not_go_on_from_a_later_epoch(tmp_path):
    make_data, make_model, method, settings, _ = CASES["erm"]
    whole = run("erm", tmp_path)
    paused = replace(settings, stop_after=3)
    part = fit(make_model(), make_data(), method, paused, checkpoint=tmp_path)
    assert part.history == whole.history[:3]
    check_same(run("erm", tmp_path), whole)


class Few(Checkpoints):
    """Saves when it is due, and asks for a pause at some epochs."""

    due, over = (), ()

    def is_due(self):
        self.calls = getattr(self, "calls", 0) + 1
        return self.calls in self.due

    def is_over(self):
        self.asked = getattr(self, "asked", 0) + 1
        return self.asked in self.over


def test_checkpoints_say_when_to_save_and_when_to_pause(tmp_path):
    kept = Few(tmp_path)
    kept.due, kept.over = (2, 5), (7,)
    whole, part = run_whole("c-mixup"), run("c-mixup", kept)
    assert (part.ending, part.history) == ("stopped", whole.history[:7])
    assert sorted(os.listdir(tmp_path)) == ["epoch-00005.safetensors", "epoch-00007.safetensors"]
    check_same(run("c-mixup", tmp_path), whole)


def test_checkpoints_change_nothing_and_time_adds_up(tmp_path):
    check_same(run("erm", tmp_path / "whole"), run_whole("erm"))
    run_until(10, "erm", tmp_path / "parts")
    before = Checkpoints(tmp_path / "parts").latest()[1]["seconds"]
    assert run("erm", tmp_path / "parts").seconds > before > 0


def test_a_finished_training_is_not_trained_again(tmp_path):
    whole = run("dropout", tmp_path)  # the model must be in eval mode without having been trained
    files = contents(tmp_path)

    def refuse(module, inputs):
        assert not module.training, "trained again"

    handle = register_module_forward_pre_hook(refuse)
    try:
        again = run("dropout", tmp_path)
    finally:
        handle.remove()
    check_same(again, whole)
    assert again.seconds == whole.seconds
    assert contents(tmp_path) == files


def test_workers_and_the_bar_may_change_on_the_way(tmp_path, capsys):
    run_until(2, "dropout", tmp_path)
    result = run("dropout", tmp_path, machine=Machine(workers=1), progress=True)
    check_same(result, run_whole("dropout"))
    assert "epoch 20/20" in capsys.readouterr().err


# Damage, and states of other trainings.


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    run_until(5, "erm", folder)
    return folder


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """A folder of a test's own with the checkpoints of a training that was stopped."""
    return shutil.copytree(stopped_once, tmp_path, dirs_exist_ok=True)


@pytest.mark.parametrize("place", [0.1, 0.3, 0.6, 0.9])
def test_a_damaged_checkpoint_is_an_error_and_the_one_before_goes_on(stopped, place):
    newest = stopped / "epoch-00005.safetensors"
    damaged = bytearray(newest.read_bytes())
    damaged[int(place * len(damaged))] ^= 1
    newest.write_bytes(damaged)
    files = contents(stopped)
    words = r"epoch-00005\.safetensors: .*damaged\. Delete .*epoch-00005\.safetensors to continue"
    with pytest.raises(CheckpointError, match=words):
        run("erm", stopped)
    assert contents(stopped) == files
    newest.unlink()
    check_same(run("erm", stopped), run_whole("erm"))


def without(state, key):
    return {name: value for name, value in state.items() if name != key}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        *[(lambda state, key=key: without(state, key), key) for key in KEYS],
        *[(lambda state, key=key: state | {key: 0.5}, key) for key in KEYS[:-1]],
        (lambda state: state | {"history": [without(state["history"][0], "loss")]}, "loss"),
        (lambda state: state | {"optimizer": {0: {"step": torch.ones(())}}}, "optimizer"),
    ],
)
def test_a_checkpoint_of_another_form_names_its_file_and_the_key(stopped, change, named):
    newest = stopped / "epoch-00005.safetensors"
    write_state(newest, change(read_state(newest)))
    files = contents(stopped)
    words = rf"epoch-00005\.safetensors: `{named}` .*Delete .*epoch-00005\.safetensors to continue"
    with pytest.raises(CheckpointError, match=words):
        run("erm", stopped)
    assert contents(stopped) == files


def test_best_weights_of_another_architecture_are_refused_before_the_training(stopped):
    newest = stopped / "epoch-00005.safetensors"
    state = read_state(newest)
    write_state(newest, state | {"best_weights": MLP(2, hidden=(8, 16)).state_dict()})
    with pytest.raises(CheckpointError, match=r"epoch-00005\.safetensors belong to another arch"):
        run("erm", stopped)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MLP(2, hidden=(8, 16)), r"block_1\.linear\.weight is \(16, 2\) there and \(8, 2\) here"),
        (MLP(2, hidden=(16, 16, 16)), r"missing there: block_3"),
        (MLP(2, hidden=(16,)), r"unknown here: block_2"),
        (make_normed(), r"another architecture than this Sequential"),
    ],
    ids=["narrower", "deeper", "shallower", "another"],
)
def test_a_checkpoint_of_another_architecture_is_refused(stopped, model, message):
    files = contents(stopped)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    _, _, method, settings, _ = CASES["erm"]
    with pytest.raises(CheckpointError, match=message):
        fit(model, make_table(), method, settings, checkpoint=stopped)
    assert contents(stopped) == files
    assert same_tensors(before, dict(model.state_dict()))


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("erm", {"epochs": 30}, r"settings\.epochs was 20 and is 30"),
        ("erm", {"seed": 5}, r"settings\.seed was 4 and is 5"),
        ("erm", {"learning_rate": 0.1}, r"settings\.learning_rate was 0\.01 and is 0\.1"),
        ("erm", {"clip": 1.0}, r"settings\.clip was None and is 1\.0"),
        (
            "erm",
            {"method_settings": {"sampler": "nearest"}},
            r"method_settings\.sampler was 'random' and is 'near",
        ),
        ("foma-rho", {}, r"method was 'erm' and is 'foma-rho'"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(stopped, method, changes, message):
    files = contents(stopped)
    settings = replace(CASES["erm"][3], **changes)
    with pytest.raises(CheckpointError, match=f"{message}.*Give another folder, or delete"):
        fit(make_mlp(), make_table(), method, settings, checkpoint=stopped)
    assert contents(stopped) == files


def with_other_inputs():
    split = make_table()
    return replace(split, train=replace(split.train, x=split.train.x + 1e-3))


def with_other_validation():
    split = make_table()
    return replace(split, validation=split.test)


@pytest.mark.parametrize(
    ("make_data", "message"),
    [
        (lambda: make_table(seed=1), "training rows was"),
        (lambda: make_table(n=150), "training rows was"),
        (with_other_inputs, "training rows was"),
        (with_other_validation, "training: validation rows was"),
    ],
    ids=["split", "size", "inputs", "validation"],
)
def test_a_checkpoint_of_other_data_is_refused(stopped, make_data, message):
    files = contents(stopped)
    _, _, method, settings, _ = CASES["erm"]
    with pytest.raises(CheckpointError, match=f"another training: .*{message}|{message}"):
        fit(make_mlp(), make_data(), method, settings, checkpoint=stopped)
    assert contents(stopped) == files


def test_a_full_disk_is_an_error_and_the_training_goes_on_when_there_is_space(tmp_path):
    real_save = Checkpoints.save
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def save(self, epoch, state):
        if epoch == 8:  # from here on a file may have no more than so many bytes
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
        real_save(self, epoch, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save)
        try:
            with pytest.raises(CheckpointError, match=r"Could not write .*epoch 7 is untouched\."):
                run("c-mixup", tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(os.listdir(tmp_path)) == [
        "epoch-00006.safetensors",
        "epoch-00007.safetensors",
    ]
    check_same(run("c-mixup", tmp_path), run_whole("c-mixup"))


# Kills. What follows, until the test, runs in a process of its own with a single thread, which can
# be forked safely: a process that had to import everything would mostly be killed doing that.


def train_and_write(case, folder):
    result = run(case, folder / "states")
    history = [vars(epoch) for epoch in result.history]
    state = {"weights": dict(result.weights), "history": history, "best": result.best_epoch}
    write_state(folder / "result", state)


def start(case, folder):
    """Start a training in a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        train_and_write(case, folder)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def newest_epoch(folder):
    names = os.listdir(folder / "states") if (folder / "states").exists() else []
    return max([0, *(int(name[6:11]) for name in names if name.startswith("epoch-"))])


def kill_at(epoch, delay, case, folder):
    """Start, kill some time after this epoch was saved; return the last epoch, None if none was."""
    child = start(case, folder)
    deadline = time.monotonic() + 60
    while newest_epoch(folder) < epoch and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return newest_epoch(folder) if is_killed else None


def drive(case, folder, kills):
    """Train once undisturbed and once with kills; print at which epochs they were."""
    torch.set_num_threads(1)
    run(case)  # imports what is imported where it is used
    begin = time.monotonic()
    if os.waitpid(start(case, folder / "whole"), 0)[1]:
        sys.exit("the undisturbed training failed")
    pause = (time.monotonic() - begin) / 20
    rng = np.random.default_rng((len(case), kills))
    # Not in the last epochs: the training must not end before it is killed.
    epochs = np.sort(rng.choice(13, size=kills, replace=False))
    killed = [kill_at(epoch, rng.uniform(0.0, pause), case, folder / "killed") for epoch in epochs]
    if os.waitpid(start(case, folder / "killed"), 0)[1]:
        sys.exit("the training failed after the last kill")
    print(json.dumps(killed))


@pytest.mark.serial
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that it forks")
@pytest.mark.parametrize(
    ("case", "kills"),
    [
        ("foma-rho at a layer", 4),
        *(
            pytest.param(case, 10, marks=pytest.mark.slow)
            for case in ("foma-rho at a layer", "erm", "c-mixup", "dropout")
        ),
    ],
)
def test_kills_at_random_moments_leave_no_trace(tmp_path, case, kills):
    code = (
        "import pathlib, runpy, sys; "
        "runpy.run_path(sys.argv[1])['drive'](sys.argv[2], pathlib.Path(sys.argv[3]), "
        "int(sys.argv[4]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, __file__, case, str(tmp_path), str(kills)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    killed = json.loads(done.stdout)
    assert len(killed) == kills
    assert None not in killed  # every one of them ended a training that was under way
    assert len(set(killed)) > kills // 2
    whole, result = (read_state(tmp_path / name / "result") for name in ("whole", "killed"))
    assert len(whole["history"]) == 20
    assert result["history"] == whole["history"]
    assert result["best"] == whole["best"]
    assert same_tensors(result["weights"], whole["weights"])


def test_a_paused_training_goes_on_as_if_it_had_not_paused(tmp_path):
    make_data, make_model, method, settings, _ = CASES["dropout"]
    whole = fit(make_model(), make_data(), method, settings)
    for stop, epochs in ((3, 3), (8, 8), (None, 20)):
        own = replace(settings, stop_after=stop)
        result = fit(make_model(), make_data(), method, own, checkpoint=tmp_path)
        assert len(result.history) == epochs
        assert result.ending == ("finished" if stop is None else "paused")
        assert result.history == whole.history[:epochs]
    check_same(result, whole)


def test_a_training_pauses_where_it_ends_anyway(tmp_path):
    settings = replace(PLAIN, epochs=4, stop_after=9)
    assert fit(make_mlp(), make_table(), "erm", settings).ending == "finished"
    same_end = replace(settings, stop_after=4)
    assert fit(make_mlp(), make_table(), "erm", same_end).ending == "finished"
