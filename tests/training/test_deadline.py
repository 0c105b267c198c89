"""Ends that somebody decides on while others train."""

import os
import pickle
import signal
import threading
import time

import pytest

from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.training import Settings, fit_many
from regaug.training.deadline import Deadline, stoppable


def test_it_is_over_when_the_time_is_up_or_there_is_the_file(tmp_path):
    flag = tmp_path / "stop"
    assert not time.time() > Deadline(flag)
    assert not time.time() > Deadline(flag, until=time.time() + 60)
    assert time.time() > Deadline(flag, until=time.time() - 1)
    flag.touch()
    assert time.time() > pickle.loads(pickle.dumps(Deadline(flag)))


def test_a_stack_ends_with_the_epoch_in_which_the_file_comes(tmp_path):
    split, epochs = standardize(make_manifold("sine", n=60).split()), []

    def tell():
        epochs.append(len(epochs))
        if len(epochs) == 3:
            (tmp_path / "stop").touch()

    settings = [Settings(epochs=50, seed=seed) for seed in range(2)]
    results = fit_many(split, "erm", settings, until=Deadline(tmp_path / "stop"), tell=tell)
    assert [(own.ending, len(own.history)) for own in results] == [("stopped", 4)] * 2


def test_the_first_ctrl_c_makes_the_file_and_the_second_interrupts():
    said, before = [], signal.getsignal(signal.SIGINT)
    with stoppable(lambda: said.append("stopping")) as flag:
        assert not flag.exists()
        os.kill(os.getpid(), signal.SIGINT)
        assert flag.exists()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert (said, flag.exists(), signal.getsignal(signal.SIGINT)) == (["stopping"], False, before)


def test_another_thread_cannot_hear_of_it_and_works_all_the_same():
    found = []

    def work():
        with stoppable(lambda: None) as flag:
            found.append(flag.exists())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
