"""What test_ddp.py runs in two processes: trainings whose outcome each of them writes down."""

import math
import sys
from pathlib import Path

import torch.distributed as dist
from torch import nn

from regaug import _random
from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.models import MLP
from regaug.samplers import BatchSampler, RandomBatchSampler
from regaug.training import Machine, Settings, fit, loop
from regaug.training.state import write_state


class StoppedError(Exception):
    """Stands for a process that ends early."""


def make_split():
    return standardize(make_manifold("paraboloid", n=300, noise=0.05).split(seed=0))


def make_mlp():
    return MLP(2, hidden=(16, 16))


def make_normed():
    with _random.seeded(0):
        return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))


# Model, method, settings, precision. 180 training rows are 10 batches of 18, 5 for each process.
CASES = {
    "erm": (make_mlp, "erm", Settings(epochs=20, batch_size=18, learning_rate=1e-2), "64"),
    "nearest": (make_mlp, "foma-rho", Settings(epochs=5, batch_size=18, clip=0.5), "64"),
    "layer": (
        make_mlp,
        "foma-rho",
        Settings(epochs=5, batch_size=18, schedule="cosine", method_settings={"place": "layer"}),
        "32",
    ),
    "batch norm": (make_normed, "c-mixup", Settings(epochs=5, batch_size=18), "32"),
}


def record_batches():
    """Let every sampler note the batches it gives, a list for each epoch."""
    given = []
    plain = BatchSampler.epoch_batches

    def epoch_batches(self):
        batches = plain(self)
        given.append([batch.tolist() for batch in batches])
        return batches

    BatchSampler.epoch_batches = epoch_batches
    return given


def outcome(result, **more):
    return {
        "weights": dict(result.weights),
        "predictions": dict(result.predictions),
        "best_epoch": result.best_epoch,
        "validation": [epoch.validation for epoch in result.history],
        "loss": [epoch.loss for epoch in result.history],
        "test": result.scores["test"].rmse,
        **more,
    }


def fit_interrupted(folder, make_model, method, settings, precision):
    """Stop after two epochs, then go on from the checkpoint with a new model."""
    plain = loop.Bar.advance

    def advance(self, words):
        plain(self, words)
        if self.done == 2:
            raise StoppedError

    options = {"machine": Machine(precision=precision), "checkpoint": folder}
    loop.Bar.advance = advance
    try:
        fit(make_model(), make_split(), method, settings, **options)
        raise AssertionError("nothing interrupted the training")
    except StoppedError:
        loop.Bar.advance = plain
    return fit(make_model(), make_split(), method, settings, **options)


def diverge():
    """Train on inputs that are not finite in the rows of one process's first batch only."""
    split = make_split()
    sampler = RandomBatchSampler(split.train.y, 18, rank=1, world_size=2, drop_last=True)
    split.train.x[sampler.epoch_batches()[0]] = math.nan
    fit(make_mlp(), split, "erm", Settings(epochs=2, batch_size=18))


def main(folder):
    given = record_batches()
    for name, (make_model, method, settings, precision) in CASES.items():
        given.clear()
        result = fit(
            make_model(), make_split(), method, settings, machine=Machine(precision=precision)
        )
        own = folder / f"{name} {dist.get_rank()}"
        write_state(own, outcome(result, batches=list(given), size=dist.get_world_size()))
        again = fit_interrupted(folder / f"{name} states", make_model, method, settings, precision)
        write_state(own.with_name(f"{own.name} again"), outcome(again))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "diverge":
        diverge()
    else:
        main(Path(sys.argv[1]))
