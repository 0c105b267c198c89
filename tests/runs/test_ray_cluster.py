"""Which Ray is used, and what is said if it cannot be."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from regaug.exceptions import ArgumentError, ArgumentTypeError, FileError, RegaugError
from regaug.runs import ray_cluster
from regaug.runs.ray_cluster import Cluster, read_runtime_env
from regaug.runs.tasks import Workforce


@pytest.fixture
def listen():
    """Listen at a port of this machine, and answer with some bytes, or with nothing at all."""
    ended = []

    def start(answer):
        server = socket.create_server(("127.0.0.1", 0))

        def serve():
            connection, _ = server.accept()
            ended.append(connection)
            connection.recv(64)
            if answer is not None:
                connection.sendall(answer)
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        ended.append(server)
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield start
    for own in ended:
        own.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"])
def test_a_port_that_is_not_rays_is_named_at_once(listen, answer):
    address = listen(answer)
    words = f"Could not use Ray at {address}: what listens there is not Ray. Check `ray_address`"
    with pytest.raises(RegaugError, match=re.escape(words)):
        ray_cluster._check_listening(address)


def test_a_port_that_accepts_and_says_nothing_is_left_after_a_while(listen, monkeypatch):
    monkeypatch.setattr(ray_cluster, "PATIENCE", 0.2)
    start = time.monotonic()
    with pytest.raises(RegaugError, match="no answer in 0 s, so what listens there is not Ray"):
        ray_cluster._check_listening(listen(None))
    assert time.monotonic() - start < 5


def test_what_speaks_as_ray_does_passes(listen):
    ray_cluster._check_listening(listen(bytes([0, 0, 24, 4, 0, 0, 0, 0, 0])))
    ray_cluster._check_listening("auto")


class FakeRay:
    """Refuses a connection, after saying why past Python, as Ray does."""

    class exceptions:  # noqa: N801 - as Ray has it
        class RayError(Exception):
            pass

    def __init__(self, words=b""):
        self.words, self.given = words, None

    def init(self, address, **given):
        self.given = {"address": address, **given}
        if self.words:
            os.write(2, self.words)
            raise ConnectionError("Failed to connect to Ray cluster")


def test_a_cluster_that_asks_for_a_token_says_what_to_set(capfd):
    fake = FakeRay(b"RPC error: InvalidAuthToken: Authentication token is missing or incorrect\n")
    with pytest.raises(RegaugError, match="asks for a token. Set RAY_AUTH_MODE=token, and RAY_AUT"):
        Cluster("auto").connect(fake, 1)
    assert capfd.readouterr().err == ""  # what Ray says is not for the reader


def test_another_reason_is_told_as_it_is():
    with pytest.raises(RegaugError, match="Ray at auto: Failed to connect to Ray cluster. Check"):
        Cluster("auto").connect(FakeRay(b"no route\n"), 1)


def test_an_environment_goes_to_ray_and_here_it_has_as_many_cpus_as_jobs():
    fake = FakeRay()
    Cluster(None, {"pip": ["regaug"]}).connect(fake, 3)
    assert (fake.given["address"], fake.given["num_cpus"]) == ("local", 3)
    assert fake.given["runtime_env"] == {"pip": ["regaug"]}
    Cluster("auto").connect(fake, 3)
    assert not {"num_cpus", "runtime_env"} & fake.given.keys()


def test_the_address_of_the_environment_is_taken_if_none_is_given(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert Cluster.find(None).address is None
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert Cluster.find(None).address == "10.0.0.1:6379"
    assert Cluster.find("auto").address == "auto"
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert Cluster.find(None).address is None


def test_there_are_as_many_jobs_as_a_cluster_has_cpus(monkeypatch):
    monkeypatch.setattr("regaug.runs.ray_executor.count_cpus", lambda cluster: 200)
    assert Workforce(executor="ray", ray_address="auto").for_cluster().jobs == 200
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert Workforce(executor="ray").for_cluster().jobs == 1
    assert Workforce().for_cluster().jobs == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ({"env_vars": {"A": "1"}}, {"env_vars": {"A": "1"}}),
        ("regaug, scikit-learn==1.5", {"pip": ["regaug", "scikit-learn==1.5"]}),
        (["regaug"], {"pip": ["regaug"]}),
    ],
)
def test_an_environment_is_a_dict_or_names(given, expected):
    assert read_runtime_env(given) == expected


def test_an_environment_is_a_file_a_wheel_or_a_folder(tmp_path):
    (tmp_path / "env.json").write_text(json.dumps({"working_dir": "."}))
    assert read_runtime_env(tmp_path / "env.json") == {"working_dir": "."}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").touch()
    (tmp_path / "own.whl").touch()
    for name in ("own", "own.whl"):
        assert read_runtime_env(str(tmp_path / name)) == {"py_modules": [str(tmp_path / name)]}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (3, ArgumentTypeError),
        ([3], ArgumentTypeError),
        ("no.whl", ArgumentError),
        ("no/such/folder", ArgumentError),
        ("no.json", FileError),
    ],
)
def test_what_is_no_environment_is_refused(given, error):
    with pytest.raises(error):
        read_runtime_env(given)


@pytest.mark.serial
@pytest.mark.parametrize("is_ended", [True, False])
def test_something_is_said_if_ray_ends_the_program_and_else_nothing(is_ended):
    code = (
        "import os\nfrom regaug.runs.ray_cluster import Cluster\n"
        f"with Cluster('10.0.0.1:6379').last_words():\n    if {is_ended}: os._exit(1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == is_ended
    words = "Error: Ray at 10.0.0.1:6379 is gone, and has ended this program. Run the same command"
    assert done.stderr.startswith(words) if is_ended else done.stderr == ""
