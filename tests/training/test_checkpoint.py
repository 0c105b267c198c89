"""Checkpoints: a failed save changes nothing, and only what fits is gone on from."""

import errno
import os
import re
import resource
import subprocess
import sys
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

import regaug
from regaug import _files, _random
from regaug.exceptions import ArgumentError, ArgumentTypeError, CheckpointError
from regaug.training.checkpoint import Checkpoints, TrainingState, load_optimizer, load_weights
from regaug.training.results import Epoch
from regaug.training.state import read_state, write_state

STATE = {"epoch": 6, "rate": 0.125, "net": {"weight": torch.arange(64.0)}, "ids": {3: (1, 2)}}


def names(*epochs):
    return [f"epoch-{epoch:05d}.safetensors" for epoch in epochs]


def same(a, b):
    """Equal in value and type, tensors too."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def trained():
    """A net with running statistics, and its optimizer, after two steps."""
    generator = _random.make_generator(0)
    with _random.seeded(0):
        net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, betas=(0.8, 0.99))
    for _ in range(2):
        step(net, optimizer, torch.randn(16, 3, generator=generator))
    return net, optimizer, generator


def step(net, optimizer, x):
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).square().mean().backward()
    optimizer.step()


def test_a_training_continues_as_if_it_had_not_stopped(tmp_path):
    (net, optimizer, generator), (other, other_optimizer, other_generator) = trained(), trained()
    foma, other_foma = regaug.FOMA(), regaug.FOMA()
    foma(torch.randn(8, 3, generator=_random.make_generator(1)), torch.zeros(8, 1))
    state = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict()["state"],
        "augmentation": foma.state_dict(),
        "generator": generator.get_state(),
    }
    write_state(tmp_path / "saved", state)
    back = read_state(tmp_path / "saved")
    step(other, other_optimizer, torch.ones(16, 3))
    torch.rand(5, generator=other_generator)
    load_weights(other, back["net"], source="saved")
    load_optimizer(other_optimizer, back["optimizer"], tmp_path / "saved")
    load_weights(other_foma, back["augmentation"], source="saved")
    other_generator.set_state(back["generator"])
    assert same(other_optimizer.state_dict(), optimizer.state_dict())
    for _ in range(3):
        step(net, optimizer, torch.randn(16, 3, generator=generator))
        step(other, other_optimizer, torch.randn(16, 3, generator=other_generator))
    assert same(dict(other.state_dict()), dict(net.state_dict()))
    assert torch.equal(foma.generator.get_state(), other_foma.generator.get_state())


class Failing:
    """Calls the real function, except that one of the calls fails."""

    def __init__(self, real, at, error):
        self.real, self.left, self.error = real, at, error

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == -1:
            raise self.error
        return self.real(*args, **kwargs)


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_failed_save_changes_nothing(tmp_path, monkeypatch, function, error):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(5, STATE | {"epoch": 5})
    checkpoints.save(6, STATE)
    with monkeypatch.context() as patch:
        patch.setattr(_files.os, function, Failing(getattr(os, function), 0, error))
        with pytest.raises((CheckpointError, KeyboardInterrupt)) as caught:
            checkpoints.save(7, {"epoch": 7})
    if error is FULL:
        said = re.sub(r" The disk of \S+ has [\d,.]+ MB left\.", "", str(caught.value))
        assert said == (
            f"Could not write {checkpoints.path(7)}: No space left on device. "
            "Free some space and run the same command again. "
            "The checkpoint of epoch 6 is untouched."
        )
    assert sorted(os.listdir(tmp_path)) == names(5, 6)
    assert same(checkpoints.latest(), (6, STATE))


def test_a_write_that_the_system_cuts_short_changes_nothing(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(6, STATE)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.raises(CheckpointError, match=r"File too large.* epoch 6 is untouched\."):
            checkpoints.save(7, {"net": torch.zeros(2**20)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == names(6)
    assert same(checkpoints.latest(), (6, STATE))


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "runs").write_text("a file")
    checkpoints = Checkpoints(tmp_path / "runs")
    assert checkpoints.latest() is None
    with pytest.raises(CheckpointError, match="A file is in the way: choose another folder"):
        checkpoints.save(1, STATE)
    assert (tmp_path / "runs").read_text() == "a file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="Permission denied. Choose a folder"):
        Checkpoints(tmp_path).save(1, STATE)


def test_nothing_saved_is_none(tmp_path):
    assert Checkpoints(tmp_path / "nowhere").latest() is None
    assert Checkpoints(str(tmp_path)).latest() is None


def test_the_last_two_epochs_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path / "made" / "here")
    for epoch in (1, 2, 99_999, 100_000):
        checkpoints.save(epoch, {"epoch": epoch})
        assert checkpoints.latest() == (epoch, {"epoch": epoch})
    assert sorted(os.listdir(checkpoints.folder)) == [
        "epoch-100000.safetensors",
        "epoch-99999.safetensors",
    ]


def test_an_earlier_epoch_replaces_the_later_ones(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for epoch in (3, 8, 9, 4):
        checkpoints.save(epoch, {"epoch": epoch})
    assert checkpoints.latest() == (4, {"epoch": 4})


def test_a_damaged_newest_one_is_named_and_the_one_before_is_next(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(6, STATE)
    checkpoints.save(7, {"epoch": 7})
    checkpoints.path(7).write_bytes(b"")
    way_out = r"Delete .*epoch-00007\.safetensors to continue"
    with pytest.raises(CheckpointError, match=rf"epoch-00007.* is damaged\. {way_out}"):
        checkpoints.latest()
    checkpoints.path(7).unlink()
    assert same(checkpoints.latest(), (6, STATE))


def test_leftovers_of_a_killed_process_are_ignored_then_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, STATE)
    for name in (".epoch-00002.safetensors.123-ab.tmp", ".mine.tmp"):
        (tmp_path / name).write_text("half of")
    assert same(checkpoints.latest(), (1, STATE))
    checkpoints.save(2, STATE)
    assert sorted(os.listdir(tmp_path)) == [".mine.tmp", *names(1, 2)]


def test_clear_removes_the_checkpoints_and_nothing_else(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, STATE)
    checkpoints.save(2, STATE)
    (tmp_path / ".epoch-00003.safetensors.123-ab.tmp").write_text("half of")
    (tmp_path / "notes.txt").write_text("keep me")
    checkpoints.clear()
    assert os.listdir(tmp_path) == ["notes.txt"]
    assert checkpoints.latest() is None


@pytest.mark.parametrize("epoch", [-1, 1.5, True])
def test_an_epoch_is_a_whole_number(tmp_path, epoch):
    with pytest.raises((ArgumentError, ArgumentTypeError), match="`epoch`"):
        Checkpoints(tmp_path).save(epoch, STATE)


# Saves in a loop in a process of its own and kills it with SIGKILL, ten times; prints the last
# epoch that was announced and the one that is found, or what is wrong with it.
KILLED_TEN_TIMES = """
import os, random, signal, sys, time
import torch
from regaug.training.checkpoint import Checkpoints

