"""Samplers in two processes: with torch alone, with Fabric, and with Lightning's Trainer."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from regaug.training.state import read_state

pytest.importorskip("lightning")

SCRIPT = Path(__file__).with_name("ddp_script.py")
TRAINER = ("inputs", "layer")

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(
        not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
        reason="needs a torch with torch.distributed and gloo",
    ),
]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module", params=["forked", pytest.param("torchrun", marks=pytest.mark.slow)])
def folder(request, run_forked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("distributed")
    if request.param == "forked":
        run_forked(SCRIPT, folder)
        return folder
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*command, str(SCRIPT), str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


def read(folder, name):
    return [read_state(folder / f"{name} {rank}") for rank in (0, 1)]


def epochs_of(outcomes):
    """Return the batches of both processes together, a list for every epoch."""
    first, second = (outcome["seen"] for outcome in outcomes)
    assert len(first) == len(second) == 3 * 5
    return [first[k : k + 5] + second[k : k + 5] for k in (0, 5, 10)]


@pytest.mark.parametrize("name", ["torchrun", "fabric", *TRAINER, "own sampler"])
def test_processes_see_disjoint_samples_of_another_order_every_epoch(folder, name):
    epochs = epochs_of(read(folder, name))
    for batches in epochs:
        assert sorted(row for batch in batches for row in batch) == list(range(80))
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("name", ["torchrun", "fabric", *TRAINER])
def test_nearest_batches_are_near_in_every_process(folder, script, name):
    y = script["make_rows"]()[1]
    for batches in epochs_of(read(folder, name)):
        widths = [float(y[batch].max() - y[batch].min()) for batch in batches]
        assert np.median(widths) < 0.5 * float(y.max() - y.min())


@pytest.mark.parametrize("name", ["torchrun", "fabric", *TRAINER, "own sampler"])
def test_all_processes_end_with_equal_weights(folder, script, name):
    first, second = (outcome["weights"] for outcome in read(folder, name))
    start = script["make_net"]().state_dict()
    assert all(torch.equal(first[layer], second[layer]) for layer in start)
    assert not any(torch.equal(first[layer], value) for layer, value in start.items())


def test_torch_and_fabric_train_alike(folder):
    some, others = read(folder, "torchrun")[0], read(folder, "fabric")[0]
    assert some["seen"] == others["seen"]
    for layer, value in some["weights"].items():
        torch.testing.assert_close(others["weights"][layer], value)


@pytest.mark.parametrize("name", TRAINER)
def test_every_process_draws_for_itself(folder, name):
    first, second = (outcome["drawn"] for outcome in read(folder, name))
    both_act = [(a, b) for a, b in zip(first, second, strict=True) if a != 1 and b != 1]
    assert len(both_act) > 3
    assert all(a != b for a, b in both_act)


@pytest.mark.parametrize("name", TRAINER)
def test_a_checkpoint_continues_to_the_same_weights_in_every_process(folder, name):
    pairs = zip(read(folder, name), read(folder, f"{name} again"), strict=True)
    for whole, again in pairs:
        assert again["seen"] == whole["seen"][5:]
        assert again["drawn"] == whole["drawn"][5:]
        for layer, value in whole["weights"].items():
            assert torch.equal(again["weights"][layer], value)


def test_a_sampler_of_ours_needs_lightnings_turned_off(folder):
    for outcome in read(folder, "refused"):
        assert "Trainer(use_distributed_sampler=False)" in outcome["words"]
