"""The work of a study on Ray: on this machine, or on a cluster."""

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from regaug.exceptions import RegaugError
from regaug.runs import ray_node
from regaug.runs.executors import keep_busy
from regaug.runs.processes import handling
from regaug.runs.ray_cluster import Cluster, import_ray
from regaug.runs.record import RunRecord
from regaug.runs.registrations import pack
from regaug.runs.versions import check_worker, own_versions, say_worker
from regaug.runs.worker import Task, Worker

# How often a task starts again whose process was killed: it may be the task that kills it.
_RETRIES = 3


@contextmanager
def running_ray(
    cluster: Cluster | None = None, *, jobs: int = 1, gpus: float = 0.0
) -> Iterator[None]:
    """Have Ray for a while: the one this process is connected to, or one that ends afterwards.

    Without a cluster, Ray is started on this machine with ``jobs`` CPUs. Then it must have the
    ``gpus`` that a task needs.
    """
    ray, cluster = import_ray(), cluster or Cluster()
    if ray.is_initialized():
        yield
        return
    # Starting Ray changes what SIGTERM does.
    with handling(signal.SIGTERM, signal.getsignal(signal.SIGTERM)):
        try:
            cluster.connect(ray, jobs)
            there = ray.cluster_resources().get("GPU", 0.0)
            if cluster.address is None and gpus > there:  # it would wait for ever
                raise RegaugError(
                    f"Ray finds {there:g} graphics cards on this machine, and `gpus_per_run` is "
                    f"{gpus:g}. Leave it out, or give the address of a cluster (`ray_address`)."
                )
            with cluster.last_words():
                yield
        finally:
            ray.shutdown()


def count_cpus(cluster: Cluster) -> int:
    """Return how many CPUs a cluster has."""
    with running_ray(cluster):
        return max(1, int(import_ray().cluster_resources().get("CPU", 1.0)))


def run_on_ray(
    worker: Worker,
    tasks: Iterable[Task],
    *,
    jobs: int,
    gpus: float = 0.0,
    say: Callable[[str], None] | None = None,
) -> Iterator[list[RunRecord]]:
    """Do tasks on Ray, inside of :func:`running_ray`; see ``executors.run_in_processes``.

    A task has one CPU and one thread, wherever it runs, and ``gpus`` as Ray counts them. If its
    process is killed it starts again; a network that has kept its state goes on from there. Records
    come back to this process, and no other one writes them. A node whose regaug is another one is
    refused; ``say`` is told, once, of other versions.
    """
    ray, ours = import_ray(), own_versions()
    ray.cloudpickle.register_pickle_by_value(ray_node)
    do = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=_RETRIES)(ray_node.begin)
    # Ray can send classes of a notebook too.
    place = ray.put((worker, pack(ray.cloudpickle.dumps)))
    running: list[Any] = []
    said: set[str] = set()

    def start(task: Task) -> Any:
        # In a list, or Ray would fetch it again for every task.
        return do.remote([place], ray.cloudpickle.dumps(task), ours["regaug"])

    try:
        for reference in keep_busy(tasks, running, jobs=jobs, start=start, wait=ray.wait):
            found = _get(ray, reference)
            records = _open(found, ours)
            sentence = say_worker(found["versions"], ours, found["host"])
            if sentence and sentence not in said and say is not None:
                said.add(sentence)
                say(sentence)
            yield records
    finally:
        # After an error or an interruption. A Ray that has ended has ended its tasks too.
        if running and ray.is_initialized():
            for reference in running:
                ray.cancel(reference, force=True)


def _get(ray: Any, reference: Any) -> dict[str, Any]:
    try:
        return dict(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error  # what the same task raises without Ray
    except ray.exceptions.RuntimeEnvSetupError as error:
        raise RegaugError(
            f"Ray could not make what `ray_runtime_env` asks for on a node: {_last_line(error)}"
        ) from error
    except ray.exceptions.RayError as error:
        raise RegaugError(
            f"Ray could not finish a task, with {_RETRIES} retries: {error} "
            "Run the same command again to continue."
        ) from error


def _open(found: Mapping[str, Any], ours: Mapping[str, str]) -> list[RunRecord]:
    """Return the records of a task, if the node may take part."""
    if "missing" in found:
        raise RegaugError(
            f"The Ray node {found['host']} has no regaug ({found['missing']}). Install it there: "
            f'pip install "regaug=={ours["regaug"]}"; or let Ray do that: `ray_runtime_env` with '
            "the name of a package, a wheel or a folder."
        )
    check_worker(found["versions"], ours, found["host"])
    return list(found["records"])


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
