"""Which Ray is used: where it listens, what its nodes are given, and what is said if that fails."""

import logging
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regaug._files import read_json
from regaug.exceptions import ArgumentError, ArgumentTypeError, MissingExtraError, RegaugError

# Seconds for a cluster to answer.
PATIENCE = 30.0
# What begins a connection of HTTP/2, which Ray speaks, and the head of an answer: so many bytes, of
# which the fourth says that these are settings.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_HEAD, _SETTINGS = 9, 4
# Whether Ray tells in its own words what it does; nobody asks for that by himself.
_LOUD = "RAY_BACKEND_LOG_LEVEL"
_CONTINUE = "Run the same command again to continue when the cluster runs again."


@dataclass(frozen=True)
class Cluster:
    """The Ray that is used.

    Attributes:
        address: Where a cluster listens, such as ``"auto"`` or ``"10.0.0.1:6379"``; None for Ray on
            this machine.
        runtime_env: What Ray gives to its workers: see :func:`read_runtime_env`.
    """

    address: str | None = None
    runtime_env: Mapping[str, Any] | None = None

    @classmethod
    def find(cls, address: str | None, runtime_env: object = None) -> "Cluster":
        """Return the one that is asked for, or that ``RAY_ADDRESS`` names."""
        found = address or os.environ.get("RAY_ADDRESS")
        return cls(None if found == "local" else found, read_runtime_env(runtime_env))

    def connect(self, ray: Any, jobs: int) -> None:
        """Connect to Ray, or start it on this machine with so many CPUs."""
        if self.address is not None:
            _check_listening(self.address)
        here = {"num_cpus": jobs, "include_dashboard": False} if self.address is None else {}
        more = {} if self.runtime_env is None else {"runtime_env": dict(self.runtime_env)}
        with _caught_words() as words:
            try:
                ray.init(
                    self.address or "local",
                    log_to_driver=is_loud(),
                    logging_level=logging.INFO if is_loud() else logging.CRITICAL,
                    **here,
                    **more,
                )
                return
            except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
                failed = error
        raise _unusable(self.address, failed, words[0]) from failed

    @contextmanager
    def last_words(self) -> Iterator[None]:
        """Have something said if this process is ended, as Ray does when a cluster is gone."""
        if self.address is None:
            yield
            return
        told = f"Error: Ray at {self.address} is gone, and has ended this program. {_CONTINUE}"
        speaker = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _SPEAKER, told],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is not for it
        )
        try:
            yield
        finally:
            with suppress(OSError):
                speaker.communicate(b"all is well")


_SPEAKER = "import sys\nif not sys.stdin.buffer.read(): print(sys.argv[1], file=sys.stderr)"


def is_loud() -> bool:
    """Whether somebody has asked for what Ray itself tells."""
    return os.environ.get(_LOUD, "fatal") != "fatal"


def import_ray() -> Any:
    """Return Ray, if it is installed."""
    # Ray reads that when it starts. Nothing is reported to anybody; workers are no nicer than those
    # without Ray, of a busy machine they would get next to nothing; and it does not tell what it
    # does.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault(_LOUD, "fatal")
    if not is_loud():  # nor of a process that died, whose task begins again
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray
    except ImportError:
        message = 'Running on Ray needs an extra: pip install "regaug[ray]".'
        raise MissingExtraError(message) from None
    return ray


def read_runtime_env(given: object) -> Mapping[str, Any] | None:
    """Return what Ray takes as a runtime environment.

    Args:
        given: A dict as Ray has it; the path of a JSON file with one; a wheel, or the folder of a
            package, that Ray sends to its nodes; or what pip is to install there, names with commas
            between them or a list. None for nothing.

    Example:
        >>> read_runtime_env("regaug==0.1.0,scikit-learn")
        {'pip': ['regaug==0.1.0', 'scikit-learn']}
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str | Path):
        path = Path(given).expanduser()
        if path.suffix == ".json":
            found: dict[str, Any] = read_json(path, dict)
            return found
        if (path.suffix == ".whl" and path.is_file()) or (path / "__init__.py").is_file():
            return {"py_modules": [str(path.resolve())]}
        if path.suffix == ".whl" or os.sep in str(given):
            raise ArgumentError(
                f"`ray_runtime_env` must be a JSON file, a wheel, the folder of a package or names "
                f"of packages, got {str(given)!r}, and there is no such file."
            )
        given = [name.strip() for name in str(given).split(",") if name.strip()]
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ArgumentTypeError(
            "`ray_runtime_env` must be a dict, a path, or names of packages, got "
            f"{type(given).__name__}."
        )
    return {"pip": list(given)}


def _check_listening(address: str) -> None:
    """Fail where nobody listens, or something else than Ray: Ray itself tries for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if not port.isdigit():  # such as "auto"
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as connection:
            if os.environ.get("RAY_USE_TLS", "0") not in ("0", "false"):
                return
            connection.settimeout(PATIENCE)
            connection.sendall(_HELLO)
            head = b""
            while len(head) < _HEAD and (part := connection.recv(_HEAD - len(head))):
                head += part
    except TimeoutError as error:
        late = TimeoutError(f"no answer in {PATIENCE:.0f} s, so what listens there is not Ray")
        raise _unusable(address, late) from error
    except (OSError, OverflowError) as error:
        raise _unusable(address, error) from error
    if len(head) < _HEAD or head[3] != _SETTINGS:
        raise _unusable(address, ConnectionError("what listens there is not Ray"))


@contextmanager
def _caught_words() -> Iterator[list[str]]:
    """Catch what Ray writes to the standard error, past Python, while it connects."""
    words = [""]
    if is_loud():
        yield words
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield words
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            words[0] = file.read().decode("utf-8", "replace")


def _unusable(address: str | None, error: Exception, words: str = "") -> RegaugError:
    where = "on this machine" if address is None else f"at {address}"
    told = f"{error} {words}".lower()
    if "auth" in told and "token" in told:
        return RegaugError(
            f"Ray {where} asks for a token. Set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the "
            "token or RAY_AUTH_TOKEN_PATH to its file; on the head of the cluster "
            "`ray get-auth-token` prints it."
        )
    hint = "" if address is None else " Check `ray_address`, and that the cluster runs."
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return RegaugError(f"Could not use Ray {where}: {first.rstrip('.')}.{hint}")
