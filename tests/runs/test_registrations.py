"""What was registered here is known in worker processes, or they say why not."""

import pickle
import subprocess
import sys
import textwrap

import pytest

import regaug
from regaug import GaussianNoise, methods
from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import ArgumentError
from regaug.methods import METHODS, Method
from regaug.problems import Problem
from regaug.runs import registrations
from regaug.runs.executors import run_in_processes
from regaug.runs.registrations import check_methods, pack, unpack
from regaug.runs.run import Run
from regaug.runs.worker import Worker
from regaug.training import Settings

pytestmark = pytest.mark.usefixtures("registries")
START = {"sampler": "random", "place": "input", "sigma": 0.5}
NOISE = Method("add a lot of noise", GaussianNoise, START)


def make_local():
    class Local(GaussianNoise):
        pass

    return Method("noise", Local, START)


def forget():
    METHODS._registered.clear()


def test_what_is_sent_is_registered_there():
    methods.register("big-noise", NOISE)
    sent = pickle.loads(pickle.dumps(pack()))
    forget()
    assert "big-noise" not in methods.names()
    unpack(sent)
    assert methods.get("big-noise") == NOISE
    unpack(sent)  # once more is no clash
    assert [(own.group, own.name) for own in pack()] == [("regaug.methods", "big-noise")]


def test_a_replaced_one_is_sent_too():
    methods.register("mixup", NOISE, replace=True)
    sent = pack()
    forget()
    unpack(sent)
    assert methods.get("mixup") == NOISE


@pytest.mark.parametrize("how", ["not pickled", "not found"])
def test_what_cannot_be_sent_says_why_when_it_is_asked_for(how):
    if how == "not pickled":
        methods.register("local", make_local())
        sent = pack()
    else:
        methods.register("local", NOISE)
        [own] = pack()
        gone = own.content.replace(b"GaussianNoise", b"GaussianNoisy")
        sent = (registrations.Registration(own.group, own.name, gone),)
    forget()
    methods.register("other", NOISE)
    unpack(sent)
    assert "local" not in methods.names()
    assert methods.get("other") is NOISE
    with pytest.raises(ArgumentError, match="'local' cannot be brought .* or take jobs=1") as error:
        methods.get("local")
    assert ("Local" if how == "not pickled" else "GaussianNoisy") in str(error.value)
    methods.register("local", NOISE)  # now it is here
    assert methods.get("local") is NOISE


def test_a_study_in_processes_refuses_them_before_anything_is_started():
    methods.register("local", make_local())
    table = make_manifold("sine", n=60)
    with pytest.raises(ArgumentError, match="'local' cannot be brought to another process"):
        regaug.compare(table, methods=["local"], trials=1, splits=2, jobs=2)
    check_methods(["mixup"])  # the others are fine


def test_an_interactive_session_has_nothing_to_import(monkeypatch):
    class Own(GaussianNoise):
        pass

    Own.__module__, Own.__qualname__ = "__main__", "Own"
    monkeypatch.setattr(sys.modules["__main__"], "Own", Own, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    methods.register("own", Method("noise", Own, START))
    check_methods(["own"])  # this process was started from a file
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(ArgumentError, match="defined in an interactive session.*not a notebook"):
        check_methods(["own"])


def make_worker():
    return Worker([Problem([make_manifold("sine", n=40).split(0)], name="sine", hidden=(8,))])


def make_task(name):
    settings = Settings(epochs=2, method_settings=methods.get(name).settings())
    return (Run("sine", name, 0, 0, settings, 0),)


@pytest.mark.serial
def test_a_process_knows_what_was_registered_or_installed(install):
    code = "from tests.runs.test_registrations import NOISE as loud"
    install("loud_package", code, "[regaug.methods]\nloud = loud_package:loud\n")
    methods.register("big-noise", NOISE)
    worker, tasks = make_worker(), [make_task(name) for name in ("big-noise", "loud")]
    records = [record for [record] in run_in_processes(worker, tasks, jobs=1)]
    assert {record.run.key for record in records} == {run.key for [run] in tasks}
    for record in records:
        [expected] = worker.do((record.run,))
        assert record.scores == expected.scores


SCRIPT = """
    from regaug import GaussianNoise, methods
    from regaug.data.datasets.synthetic import make_manifold
    from regaug.problems import Problem
    from regaug.runs.executors import run_in_processes
    from regaug.runs.run import Run
    from regaug.runs.worker import Worker
    from regaug.training import Settings

    START = {"sampler": "random", "place": "input", "sigma": 0.5}

    class Own(GaussianNoise):
        pass

    if __name__ == "__main__":
        class Hidden(GaussianNoise):
            pass

        methods.register("own", methods.Method("noise", Own, START))
        methods.register("hidden", methods.Method("noise", Hidden, START))
        problem = Problem([make_manifold("sine", n=40).split(0)], name="sine", hidden=(8,))
        settings = Settings(epochs=1, method_settings=START)
        tasks = [(Run("sine", name, 0, 0, settings, 0),) for name in ("own", "hidden")]
        try:
            for [record] in run_in_processes(Worker([problem]), tasks, jobs=1):
                print(record.run.method, 1)
        except ValueError as error:
            print("hidden", error)
"""


@pytest.mark.serial
def test_a_script_may_define_a_method_itself(tmp_path):
    script = tmp_path / "study.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    own, hidden = done.stdout.strip().splitlines()
    assert own == "own 1"
    assert hidden.startswith("hidden The method 'hidden' cannot be brought to another process")
    assert "Can't get attribute 'Hidden'" in hidden
    assert "behind `if __name__ == ...`" in hidden


@pytest.mark.serial
def test_ray_knows_what_was_registered():
    ray = pytest.importorskip("ray")
    from regaug.runs.ray_executor import run_on_ray, running_ray

    class Own(GaussianNoise):
        """As in a notebook."""

    Own.__module__ = "__main__"
    methods.register("own", Method("noise", Own, START))
    worker, task = make_worker(), make_task("own")
    with running_ray(jobs=1):
        [[record]] = run_on_ray(worker, [task], jobs=1)
    assert not ray.is_initialized()
    [expected] = worker.do(task)
    assert record.scores == expected.scores
