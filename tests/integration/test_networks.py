"""The big networks through `training.fit`: a short form of each training, the whole one is slow.

PovertyMap and EchoNet-Dynamic may not be passed on, so theirs are files made up in their layout.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regaug.data import load, standardize
from regaug.data.base import Part, Split
from regaug.data.datasets.named import is_here
from regaug.data.datasets.povertymap import load_povertymap
from regaug.data.datasets.video import load_echo
from regaug.data.lazy import Lazy
from regaug.models import DeepDTA, LSTNet, R2Plus1D18, ResNet18
from regaug.training import Machine, Settings, fit

# What is changed of a method's settings: FOMA acts at the layer that each network names first.
METHODS = {"erm": {}, "foma-rho": {"place": "layer"}}

methods = pytest.mark.parametrize("method", list(METHODS))
# The plain step is a part of the other, and these nets are large.
rather_foma = pytest.mark.parametrize(
    "method", [pytest.param("erm", marks=pytest.mark.slow), "foma-rho"]
)


def first_rows(split, train, rest):
    """Return a split with the first rows of each part, which are not read for it."""

    few = {name: split.parts[name].take(slice(rest)) for name in ("validation", "test")}
    return replace(split, train=split.train.take(slice(train)), **few, more={})


def train(net, split, method, **settings):
    """Train, and check what must hold for any training."""
    before = {name: weight.clone() for name, weight in net.state_dict().items()}
    result = fit(
        net,
        split,
        method,
        Settings(**settings, method_settings=METHODS[method]),
        machine=Machine(device="cpu"),
    )
    assert (result.ending, len(result.history)) == ("finished", settings["epochs"])
    for epoch in result.history:
        assert all(map(math.isfinite, (epoch.loss, epoch.train, epoch.validation, epoch.test)))
    assert all(weight.isfinite().all() for weight in result.weights.values())
    for name, _ in net.named_parameters():
        assert not torch.equal(result.weights[name], before[name]), f"{name} was not trained"
    return result


def check_learned(result, split):
    """Check that plain training beats the mean; one epoch of FOMA need not.

    Its batches have nearly equal targets, so what a layer's batch norm averages over an epoch fits
    none of them at first.
    """
    if result.method == "erm":
        assert result.history[-1].train < split.restore(split.train.y).std()


# Real data


@pytest.fixture
def real(real_data, monkeypatch):
    """Split real data, by name."""
    monkeypatch.setenv("REGAUG_DATA", str(real_data))

    def split(name):
        if not is_here(name):
            pytest.skip(f"needs {name}, which is not on this disk: regaug data fetch {name}")
        return standardize(load(name).split(seed=0))

    return split


@methods
def test_lstnet_trains_on_windows_of_exchange_rate(real, method):
    split = first_rows(real("exchange-rate"), 500, 200)
    train(LSTNet(8), split, method, epochs=1, batch_size=64)


@pytest.mark.slow
@methods
def test_lstnet_learns_exchange_rate(real, method):
    result = train(LSTNet(8), real("exchange-rate"), method, epochs=5, batch_size=32)
    first, last = result.history[0], result.history[-1]
    assert last.loss < first.loss / 2
    assert last.train < first.train
    assert last.validation < first.validation


@methods
def test_resnet_trains_on_images_of_rcf_mnist(real, method):
    split = first_rows(real("rcf-mnist"), 64, 16)
    train(ResNet18(), split, method, epochs=1, batch_size=32)


@pytest.mark.slow
@methods
def test_resnet_trains_on_two_thousand_images_of_rcf_mnist(real, method):
    split = first_rows(real("rcf-mnist"), 2000, 500)
    check_learned(train(ResNet18(), split, method, epochs=1, batch_size=64), split)


@methods
def test_deepdta_trains_on_pairs_of_davis(real, method):
    split = first_rows(real("davis"), 64, 16)
    train(DeepDTA(), split, method, epochs=1, batch_size=32)


@pytest.mark.slow
@methods
def test_deepdta_trains_on_five_thousand_pairs_of_davis(real, method):
    split = first_rows(real("davis"), 5000, 1000)
    check_learned(train(DeepDTA(), split, method, epochs=1, batch_size=64), split)


# Data made up in the layout of the real ones


@pytest.fixture(scope="module")
def poverty(tmp_path_factory):
    """PovertyMap with 8 images to train on and 2 in each of the other parts."""
    folder = tmp_path_factory.mktemp("wilds") / "poverty_v1.1"
    (folder / "images").mkdir(parents=True)
    (folder / "RELEASE_v1.1.txt").touch()
    # Of the rows outside the held-out countries 2,000 are not for training.
    countries = ["ghana"] * 2008 + ["benin"] * 2 + ["mali"] * 2
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.4f},{name},{i % 2}" for i, name in enumerate(countries)]
    (folder / "dhs_metadata.csv").write_text("\n".join(["wealthpooled,country,urban", *lines]))
    for i in range(len(countries)):
        (folder / f"images/landsat_poverty_img_{i}.npz").touch()
    split = load_povertymap("A", path=folder).split()
    for row in np.concatenate([split.train.rows, split.validation.rows, split.test.rows]):
        image = rng.normal(size=(8, 224, 224)).astype(np.float32)
        np.savez(folder / f"images/landsat_poverty_img_{row}.npz", x=image)
    return replace(standardize(split), more={})


@rather_foma
def test_resnet_takes_two_steps_on_satellite_images(poverty, method):
    train(ResNet18(channels=8), poverty, method, epochs=1, batch_size=4)


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    """Make EchoNet-Dynamic with 4 videos to train on and 1 in each of the other parts."""
    av = pytest.importorskip("av", reason='needs the extra "regaug[video]"')
    folder = tmp_path_factory.mktemp("echonet")
    (folder / "Videos").mkdir()
    listed, traced = ["FileName,EF,NumberOfFrames,Split"], ["FileName,X1,Y1,X2,Y2,Frame"]
    rng = np.random.default_rng(0)
    for i, part in enumerate(["TRAIN"] * 4 + ["VAL", "TEST"]):
        listed.append(f"0X{i},{rng.uniform(20, 80):.1f},70,{part}")
        traced += [f"0X{i}.avi,1,2,3,4,{frame}" for frame in (1, 2)]
        with av.open(str(folder / f"Videos/0X{i}.avi"), "w", format="avi") as container:
            stream = container.add_stream("mjpeg", rate=50, width=112, height=112)
            stream.pix_fmt = "yuvj420p"
            for _ in range(70):
                pixels = rng.integers(0, 256, (112, 112, 3), dtype=np.uint8)
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                container.mux(stream.encode(frame.reformat(format="yuvj420p")))
            container.mux(stream.encode())
    (folder / "FileList.csv").write_text("\n".join(listed))
    (folder / "VolumeTracings.csv").write_text("\n".join(traced))
    return folder


@rather_foma
def test_r2plus1d_takes_two_steps_on_short_clips(echo, method):
    split = standardize(load_echo(path=echo, frames=2, period=8).split())
    train(R2Plus1D18(), split, method, epochs=1, batch_size=2)


@pytest.mark.slow
@methods
def test_r2plus1d_takes_two_steps_on_whole_clips(echo, method):
    split = standardize(load_echo(path=echo).split())
    train(R2Plus1D18(), split, method, epochs=1, batch_size=2)


# Inputs that are not in memory


class Numbers(Lazy):
    """Random inputs, others in every epoch, that write down what they are asked for."""

    def __init__(self, n):
        super().__init__(n, (64, 64))
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()
        self.epochs, self.most = [], 0

    def set_epoch(self, epoch):
        self.epoch.fill_(epoch)
        self.epochs.append(epoch)

    def _read(self, place):
        draws = np.random.default_rng((int(self.epoch), place)).normal(size=(64, 64))
        return torch.from_numpy(draws).float()

    def _stack(self, places):
        self.most = max(self.most, len(places))
        return super()._stack(places)


def numbers(n):
    """Return a split of such inputs, and a net for it."""
    train, other = (Part(Numbers(m), torch.linspace(-1, 1, m)[:, None], np.arange(m)) for m in n)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(64 * 64, 1))
    return Split(train, other, other), net


def test_inputs_are_never_all_in_memory():
    # The history shows the error on 2,000 of the training rows: not at once either.
    split, net = numbers((2500, 10))
    fit(net, split, "erm", Settings(epochs=1, batch_size=100), machine=Machine(device="cpu"))
    assert 100 <= split.train.x.most <= 256


def test_training_inputs_are_told_every_epoch():
    split, net = numbers((8, 2))
    fit(net, split, "erm", Settings(epochs=3, batch_size=4), machine=Machine(device="cpu"))
    assert split.train.x.epochs == [0, 1, 2]
    assert split.validation.x.epochs == []


def test_workers_read_what_the_process_itself_would_read_in_every_epoch():
    results = []
    for workers in (0, 1):
        split, net = numbers((8, 2))
        settings = Settings(epochs=3, batch_size=4)
        results.append(
            fit(net, split, "erm", settings, machine=Machine(device="cpu", workers=workers))
        )
    alone, helped = results
    assert alone.history == helped.history
    assert all(torch.equal(alone.weights[name], helped.weights[name]) for name in alone.weights)
