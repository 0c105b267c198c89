"""The work of a study on Ray: on this machine, or on a cluster."""

import logging
import os
import signal
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from regaug.exceptions import MissingExtraError, RegaugError
from regaug.runs.executors import keep_busy
from regaug.runs.processes import handling
from regaug.runs.record import RunRecord
from regaug.runs.registrations import pack, unpack
from regaug.runs.threads import use_one_thread
from regaug.runs.worker import Task, Worker

# How often a task starts again whose process was killed: it may be the task that kills it.
_RETRIES = 3
_PATIENCE = 10.0  # seconds for a cluster to answer
_SILENT = logging.ERROR


@contextmanager
def running_ray(*, jobs: int, address: str | None = None, gpus: float = 0.0) -> Iterator[None]:
    """Have Ray for a while: the one this process is connected to, or one that ends afterwards.

    A cluster listens at ``address``, such as ``"auto"`` or ``"10.0.0.1:6379"``; without one, Ray is
    started on this machine with ``jobs`` CPUs. Then it must have the ``gpus`` that a task needs.
    """
    ray = _ray()
    if ray.is_initialized():
        yield
        return
    if address is not None:
        _check_listening(address)
    here = {"num_cpus": jobs, "include_dashboard": False} if address is None else {}
    # Starting Ray changes what SIGTERM does.
    with handling(signal.SIGTERM, signal.getsignal(signal.SIGTERM)):
        try:
            try:
                ray.init(address or "local", log_to_driver=False, logging_level=_SILENT, **here)
            except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
                raise _unusable(address, error) from error
            there = ray.cluster_resources().get("GPU", 0.0)
            if address is None and gpus > there:  # it would wait for ever
                raise RegaugError(
                    f"Ray finds {there:g} graphics cards on this machine, and `gpus_per_run` is "
                    f"{gpus:g}. Leave it out, or give the address of a cluster (`ray_address`)."
                )
            yield
        finally:
            ray.shutdown()


def run_on_ray(
    worker: Worker, tasks: Iterable[Task], *, jobs: int, gpus: float = 0.0
) -> Iterator[list[RunRecord]]:
    """Do tasks on Ray, inside of :func:`running_ray`; see ``executors.run_in_processes``.

    A task has one CPU and one thread, wherever it runs, and ``gpus`` as Ray counts them. If its
    process is killed it starts again; a network that has kept its state goes on from there. Records
    come back to this process, and no other one writes them.
    """
    ray = _ray()
    do = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=_RETRIES)(_do)
    # Ray can send classes of a notebook too.
    place = ray.put((worker, pack(ray.cloudpickle.dumps)))
    running: list[Any] = []

    def start(task: Task) -> Any:
        return do.remote([place], task)  # in a list, or Ray would fetch it again for every task

    try:
        for reference in keep_busy(tasks, running, jobs=jobs, start=start, wait=ray.wait):
            yield _get(ray, reference)
    finally:
        # After an error or an interruption. A Ray that has ended has ended its tasks too.
        if running and ray.is_initialized():
            for reference in running:
                ray.cancel(reference, force=True)


def _get(ray: Any, reference: Any) -> list[RunRecord]:
    try:
        return list(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # what the same task raises without Ray
    except ray.exceptions.RayError as error:
        raise RegaugError(
            f"Ray could not finish a task, with {_RETRIES} retries: {error} "
            "Run the same command again to continue."
        ) from error


def _do(places: list[Any], task: Task) -> list[RunRecord]:
    return _fetch(places[0]).do(task)


@lru_cache(maxsize=1)
def _fetch(place: Any) -> Worker:
    """Return the worker of this process."""
    use_one_thread()
    with warnings.catch_warnings():
        # The rows are in memory that processes share and may only read, which is all they do.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        worker, registrations = _ray().get(place)
    unpack(registrations)
    return worker  # type: ignore[no-any-return]


def _check_listening(address: str) -> None:
    """Fail at once where nobody listens: Ray itself tries for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not port.isdigit():  # such as "auto"
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _unusable(address, error) from error


def _unusable(address: str | None, error: Exception) -> RegaugError:
    where = "on this machine" if address is None else f"at {address}"
    hint = "" if address is None else " Check `ray_address`, and that the cluster runs."
    return RegaugError(f"Could not use Ray {where}: {str(error).rstrip('.')}.{hint}")


def _ray() -> Any:
    # Nothing is reported to anybody; Ray reads it when it starts.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        message = 'Running on Ray needs an extra: pip install "regaug[ray]".'
        raise MissingExtraError(message) from None
    return ray