checkpoints, moments = Checkpoints(sys.argv[1]), random.Random(0)

def save_forever(epoch, announce):
    while True:
        epoch += 1
        checkpoints.save(epoch, {"epoch": epoch, "weight": torch.full((100, 100), float(epoch))})
        os.write(announce, b"%d " % epoch)

epoch = 0
for _ in range(10):
    listen, announce = os.pipe()
    child = os.fork()
    if child == 0:
        save_forever(epoch, announce)
    os.close(announce)
    first = os.read(listen, 1)
    time.sleep(moments.uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    announced = int((first + os.read(listen, 1 << 20)).split()[-1])
    os.close(listen)
    epoch, state = checkpoints.latest()
    assert state["epoch"] == epoch and bool((state["weight"] == epoch).all())
    print(announced, epoch)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.serial
def test_a_process_killed_at_any_moment_leaves_its_last_epoch(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED_TEN_TIMES, str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rounds = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(rounds) == 10
    assert all(found - announced in (0, 1) for announced, found in rounds)
    Checkpoints(tmp_path).save(rounds[-1][1] + 1, STATE)
    assert len(os.listdir(tmp_path)) == 2


def make_net(width=8, depth=1):
    layers = [nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width)) for _ in range(depth)]
    return nn.Sequential(OrderedDict(body=nn.Sequential(*layers), head=nn.Linear(width, 1)))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            make_net(width=9),
            r"body\.0\.0\.weight is \(9, 9\) there and \(8, 8\) here, .* and 4 more",
        ),
        (make_net(depth=2), r"unknown here: body\.1\.0\.weight, body\.1\.0\.bias, .* and 4 more\."),
        (
            make_net(depth=0),
            r"missing there: body\.0\.0\.weight, body\.0\.0\.bias, .* and 4 more\.",
        ),
    ],
    ids=["wider", "deeper", "shallower"],
)
def test_weights_of_another_architecture_leave_the_module_untouched(other, message):
    net = make_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(CheckpointError, match=f"weights of run/7 belong to another .*{message}"):
        load_weights(net, other.state_dict(), source="run/7")
    assert same(dict(net.state_dict()), before)


