"""How long a training is going to take: from a few steps, and about right."""

import json
import time

import pytest
import torch
from torch import nn

from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError
from regaug.training import Machine, Settings, fit
from regaug.training.pace import Pace, measure_pace

SPLIT = standardize(make_manifold("sine", n=1_000).split(seed=0))
SETTINGS = Settings(batch_size=10, epochs=50, schedule="cosine", patience=3)
CPU = Machine("cpu")


class Slow(nn.Module):
    """Takes its time with every batch that it learns from, and counts them."""

    def __init__(self, pause=0.004):
        super().__init__()
        self.layer, self.pause, self.steps = nn.Linear(1, 1), pause, 0

    def forward(self, x):
        if self.training:
            self.steps += 1
            time.sleep(self.pause)
        return self.layer(x)


def test_a_training_takes_its_start_and_its_epochs():
    pace = Pace(start=2.0, epoch=0.5, step=0.1)
    assert pace.seconds(0) == 2.0
    assert pace.seconds(6) == 5.0
    assert Pace.from_dict(json.loads(json.dumps(pace.to_dict()))) == pace


@pytest.mark.parametrize("name", ["start", "epoch", "step"])
def test_no_part_of_it_can_be_negative(name):
    with pytest.raises(ArgumentError, match=f"`{name}` must be"):
        Pace(**{"start": 1.0, "epoch": 1.0, "step": 1.0, name: -1.0})


@pytest.mark.serial
def test_a_few_steps_say_how_long_a_training_takes():
    net = Slow()
    pace = measure_pace(lambda: net, SPLIT, "erm", SETTINGS, machine=CPU)
    assert net.steps <= 45  # of the sixty that an epoch has
    assert pace.step > net.pause
    start = time.perf_counter()
    fit(Slow(), SPLIT, "erm", Settings(batch_size=10, epochs=2), machine=CPU, record=())
    # A busy machine may be twice as slow from one second to the next.
    assert 0.4 < pace.seconds(2) / (time.perf_counter() - start) < 2.5


@pytest.mark.serial
def test_slow_steps_are_few():
    net = Slow(pause=1.1)
    pace = measure_pace(lambda: net, SPLIT, "mixup", SETTINGS, machine=CPU)
    assert net.steps == 2
    assert pace.epoch > 60 * 0.8


@pytest.mark.serial
def test_what_is_done_once_does_not_count_as_a_step():
    class Begins(Slow):
        def forward(self, x):
            if self.training and self.steps == 0:
                time.sleep(1.0)
            return super().forward(x)

    pace = measure_pace(Begins, SPLIT, "erm", SETTINGS, machine=CPU)
    assert pace.step < 0.1


def test_fewer_rows_than_a_batch_are_one_step():
    small = standardize(make_manifold("sine", n=20).split(seed=0))
    net = Slow(pause=0.0)
    pace = measure_pace(lambda: net, small, "erm", Settings(batch_size=64), machine=CPU)
    assert net.steps >= 1
    assert pace.epoch >= pace.step > 0


def test_global_state_is_left_alone():
    before = torch.get_rng_state()
    measure_pace(lambda: nn.Linear(1, 1), SPLIT, "foma-rho", SETTINGS, machine=CPU)
    # The net itself was made by the caller, who draws its weights.
    torch.set_rng_state(before)
    net = nn.Linear(1, 1)
    after = torch.get_rng_state()
    measure_pace(lambda: net, SPLIT, "foma-rho", SETTINGS, machine=CPU)
    assert torch.equal(torch.get_rng_state(), after)
