"""A study on Ray: the same table, whoever does the work and whatever becomes of them."""

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import regaug
from regaug import data
from regaug.cli.main import app
from regaug.exceptions import ArgumentError, DivergedError, MissingExtraError, RegaugError
from regaug.runs import ray_executor, ray_node
from regaug.runs.executors import pending
from regaug.runs.ray_executor import run_on_ray, running_ray
from regaug.runs.store import Store
from regaug.studies.compare import compare
from regaug.training.results import versions

pytestmark = pytest.mark.serial
WANTED = 'pip install "regaug[ray]"'


@pytest.fixture
def ray():
    return pytest.importorskip("ray", reason=f"needs Ray: {WANTED}")


@pytest.fixture
def table(monkeypatch, shorten):
    shorten(monkeypatch, 3)
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    return data.load("synthetic-sine", n=60)


def study(table, out, **options):
    """Return the table of a small study, all its scores, and the number of lines in its store."""
    options = {"methods": ["erm", "mixup"], "trials": 2, "splits": 2, **options}
    found = compare(table, out=out, **options)
    records = Store.open(found.folder).records().items()
    scores = {key: (record.run, record.scores) for key, record in records}
    lines = sum(len(file.read_bytes().splitlines()) for file in found.folder.glob("runs-*.jsonl"))
    return found.comparison.to_dict(), scores, lines


class Echo:
    """Stands for a worker: says what it was asked to do, and how."""

    def do(self, task):
        import torch

        if task == "diverge":
            raise DivergedError("The loss became infinite.")
        if task == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return [task, torch.get_num_threads()]


def test_without_ray_it_says_how_to_get_it(monkeypatch, table):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        compare(table, trials=1, splits=2, executor="ray")
    assert WANTED in str(caught.value)


def test_an_unknown_executor_is_refused(table):
    with pytest.raises(ArgumentError, match="`executor` must be one of 'process', 'ray'"):
        compare(table, executor="dask")


def test_an_address_without_ray_is_refused(table):
    with pytest.raises(ArgumentError, match='`ray_address` needs executor="ray"'):
        compare(table, ray_address="auto")


def test_a_study_on_ray_has_the_same_table_and_leaves_nothing_behind(ray, table, tmp_path):
    before, processes = signal.getsignal(signal.SIGTERM), descendants()
    on_ray = study(table, tmp_path / "ray", executor="ray", jobs=2)
    assert on_ray == study(table, tmp_path / "here")
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == before
    assert descendants().keys() <= processes.keys()


class FakeRay:
    """Does at once what Ray would do elsewhere, and notes what is reserved for it."""

    cloudpickle = SimpleNamespace(
        dumps=pickle.dumps, loads=pickle.loads, register_pickle_by_value=lambda module: None
    )
    exceptions = SimpleNamespace(
        RayTaskError=KeyError, RuntimeEnvSetupError=KeyError, RayError=KeyError
    )

    def __init__(self, **reply):
        self.reserved, self.reply = [], {"versions": versions(), **reply}

    def remote(self, **options):
        self.reserved.append(options)
        self.sent = []

        def remote(place, content, wanted):
            self.sent.append(wanted)
            return {"host": "far", **self.reply, "records": [pickle.loads(content)]}

        return lambda do: SimpleNamespace(remote=remote)

    def put(self, thing):
        return thing

    def is_initialized(self):
        return False  # there is nothing to be ended

    def wait(self, running):
        return running[:1], running[1:]

    def get(self, reference):
        return reference


@pytest.mark.parametrize("gpus", [0.0, 0.5, 2.0])
def test_graphics_cards_are_reserved_as_ray_counts_them(monkeypatch, gpus):
    fake = FakeRay()
    monkeypatch.setattr(ray_executor, "import_ray", lambda: fake)
    assert list(run_on_ray(Echo(), "ab", jobs=2, gpus=gpus)) == [["a"], ["b"]]
    (options,) = fake.reserved
    assert (options["num_gpus"], options["num_cpus"]) == (gpus, 1)


