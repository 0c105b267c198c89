"""A whole study on Ray over nodes that share a network only: one dies, one is foreign."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import regaug
from regaug.runs.store import Store

pytestmark = [pytest.mark.serial, pytest.mark.slow]
SOURCE = Path(regaug.__file__).parents[1]
HEAD = "10.77.0.1"
STUDY = "compare rows.csv --target y -m mixup --trials 2 --splits 2 --json"
ON_RAY = f"--executor ray --ray-address {HEAD}:6379"
SAME = ("configuration", "trials", "rows", "pairs", "best", "verdict", "steps", "checks")
PATIENCE = 180.0  # seconds for whatever is waited for


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Network:
    """Machines of their own, as far as a network is concerned: namespaces that a bridge joins.

    The bridge is in the namespace of the first one, so that nothing of all this is to be seen
    outside, and everything goes with the namespaces.
    """

    def __init__(self, folder):
        self.folder, self.names, self.started = folder, {}, []

    def add(self, host):
        """Add a machine of this name; return its address."""
        name, number = f"regaug-{os.getpid()}-{host}", len(self.names) + 1
        ip("netns", "add", name)
        self.names[host] = name
        ip("-n", name, "link", "set", "lo", "up")
        device, head = "bridge0", next(iter(self.names.values()))
        if number == 1:
            ip("-n", name, "link", "add", "name", device, "type", "bridge")
        else:
            device, port = "eth0", f"port{number}"
            peer = ["type", "veth", "peer", "name", device, "netns", name]
            ip("link", "add", port, "netns", head, *peer)
            ip("-n", head, "link", "set", port, "master", "bridge0", "up")
        ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", device)
        ip("-n", name, "link", "set", device, "up")
        return f"10.77.0.{number}"

    def start(self, host, words, *, source=SOURCE, **pipes):
        """Start a command on a machine, which has a name of its own too."""
        begin = ["ip", "netns", "exec", self.names[host], "unshare", "--uts", "sh", "-c"]
        path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}
        process = subprocess.Popen(
            [*begin, 'hostname "$0" && exec "$@"', host, *words],
            cwd=self.folder,
            env=environment | {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"},
            text=True,
            **pipes,
        )
        self.started.append(process)
        return process

    def start_ray(self, host, *words, **options):
        """Start a node of Ray there, whose files lie where those of no other Ray are."""
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *words]
        ray += ["--object-store-memory", "100000000", "--disable-usage-stats"]
        with open(self.folder / f"{host}.log", "w") as log:
            return self.start(host, ray, stdout=log, stderr=log, **options)

    def add_node(self, host, **options):
        """Add a machine with one CPU to the cluster."""
        own = ["--node-ip-address", self.add(host), "--num-cpus", "1"]
        return self.start_ray(host, "--address", f"{HEAD}:6379", *own, **options)

    def processes(self, host):
        return [int(pid) for pid in ip("netns", "pids", self.names[host]).split()]

    def kill(self, host):
        """End all processes of a machine at once."""
        while pids := self.processes(host):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for own in self.started:
                own.poll()

    def end(self):
        for host in self.names:
            self.kill(host)
        for own in self.started:
            own.wait()
        for name in self.names.values():
            ip("netns", "del", name)


@pytest.fixture
def network(tmp_path):
    pytest.importorskip("ray", reason='needs Ray: pip install "regaug[ray]"')
    if not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs the commands ip and unshare")
    found = Network(tmp_path)
    try:
        try:
            found.add("head")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"needs to make network namespaces, as root may: {error.stderr.strip()}")
        yield found
    finally:
        found.end()
        assert str(os.getpid()) not in ip("netns", "list")


def wait_for(what, is_there):
    end = time.monotonic() + PATIENCE
    while not is_there():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


def start_cluster(network, temporary):
    words = ["--head", "--port", "6379", "--node-ip-address", HEAD, "--num-cpus", "0"]
    network.start_ray("head", *words, "--include-dashboard", "false", "--temp-dir", str(temporary))
    log = network.folder / "head.log"
    wait_for("the head of the cluster", lambda: "Ray runtime started" in log.read_text())


def start_node(network, host, **options):
    network.add_node(host, **options)
    log = network.folder / f"{host}.log"
    wait_for(f"the node {host}", lambda: "Ray runtime started" in log.read_text())


def start_study(network, *words):
    command = [sys.executable, "-m", "regaug", *STUDY.split(), *words]
    return network.start("head", command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def table_of(process):
    """Return what a command has printed, without times."""
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    return {key: json.loads(printed)[0][key] for key in SAME}


def scores_in(folder):
    (study,) = (own.parent for own in folder.glob("*/full-*/study.json"))
    return {key: own.scores for key, own in Store.open(study).records().items()}


def lines_in(folder):
    return sum(own.read_bytes().count(b"\n") for own in folder.glob("*/full-*/runs-*.jsonl"))


def is_at_work(network, host):
    """Whether a process of that machine is doing a task."""
    for pid in network.processes(host):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::begin"):
                return True
    return False


def make_table(folder, rows=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    y = x[:, 0] + np.sin(2 * x[:, 1]) + 0.3 * rng.normal(size=rows)
    table = np.column_stack([x, y])
    np.savetxt(folder / "rows.csv", table, "%.4f", ",", header="a,b,c,y", comments="")


def make_foreign(folder):
    """Make another version of regaug."""
    shutil.copytree(SOURCE / "regaug", folder / "regaug")
    own = folder / "regaug" / "_version.py"
    text = own.read_text()
    assert regaug.__version__ in text
    own.write_text(text.replace(regaug.__version__, "0.0.9"))
    return folder


def test_a_node_is_killed_in_the_middle_and_one_of_another_version_is_refused(
    network, tmp_path, tmp_path_factory
):
    make_table(tmp_path)
    alone = table_of(start_study(network, "-j", "1", "--out", "alone"))
    start_cluster(network, tmp_path_factory.mktemp("r"))  # a socket's path must be short
    for host in ("node1", "node2"):
        start_node(network, host)

    study = start_study(network, *ON_RAY.split(), "--out", "cluster")
    wait_for("the first results", lambda: lines_in(tmp_path / "cluster") > 0)
    wait_for("a task on node2", lambda: is_at_work(network, "node2"))
    network.kill("node2")
    before = lines_in(tmp_path / "cluster")
    assert table_of(study) == alone
    scores = scores_in(tmp_path / "alone")
    assert scores_in(tmp_path / "cluster") == scores
    assert 0 < before < len(scores) == lines_in(tmp_path / "cluster")

    # A command goes on with what another has begun, and a foreign version takes no part in it.
    start_node(network, "node3", source=make_foreign(tmp_path / "foreign"))
    refused = start_study(network, *ON_RAY.split(), "--out", "mixed")
    said = refused.communicate(timeout=PATIENCE)[1]
    assert refused.returncode == 1
    here = f"this is regaug {regaug.__version__} on head"
    assert f"A worker on node3 has regaug 0.0.9, and {here}: two versions do not work" in said
    assert "Traceback" not in said
    network.kill("node3")
    assert table_of(start_study(network, *ON_RAY.split(), "--out", "mixed")) == alone
    assert scores_in(tmp_path / "mixed") == scores
