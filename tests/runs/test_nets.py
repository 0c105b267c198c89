"""The weights of a study's nets."""

import pytest
import torch
from torch import nn

from regaug.data.base import Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import FileError
from regaug.problems import Problem
from regaug.runs.executors import run_in_processes
from regaug.runs.nets import NETS, keep_nets, net_file, read_net, write_net
from regaug.runs.run import Run
from regaug.runs.worker import Worker
from regaug.training import Settings


def make_net(split):
    return nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def make_run(seed=0, **settings):
    return Run("mine", "erm", 0, seed, Settings(epochs=2, **settings), 0, stage="method")


@pytest.fixture
def split() -> Split:
    return make_manifold("sine", n=60).split()


def test_weights_come_back_by_name_and_any_program_can_read_them(tmp_path):
    net = make_net(None)
    write_net(tmp_path, make_run(), net.state_dict())
    found = read_net(net_file(tmp_path, make_run()))
    assert found.keys() == net.state_dict().keys()
    other = make_net(None)
    other.load_state_dict(found)
    assert all(torch.equal(found[name], own) for name, own in net.state_dict().items())


def test_only_those_that_are_wanted_stay(tmp_path):
    for seed in range(3):
        write_net(tmp_path, make_run(seed), make_net(None).state_dict())
    (tmp_path / NETS / "mine.txt").touch()
    keep_nets(tmp_path, [make_run(1)])
    assert {file.name for file in (tmp_path / NETS).iterdir()} == {
        f"{make_run(1).key}.safetensors",
        "mine.txt",
    }
    keep_nets(tmp_path / "nothing", [])  # a study without any


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    file = net_file(tmp_path, make_run())
    with pytest.raises(FileError, match=make_run().key):
        read_net(file)
    file.parent.mkdir()
    file.write_bytes(b"no weights")
    with pytest.raises(FileError, match="not a complete safetensors file"):
        read_net(file)


def test_a_worker_leaves_the_weights_of_networks_in_the_folder(tmp_path, split):
    own, table = Problem([split], make_net, name="mine"), Problem([split], name="table")
    worker = Worker([own, table], folder=tmp_path)
    run = make_run()
    [record] = worker.do((run,))
    net = make_net(None)
    net.load_state_dict(read_net(net_file(tmp_path, run)))
    scaled = own.split(0)
    with torch.inference_mode():
        error = scaled.restore(net.eval()(scaled.test.x)) - split.test.y
    assert error.square().mean().sqrt().item() == pytest.approx(
        record.scores["test"].rmse, rel=1e-4
    )
    worker.do((Run("table", "erm", 0, 0, Settings(epochs=1), 0),))
    assert len(list((tmp_path / NETS).iterdir())) == 1


@pytest.mark.serial
def test_worker_processes_know_the_folder(tmp_path, split):
    worker = Worker([Problem([split], make_net, name="mine")], folder=tmp_path)
    [[_]] = run_in_processes(worker, [(make_run(),)], jobs=1)
    assert net_file(tmp_path, make_run()).is_file()
