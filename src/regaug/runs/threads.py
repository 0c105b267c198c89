"""One thread for whoever does runs: several, beside other work, are many times slower."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from regaug.runs.processes import ONE_THREAD


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for a while, in torch and in the libraries that are loaded already."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)


def use_one_thread() -> None:
    """Use one thread for the rest of this process, in libraries that are loaded later too."""
    os.environ.update(ONE_THREAD)
    torch.set_num_threads(1)
    threadpool_limits(limits=1)