def test_weights_that_are_no_tensors_leave_the_module_untouched():
    net = nn.Linear(2, 1)
    before = net.weight.clone()
    weights = {"weight": torch.zeros(1, 2), "bias": [0.0]}
    with pytest.raises(CheckpointError, match=r"bias is a list there and \(1,\) here"):
        load_weights(net, weights, source="run/7")
    assert torch.equal(net.weight, before)


def test_weights_that_fit_are_copied():
    net, other = make_net(), make_net()
    load_weights(net, other.state_dict(), source="run/7")
    assert same(dict(net.state_dict()), dict(other.state_dict()))
    other.head.weight.data.zero_()
    assert bool(net.head.weight.any())


# What a checkpoint must hold.

WEIGHTS = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
MOMENTS = [torch.ones(()), torch.ones(1, 2), torch.ones(1, 2)]
TRAINING = TrainingState(
    configuration={"method": "erm"},
    weights=WEIGHTS,
    best_epoch=1,
    best_weights=WEIGHTS,
    optimizer={0: dict(zip(("step", "exp_avg", "exp_avg_sq"), MOMENTS, strict=True))},
    precision={},
    history=(Epoch(0.5, None, 0.25, 1.0), Epoch(0.5, 0.1, float("inf"), None)),
    seconds=1.5,
)


def test_a_training_state_comes_back(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(2, TRAINING.to_dict())
    back = TrainingState.read(checkpoints.latest()[1], checkpoints.path(2))
    assert same(back.to_dict(), TRAINING.to_dict())
    assert back.history == TRAINING.history


@pytest.mark.parametrize("key", vars(TRAINING))
def test_a_missing_key_is_named_with_its_file(tmp_path, key):
    values = TRAINING.to_dict()
    del values[key]
    words = rf"Cannot use .*epoch-00002\.safetensors: `{key}` is missing\. Delete .* to continue"
    with pytest.raises(CheckpointError, match=words):
        TrainingState.read(values, Checkpoints(tmp_path).path(2))


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        *[(key, value, key) for key in vars(TRAINING) for value in (None, "much", torch.ones(2))],
        *[("best_epoch", value, "best_epoch") for value in (True, 1.0, -1, 3)],
        ("seconds", 1, "seconds"),
        ("weights", {"weight": [1.0]}, "weight"),
        ("optimizer", {"0": {}}, "optimizer"),
        ("optimizer", {0: {"step": 1}}, "step"),
        ("history", [None], "history"),
        ("history", [{"loss": 1.0, "train": None, "validation": 1.0}], "test"),
        ("history", [{"loss": 1.0, "train": 1, "validation": 1.0, "test": None}], "train"),
        ("history", [{"loss": None, "train": None, "validation": 1.0, "test": None}], "loss"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_file(tmp_path, key, value, named):
    with pytest.raises(
        CheckpointError, match=rf"epoch-00002\.safetensors: `{named}` (must|is missing)"
    ):
        TrainingState.read(TRAINING.to_dict() | {key: value}, Checkpoints(tmp_path).path(2))


@pytest.mark.parametrize(
    "change",
    [
        lambda state: {5: state[0]},
        lambda state: {-1: state[0]},
        lambda state: {0: {}},
        lambda state: {0: state[0] | {"exp_avg": torch.ones(2)}},
        lambda state: {0: state[0] | {"step": torch.ones(1, 2)}},
        lambda state: {0: {name: state[0][name] for name in ("step", "exp_avg")}},
    ],
)
def test_a_state_of_another_optimizer_leaves_this_one_as_it_is(tmp_path, change):
    optimizer = torch.optim.AdamW(nn.Linear(2, 1).parameters())
    load_optimizer(optimizer, TRAINING.optimizer, tmp_path)
    before = optimizer.state_dict()
    with pytest.raises(CheckpointError, match="`optimizer` must fit the model"):
        load_optimizer(optimizer, change(TRAINING.optimizer), tmp_path)
    assert same(optimizer.state_dict(), before)