def test_a_node_with_another_regaug_is_refused_by_name(monkeypatch):
    fake = FakeRay(versions={**versions(), "regaug": "0.0.9"})
    monkeypatch.setattr(ray_executor, "import_ray", lambda: fake)
    words = f"A worker on far has regaug 0.0.9, and this is regaug {regaug.__version__} on "
    with pytest.raises(RegaugError, match=re.escape(words)):
        list(run_on_ray(Echo(), "ab", jobs=2))
    assert fake.sent == [regaug.__version__] * 2


def test_a_node_without_regaug_is_told_in_a_sentence(monkeypatch):
    fake = FakeRay(missing="No module named 'regaug'")
    monkeypatch.setattr(ray_executor, "import_ray", lambda: fake)
    words = r"The Ray node far has no regaug \(No module named 'regaug'\).*`ray_runtime_env`"
    with pytest.raises(RegaugError, match=words):
        list(run_on_ray(Echo(), "ab", jobs=2))


def test_other_versions_of_a_node_are_said_once(monkeypatch):
    fake = FakeRay(versions={**versions(), "torch": "2.6.0", "numpy": "1"})
    monkeypatch.setattr(ray_executor, "import_ray", lambda: fake)
    said = []
    assert len(list(run_on_ray(Echo(), "abc", jobs=2, say=said.append))) == 3
    (sentence,) = said
    assert sentence.startswith("A worker on far has torch 2.6.0 (here ")
    assert "numpy" not in sentence


def test_a_node_says_what_it_lacks_and_does_nothing_with_another_version(monkeypatch):
    found = ray_node.begin([], b"", "0.0.9")
    assert (found["host"], found["versions"]) == (socket.gethostname(), versions())
    assert "records" not in found
    monkeypatch.setitem(sys.modules, "regaug.training.results", None)
    assert "regaug.training.results" in ray_node.begin([], b"", "0.0.9")["missing"]


@pytest.mark.slow
def test_graphics_cards_that_are_not_there_are_not_waited_for(ray, table):
    words = r"`gpus_per_run` is 1000\. Leave it out, or give the address of a cluster"
    with pytest.raises(RegaugError, match=words):
        compare(table, trials=1, splits=2, executor="ray", gpus_per_run=1000)
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.parametrize("search", ["random", "tpe"])
def test_one_worker_two_and_ray_have_the_same_table(ray, table, tmp_path, search):
    options = {"search": search, "trials": 7, "methods": ["erm", "foma-rho"]}
    here = study(table, tmp_path / "1", **options)
    assert here == study(table, tmp_path / "2", jobs=2, **options)
    assert here == study(table, tmp_path / "ray", jobs=2, executor="ray", **options)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(ray, table, tmp_path, monkeypatch, shorten):
    shorten(monkeypatch, 30)
    killed = []
    thread = threading.Thread(target=kill_one, args=(killed,))
    thread.start()
    with_kill = study(table, tmp_path / "killed", executor="ray", jobs=2)
    thread.join()
    assert killed
    assert with_kill == study(table, tmp_path / "whole")
    _, scores, lines = with_kill
    assert len(scores) == lines == 6 * 2 + 2 * 2 * 2 + 2


@pytest.mark.slow
def test_the_command_prints_nothing_but_json_when_a_worker_is_killed(ray, table, tmp_path):
    killed = []
    thread = threading.Thread(target=kill_one, args=(killed,))
    thread.start()
    options = ["--executor", "ray", "--trials", "2", "--splits", "2", "-m", "mixup", "--json"]
    shown = CliRunner().invoke(app, ["compare", "diabetes", *options, "--out", str(tmp_path)])
    thread.join()
    assert killed
    assert (shown.exit_code, json.loads(shown.stdout)[0]["trials"]) == (0, 2)
    assert "died" not in shown.stderr  # what Ray itself tells is for who asks for it


