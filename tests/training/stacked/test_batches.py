import numpy as np
import pytest
import torch

from regaug.data.base import Part, Split
from regaug.training import Settings
from regaug.training.stacked import batches
from regaug.training.stacked.rows import StackedRows
from regaug.training.stacked.training import Training

EPOCH, SIZE = 2, 5


def make_runs(method="erm", sizes=(33, 21, 33)):
    """Runs with other splits, and other numbers of batches and epochs."""
    generator = torch.Generator().manual_seed(0)
    splits = []
    for n in sizes:
        x, y = torch.randn(n, 3, generator=generator), torch.randn(n, 1, generator=generator)
        part = Part(x=x, y=y, rows=np.arange(n))
        splits.append(Split(part, part, part))
    runs = [
        Training.make(i, split, method, Settings(epochs=4 + i, seed=i, batch_size=SIZE), (4,), None)
        for i, split in enumerate(splits)
    ]
    runs.sort(key=lambda run: -len(run.sampler))
    numbers = [splits.index(run.split) for run in runs]
    return runs, numbers, StackedRows(splits, torch.float64)


@pytest.mark.parametrize("most", [1, 3 * SIZE * 3 * 2, 2**20])
@pytest.mark.parametrize("method", ["erm", "c-mixup"])
def test_the_batches_of_an_epoch_are_those_of_each_run_s_sampler(method, most, monkeypatch):
    monkeypatch.setattr(batches, "_MOST", most)
    runs, numbers, table = make_runs(method)
    found = list(batches.epoch_batches(runs, numbers, table, EPOCH))
    assert len(found) == {1: 6, 90: 6 if method == "c-mixup" else 3, 2**20: 1}[most]
    steps = [(part, number) for part in found for number in range(len(part.x))]
    assert [part.active[number] for part, number in steps] == [3, 3, 3, 3, 2, 2]
    for place, run in enumerate(runs):
        run.sampler.set_epoch(EPOCH)
        own = list(run.sampler)
        for step, batch in enumerate(own):
            part, number = steps[step]
            assert part.rows[number, place].tolist() == batch
            assert torch.equal(part.x[number, place], run.split.train.x[batch].double())
            assert torch.equal(part.y[number, place], run.split.train.y[batch].double())
            expected = (EPOCH + step / len(own)) / run.settings.epochs
            assert part.progress[number, place] == expected
