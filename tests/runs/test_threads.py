"""One thread for whoever does runs."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from regaug.runs.threads import one_thread


def counts():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpool_info()]


def test_one_thread_is_used_for_a_while():
    before = torch.get_num_threads(), counts()
    with one_thread():
        assert torch.get_num_threads() == 1
        assert set(counts()) == {1}
    assert (torch.get_num_threads(), counts()) == before


def test_threads_are_as_before_after_an_error():
    before = torch.get_num_threads(), counts()
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert (torch.get_num_threads(), counts()) == before


@pytest.mark.serial
def test_libraries_that_are_loaded_later_use_one_thread_too():
    code = (
        "from regaug.runs.threads import use_one_thread; use_one_thread()\n"
        "import scipy.optimize, sklearn.ensemble, torch\n"
        "from threadpoolctl import threadpool_info\n"
        "print(torch.get_num_threads(), *(own['num_threads'] for own in threadpool_info()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(run.stdout.split()) > 2
    assert set(run.stdout.split()) == {"1"}
