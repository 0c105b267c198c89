"""Networks that are not finished: whoever does them again goes on, and disturbs nobody."""

import os
import shutil
import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from regaug import _random
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import FileError, StoreError
from regaug.models import MLP
from regaug.problems import Problem
from regaug.runs import unfinished as module
from regaug.runs.claims import Claim
from regaug.runs.nets import NETS, read_net
from regaug.runs.run import Run
from regaug.runs.unfinished import CHECKPOINTS, CLAIM, Unfinished, name_of
from regaug.runs.worker import Worker
from regaug.training import Settings

EPOCHS = 6
SPLITS = [make_manifold("paraboloid", n=60, noise=0.1).split(seed) for seed in range(2)]
STEPS = []  # of all trainings: how often a net was called to be trained


class Counting(nn.Sequential):
    """A net that notes how often it is trained, and stops when it is told to."""

    limit = None

    def forward(self, x):
        if self.training:
            if self.limit is not None and len(STEPS) >= self.limit:
                raise KeyboardInterrupt
            STEPS.append(1)
        return super().forward(x)


def make_net(split, seed, width=4):
    with _random.seeded(seed):
        return Counting(nn.Linear(2, width), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 1))


def make_wide(split, seed):
    return make_net(split, seed, width=5)


def make_problem(model=make_net):
    return Problem(SPLITS, model, name="bowl")


def make_run(**settings):
    own = Settings(**{"epochs": EPOCHS, "batch_size": 64, "learning_rate": 0.05} | settings)
    return Run("bowl", "mixup", 0, 3, own, 0)


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """An epoch is a step; a state is saved after each."""
    STEPS.clear()
    monkeypatch.setattr(Counting, "limit", None)
    monkeypatch.setattr(module, "PACE", 0.0)
    return STEPS


def do(folder, run=None, model=make_net, **options):
    worker = Worker([make_problem(model)], details=True, folder=folder, **options)
    return worker.do((run or make_run(),))


def plain(records):
    (record,) = records
    return replace(record, seconds=0.0, predict_seconds=None).to_dict()


def interrupt(monkeypatch, folder, after, **options):
    with monkeypatch.context() as patch:
        patch.setattr(Counting, "limit", after)
        with pytest.raises(KeyboardInterrupt):
            do(folder, **options)


@pytest.fixture
def whole():
    found = plain(do(None))
    STEPS.clear()
    return found


def epochs_in(folder):
    return sorted(int(file.name[6:11]) for file in folder.glob(f"{CHECKPOINTS}/*/epoch-*"))


def test_a_run_goes_on_from_its_last_epoch_to_the_same_record(tmp_path, monkeypatch, whole):
    interrupt(monkeypatch, tmp_path, after=4)
    assert epochs_in(tmp_path) == [3, 4]
    assert not list(tmp_path.rglob(CLAIM))  # anybody may go on
    assert plain(do(tmp_path)) == whole
    assert len(STEPS) == EPOCHS


def test_a_finished_run_leaves_its_weights_and_nothing_else_when_it_is_forgotten(tmp_path, whole):
    worker, run = Worker([make_problem()], folder=tmp_path), make_run()
    (record,) = worker.do((run,))
    worker.forget(run)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file == tmp_path / NETS / f"{run.key}.safetensors"
    net = make_net(SPLITS[0], 0)
    net.load_state_dict(read_net(file))
    net.eval()
    split = worker.problems["bowl"].split(0)
    with torch.no_grad():
        error = split.restore(net(split.test.x)) - SPLITS[0].test.y
    assert error.square().mean().sqrt().item() == pytest.approx(record.score("test", "rmse"))
    worker.forget_all()
    assert not (tmp_path / CHECKPOINTS).exists()


def test_weights_are_read_by_safetensors_alone(tmp_path):
    from safetensors.torch import load_file

    do(tmp_path)
    (file,) = (tmp_path / NETS).iterdir()
    make_net(SPLITS[0], 0).load_state_dict(load_file(file))


def test_a_run_that_diverges_leaves_no_weights(tmp_path):
    (record,) = do(tmp_path, make_run(learning_rate=1e30))
    assert record.ending == "diverged"
    assert not (tmp_path / NETS).exists()


def test_what_another_process_trains_is_left_to_it(tmp_path):
    claim = Claim.take(tmp_path / CHECKPOINTS / name_of(make_run()) / CLAIM)
    assert do(tmp_path) == []
    assert not STEPS
    claim.end()
    assert len(do(tmp_path)) == 1


def test_two_who_train_the_same_run_do_not_disturb_each_other(tmp_path, monkeypatch, whole):
    # As when a claim has expired of a process that was asleep: the other one is just writing.
    (tmp_path / CHECKPOINTS / name_of(make_run())).mkdir(parents=True)
    other = tmp_path / CHECKPOINTS / name_of(make_run()) / ".epoch-00002.safetensors.1-ab.tmp"
    other.write_bytes(b"half")
    assert plain(do(tmp_path)) == whole
    assert other.exists()
    real = Unfinished.save

    def save(self, epoch, state):
        real(self, epoch, state)
        if epoch == 3:  # the other one has finished, and its record is stored
            self.clear()

    monkeypatch.setattr(Unfinished, "save", save)
    assert plain(do(tmp_path)) == whole


def test_a_folder_that_vanishes_while_a_state_is_written_is_no_error(tmp_path, monkeypatch, whole):
    def fail(path, state, *, sync):
        shutil.rmtree(path.parent, ignore_errors=True)
        raise FileError("Could not write.")

    monkeypatch.setattr("regaug.training.checkpoint.write_state", fail)
    assert plain(do(tmp_path)) == whole


