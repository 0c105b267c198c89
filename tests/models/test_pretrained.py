"""Networks that start from a file: by our names, by torchvision's, and what does not fit."""

import re

import pytest
import torch
from safetensors.torch import save_file

from regaug.exceptions import ArgumentError, FileError
from regaug.models import R2Plus1D18, ResNet18

SPLIT = {"0": "conv1.0.0", "1": "conv1.0.1", "3": "conv1.0.3", "4": "conv1.1"}
SPLIT |= {"6": "conv2.0.0", "7": "conv2.0.1", "9": "conv2.0.3", "10": "conv2.1"}
PLAIN = {"0": "conv1", "1": "bn1", "3": "conv2", "4": "bn2"}


def torchvision_name(name, is_split):
    """Say what torchvision calls a weight of ours: the way back, written down by hand."""
    name = re.sub(r"^stage_(\d)", r"layer\1", name).replace("shortcut", "downsample")
    name = re.sub(r"^head", "fc", name)
    if not is_split:
        name = re.sub(r"^stem\.0", "conv1", re.sub(r"^stem\.1", "bn1", name))
    parts = SPLIT if is_split else PLAIN
    return re.sub(r"residual\.(\d+)\.", lambda found: parts[found[1]] + ".", name)


def same(net, other):
    states = net.state_dict(), other.state_dict()
    return all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.fixture(scope="module", params=[ResNet18, R2Plus1D18])
def trained(request):
    return request.param, request.param(seed=1)


def test_weights_come_back_by_our_names(trained, tmp_path):
    make, net = trained
    save_file(net.state_dict(), tmp_path / "own.safetensors")
    assert same(make(weights=tmp_path / "own.safetensors"), net)


def test_weights_come_by_the_names_of_torchvision_and_a_larger_head_is_left_out(trained, tmp_path):
    make, net = trained
    is_split = make is R2Plus1D18
    state = {torchvision_name(name, is_split): own for name, own in net.state_dict().items()}
    assert "layer2.0.downsample.0.weight" in state
    state["fc.weight"], state["fc.bias"] = torch.ones(1000, 512), torch.ones(1000)
    save_file(state, tmp_path / "other.safetensors")
    found, fresh = make(weights=str(tmp_path / "other.safetensors")), make()
    assert torch.equal(found.head.weight, fresh.head.weight)
    found.head = net.head
    assert same(found, net)


def test_an_initial_bias_is_that_which_is_asked_for(tmp_path):
    save_file(R2Plus1D18(seed=1).state_dict(), tmp_path / "own.safetensors")
    net = R2Plus1D18(bias=55.6, weights=tmp_path / "own.safetensors")
    assert net.head.bias.item() == pytest.approx(55.6)


def test_weights_of_another_network_are_refused_by_name(tmp_path):
    save_file(ResNet18(channels=1).state_dict(), tmp_path / "gray.safetensors")
    message = r"`weights` must be those of this network.*stem.0.weight is \(64, 1, 7, 7\) there"
    with pytest.raises(ArgumentError, match=message):
        ResNet18(weights=tmp_path / "gray.safetensors")
    save_file({"head.bias": torch.ones(1)}, tmp_path / "few.safetensors")
    with pytest.raises(ArgumentError, match=r"stem.0.weight is missing there; .* and \d+ more"):
        ResNet18(weights=tmp_path / "few.safetensors")


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "broken.safetensors").write_bytes(b"x")
    with pytest.raises(FileError, match="not a complete safetensors file"):
        ResNet18(weights=tmp_path / "broken.safetensors")
    with pytest.raises(FileError, match="No such file"):
        ResNet18(weights=tmp_path / "none.safetensors")
    with pytest.raises(ArgumentError, match=r"`weights` must be a safetensors file, got 'net.pt'"):
        ResNet18(weights="net.pt")