@pytest.mark.slow
def test_ctrl_c_finishes_what_runs_and_starts_nothing_new(ray, tmp_path):
    script = f"""
        import os, signal
        from regaug import data
        from regaug.exceptions import StoreError
        from regaug.studies.compare import compare
from regaug.training.results import versions

        seen = []

        def observe(progress):
            if progress.records:
                seen.append(progress)
            if len(seen) == 1:
                os.kill(0, signal.SIGINT)  # as a terminal does: to all processes of the group

        try:
            compare(
                data.load("synthetic-sine", n=60), methods=["erm", "mixup"], trials=3, splits=2,
                jobs=2, executor="ray", out={str(tmp_path)!r}, progress=observe,
            )
        except StoreError:
            print("tasks:", len(seen))
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=120,
    )
    # Two were running at the same time: the one that came first, and the one to be finished.
    assert (done.returncode, done.stdout, done.stderr) == (0, "tasks: 2\n", "")


@pytest.mark.slow
def test_run_on_ray_does_what_the_other_executors_do(ray):
    with running_ray(jobs=2):

        def run(tasks, *, jobs=2, is_done=lambda task: False, is_over=lambda: False):
            left = pending(tasks, is_done=is_done, is_over=is_over)
            return run_on_ray(Echo(), left, jobs=jobs)

        assert list(run(["a", "b", "c"], jobs=1)) == [["a", 1], ["b", 1], ["c", 1]]
        assert sorted(run("abcdef", is_done=lambda task: task in "bd")) == [
            [task, 1] for task in "acef"
        ]
        over = iter([False, False, True])
        assert list(run("abcdef", jobs=1, is_over=lambda: next(over, True))) == [["a", 1], ["b", 1]]
        assert list(run("")) == []
        with pytest.raises(DivergedError, match="^The loss became infinite.$"):
            list(run(["a", "diverge"]))
        with pytest.raises(RegaugError, match="Run the same command again to continue"):
            list(run(["die"]))
        with running_ray(jobs=2):  # the one that is there, which stays
            assert list(run("a")) == [["a", 1]]
        assert ray.is_initialized()
    assert not ray.is_initialized()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "[::1]:1", "h:99999999"])
def test_an_address_where_nobody_listens_is_named_at_once(ray, table, address):
    start = time.monotonic()
    with pytest.raises(RegaugError, match=re.escape(f"Could not use Ray at {address}: ")):
        compare(table, trials=1, splits=2, executor="ray", ray_address=address)
    assert time.monotonic() - start < 12
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_cluster_is_used_by_its_address_and_stays(ray, table, tmp_path):
    script = """
        import ray

        ray.init("local", num_cpus=2, include_dashboard=False)
        print("address", ray.get_runtime_context().gcs_address, flush=True)
        input()
        print("processes", len(ray.nodes()), ray.cluster_resources()["CPU"], flush=True)
    """
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as cluster:
        lines = iter(cluster.stdout)
        address = next(line for line in lines if line.startswith("address")).split()[1]
        there = study(table, tmp_path / "there", jobs=2, executor="ray", ray_address=address)
        assert not ray.is_initialized()
        cluster.stdin.write("\n")
        cluster.stdin.flush()
        assert next(line for line in lines if line.startswith("processes")) == "processes 1 2.0\n"
    assert there == study(table, tmp_path / "here")


def descendants():
    """Return processes that this one has started, directly or not, by what they are called."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
            title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:  # it has ended
            continue
        state, parent = rest.split()[:2]
        if state != "Z":
            parents[int(folder.name)] = (int(parent), title or name)
    found, layer = {}, {os.getpid()}
    while layer:
        layer = {pid for pid, (parent, _) in parents.items() if parent in layer}
        found |= {pid: parents[pid][1] for pid in layer}
    return found


def kill_one(killed):
    """Kill a process of Ray that is doing a task, as soon as there is one."""
    end = time.monotonic() + 60
    while not killed and time.monotonic() < end:
        for pid, title in descendants().items():
            if title.startswith("ray::begin"):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
        time.sleep(0.02)
