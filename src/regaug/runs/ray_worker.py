"""What a process of Ray does, on whatever node, once it is known to have the right regaug."""

import warnings
from functools import lru_cache
from typing import Any

from regaug.runs.ray_cluster import import_ray
from regaug.runs.record import RunRecord
from regaug.runs.registrations import unpack
from regaug.runs.threads import use_one_thread
from regaug.runs.worker import Worker


def do_task(place: Any, content: bytes) -> list[RunRecord]:
    """Do a task in a process of Ray."""
    worker = _fetch(place)
    return worker.do(import_ray().cloudpickle.loads(content))


@lru_cache(maxsize=1)
def _fetch(place: Any) -> Worker:
    """Return the worker of this process."""
    use_one_thread()
    with warnings.catch_warnings():
        # The rows are in memory that processes share and may only read, which is all they do.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        worker, registrations = import_ray().get(place)
    unpack(registrations)
    return worker  # type: ignore[no-any-return]
