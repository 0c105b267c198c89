"""Records with all of the result: the same here and from another process."""

import pickle

import pytest
import torch

from regaug.data.datasets.synthetic import make_manifold
from regaug.ensemble.members import is_usable
from regaug.problems import Problem
from regaug.runs.executors import run_in_processes
from regaug.runs.kept import KeepingWorker, KeptRecord
from regaug.runs.run import Run
from regaug.training import Settings


def make_problem():
    return Problem([make_manifold("line", n=40).split(seed) for seed in range(2)], hidden=(4,))


def test_weights_and_predictors_are_kept():
    worker = KeepingWorker([make_problem()])
    runs = tuple(Run("splits", "erm", split, 0, Settings(epochs=1)) for split in range(2))
    for record in (*worker.do(runs), *worker.do((Run("splits", "ridge", 0, 0),))):
        assert isinstance(record, KeptRecord)
        assert record.result.scores["test"] == record.scores["test"]
        assert record.result.weights or record.result.predictor is not None


def test_what_a_run_has_left_that_diverged_cannot_be_used():
    run = Run("splits", "erm", 0, 0, Settings(epochs=2, learning_rate=1e30))
    (record,) = KeepingWorker([make_problem()]).do((run,))
    assert record.ending == "diverged"
    assert not is_usable(record.result)


def test_it_is_the_same_after_a_journey():
    (record,) = KeepingWorker([make_problem()]).do((Run("splits", "gp", 0, 0),))
    back = pickle.loads(pickle.dumps(record))
    x = torch.zeros(1, record.result.predictor.inputs).double()
    assert torch.equal(back.result.predictor(x), record.result.predictor(x))
    assert back.run == record.run


@pytest.mark.serial
def test_processes_hand_them_back():
    worker, run = KeepingWorker([make_problem()]), Run("splits", "ridge", 1, 0)
    (records,) = run_in_processes(worker, [(run,)], jobs=1)
    here = worker.do((run,))[0].result.predictor
    assert torch.equal(records[0].result.predictor.slope, here.slope)
