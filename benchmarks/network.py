"""The study of a small convolutional net against its bare trainings: the same steps, no regaug."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest.mock import patch

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from benchmarks.timing import Row, interleaved
from regaug import Problem, compare
from regaug.data import Split, split_dataset
from regaug.runs.threads import one_thread
from regaug.studies.study import Study
from regaug.training import Settings

IMAGES, SIZE, SPLITS, EPOCHS, REPEATS = 2_000, 28, 3, 40, 3


def measure() -> Iterator[Row]:
    problem = Problem(split_dataset(_images(), seeds=SPLITS), make_net, "mae", name="spots")
    # Baselines are no trainings of the net.
    with one_thread(), patch("regaug.studies.eligibility.baseline_names", lambda split: ("mean",)):
        trained = _trained(problem, _study(problem))
        sides = [lambda: _train_all(trained), lambda: _study(problem)]
        bare, ours = interleaved(sides, REPEATS, time.process_time)
    name = f"network, {len(trained)} trainings of a CNN, {EPOCHS} epochs: the study"
    yield Row(name, bare, ours, faster=False, budget=1.1)


def make_net(split: Split) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, stride=2), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(32 * 6 * 6, 64), nn.ReLU()),
        nn.Linear(64, 1),
    )


def _images() -> tuple[Tensor, Tensor]:
    """Return pictures of a bright spot, and how far it is from a corner."""
    generator = torch.Generator().manual_seed(0)
    spots = SIZE * torch.rand(IMAGES, 2, 1, 1, generator=generator)
    rows, columns = torch.meshgrid(*2 * [torch.arange(SIZE)], indexing="ij")
    far = (rows - spots[:, 0]) ** 2 + (columns - spots[:, 1]) ** 2
    return torch.exp(-far / 20)[:, None], spots[:, :, 0, 0].norm(dim=1)


def _study(problem: Problem) -> Study:
    with tempfile.TemporaryDirectory() as folder:
        return compare(problem, methods=["erm"], trials=1, epochs=EPOCHS, jobs=1, out=folder)


def _trained(problem: Problem, study: Study) -> list[tuple[Split, Settings, int]]:
    """Return the split, the settings and the number of epochs of every training."""
    trained: dict[str, tuple[Split, Settings, int]] = {}
    for own in study.records:
        if own.run.settings is not None:
            # A recipe that was paused goes on: its records are one training.
            settings = replace(own.run.settings, stop_after=None)
            key = replace(own.run, settings=settings).key
            epochs = max(own.epochs, trained[key][2] if key in trained else 0)
            trained[key] = problem.split(own.run.split), settings, epochs
    return list(trained.values())


def _train_all(trainings: Sequence[tuple[Split, Settings, int]]) -> None:
    for split, settings, epochs in trainings:
        _train(split, settings, epochs)


def _train(split: Split, settings: Settings, epochs: int) -> None:
    net = make_net(split)
    x, y = split.train.x[:], split.train.y
    optimizer = torch.optim.AdamW(
        net.parameters(), settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    size = min(settings.batch_size, len(x))
    best, kept = float("inf"), {}
    for _ in range(epochs):
        net.train()
        for batch in torch.randperm(len(x)).split(size)[: len(x) // size]:
            loss = F.mse_loss(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = _error(net, split.validation.x[:], split.validation.y)
        if error < best:
            best, kept = error, {name: own.clone() for name, own in net.state_dict().items()}
    net.load_state_dict(kept)
    _error(net, split.test.x[:], split.test.y)


def _error(net: nn.Module, x: Tensor, y: Tensor) -> float:
    net.eval()
    with torch.inference_mode():
        return F.l1_loss(net(x), y).item()