def test_a_full_disk_ends_the_work_and_keeps_what_there_is(tmp_path, monkeypatch, whole):
    interrupt(monkeypatch, tmp_path, after=3)
    with monkeypatch.context() as patch:
        patch.setattr("regaug._files.os.replace", lambda *paths: (_ for _ in ()).throw(full()))
        with pytest.raises(StoreError, match=r"No space left .*epoch 3 is untouched"):
            do(tmp_path)
    assert epochs_in(tmp_path) == [2, 3]
    assert plain(do(tmp_path)) == whole


def full():
    return OSError(28, "No space left on device")


# Damage, and other networks


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_state_is_left_out(tmp_path, monkeypatch, whole, damaged):
    interrupt(monkeypatch, tmp_path, after=4)
    for file in sorted(tmp_path.glob(f"{CHECKPOINTS}/*/epoch-*"))[-damaged:]:
        file.write_bytes(file.read_bytes()[:-9])
    assert plain(do(tmp_path)) == whole
    assert len(STEPS) == 4 + (EPOCHS - 3 if damaged == 1 else EPOCHS)


def test_a_network_that_has_changed_starts_anew(tmp_path, monkeypatch):
    interrupt(monkeypatch, tmp_path, after=4)
    assert plain(do(tmp_path, model=make_wide)) == plain(do(None, model=make_wide))
    assert len(STEPS) == 4 + 2 * EPOCHS


# Pauses


def test_a_run_pauses_after_an_epoch_when_the_time_is_up(tmp_path, whole):
    for epoch in range(1, EPOCHS):
        assert do(tmp_path, until=time.time() - 1.0) == []
        assert (len(STEPS), epochs_in(tmp_path)[-1]) == (epoch, epoch)
    assert not list(tmp_path.rglob(CLAIM))
    assert plain(do(tmp_path, until=time.time() - 1.0)) == whole  # its last epoch
    assert len(STEPS) == EPOCHS


def test_a_run_pauses_when_it_is_asked_to_and_others_do_not(tmp_path, whole):
    here, other = (Worker([make_problem()], details=True, folder=tmp_path) for _ in range(2))
    here.pause()
    assert here.do((make_run(),)) == []
    assert len(STEPS) == 1
    assert plain(other.do((make_run(),))) == whole
    other.forget(make_run())
    here.resume()
    assert not (tmp_path / CHECKPOINTS).exists()


def test_without_a_folder_nothing_pauses_and_nothing_is_kept(tmp_path, whole):
    gone = tmp_path / "another machine"
    worker = Worker([make_problem()], details=True, folder=gone, until=0.0)
    worker.pause()
    assert plain(worker.do((make_run(),))) == whole
    assert not gone.exists()


def test_a_run_that_stops_after_some_epochs_is_a_part_of_the_whole(tmp_path, whole):
    (first,) = do(tmp_path, make_run(stop_after=2))
    (second,) = do(tmp_path, make_run(stop_after=4))
    assert (first.ending, first.epochs, second.ending, second.epochs) == ("paused", 2, "paused", 4)
    assert first.run.key != second.run.key != make_run().key
    assert not (tmp_path / NETS).exists()  # not finished
    assert plain(do(tmp_path)) == whole
    assert len(STEPS) == EPOCHS
    for short in (first, second):
        assert short.curves["validation"] == whole["curves"]["validation"][: short.epochs]


def test_a_run_that_pauses_earlier_than_its_state_is_done_again(tmp_path):
    (long,) = do(tmp_path, make_run(stop_after=5))
    (short,) = do(tmp_path, make_run(stop_after=2))
    assert (short.epochs, len(STEPS)) == (2, 5 + 2)
    assert short.curves["loss"] == long.curves["loss"][:2]


# How often


def test_saving_takes_a_small_part_of_the_time(tmp_path, monkeypatch):
    monkeypatch.undo()
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    own, saved = Unfinished(tmp_path, make_run()), []

    def write(self, epoch, state):
        clock[0] += 1 / 128
        saved.append(epoch)

    monkeypatch.setattr("regaug.training.checkpoint.Checkpoints.save", write)
    for epoch in range(1, 1001):
        clock[0] += 1 / 64
        if own.is_due():
            own.save(epoch, {})
    assert saved[0] <= 13  # at first it is guessed how long it takes
    assert set(map(int.__sub__, saved[2:], saved[1:-1])) == {50}  # 50 epochs: 100 times as long
    clock[0] += 100 / 128
    assert own.is_due()  # after every epoch that is as long as that


def test_table_nets_that_train_by_themselves_keep_nothing(tmp_path):
    from regaug import methods

    own = methods.get("mixup").settings(place=methods.BOTH)
    run = replace(make_run(), settings=Settings(epochs=2, method_settings=own))
    worker = Worker([Problem(SPLITS, name="bowl", hidden=(4,))], folder=tmp_path)
    assert len(worker.do((run,))) == 1
    worker.pause()
    assert os.listdir(tmp_path) == []


def test_a_network_is_trained_on_the_accelerator_that_is_there(tmp_path, monkeypatch):
    from regaug.training.settings import Machine

    asked = []
    real = Machine.make_fabric
    monkeypatch.setattr(
        Machine, "make_fabric", lambda self: asked.append(self.device) or real(self)
    )
    Worker([make_problem(lambda split, seed: MLP(2, seed=seed))]).do((make_run(),))
    assert asked == ["auto"]
