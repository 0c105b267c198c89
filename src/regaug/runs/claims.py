"""Who works on what: processes and machines that share a folder leave each other's work alone."""

import json
import os
import platform
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from regaug._files import (
    MALFORMED,
    create_whole,
    dump,
    explain,
    remove_exactly,
    seconds_unchanged,
)
from regaug._regular import read_regular
from regaug.exceptions import StoreError

# Seconds after which the time of a claim is renewed, and after which one that is not is nobody's.
BEAT, EXPIRY = 5.0, 60.0
# Seconds after which whoever waits for a claim looks again.
_LOOK = 0.1
# Of this process: those that are in force, by their tokens, and the thread that renews them.
_claims: "dict[str, Claim]" = {}
_thread: threading.Thread | None = None
_lock = threading.Lock()


class Claim:
    """A file that says which process works on something, as long as it does.

    A claim whose process is gone is nobody's: another process of the same machine sees that at
    once, and one of another machine when the file's time has not been renewed for a minute. Two
    processes may rarely believe that something is theirs, so what they do must bear that.

    Args:
        path: The file.
        token: What tells this claim from all others.
    """

    def __init__(self, path: Path, token: str) -> None:
        self.path, self.token = path, token
        with _lock:
            _claims[token] = self
            _begin_to_renew()

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Claim what a file stands for; None if somebody else has done so. The folder is made."""
        token = secrets.token_hex(8)
        own = dump({**_this_process(), "token": token, "time": time.strftime("%Y-%m-%d %H:%M:%S")})
        try:
            for _ in range(2):
                # Most of the time one who waits writes nothing.
                if (found := _content(path)) is not None and not (
                    _is_nobodys(path, found) and remove_exactly(path, found)
                ):
                    return None
                path.parent.mkdir(parents=True, exist_ok=True)
                create_whole(path, own, sync=False)
                if _content(path) == own:
                    return cls(path, token)
        except OSError as error:
            raise StoreError(
                f"Could not write to {path.parent}: {explain(error, path.parent)}"
            ) from error
        return None

    def end(self, *, keep: bool = False) -> None:
        """Let others have it; with ``keep`` only once the file is removed, or has expired."""
        _claims.pop(self.token, None)
        if not keep and self.token.encode() in (found := _content(self.path) or b""):
            remove_exactly(self.path, found)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Have what a file stands for, for a while, after whoever has it now."""
    while (claim := Claim.take(path)) is None:
        time.sleep(_LOOK)
    try:
        yield
    finally:
        claim.end()


def _begin_to_renew() -> None:
    """Have a thread that renews all claims of this process; it ends when there are none."""
    global _thread
    if _thread is None or not _thread.is_alive():  # nor is it in a fork of this process
        _thread = threading.Thread(target=_renew, daemon=True)
        _thread.start()


def _renew() -> None:
    global _thread
    while True:
        time.sleep(BEAT)
        with _lock:
            known = list(_claims.values())
            if not known:
                _thread = None
                return
        for claim in known:
            with suppress(OSError):  # it was taken from here, and what is done is done twice
                os.utime(claim.path)


def _forget() -> None:
    """Know nothing of the claims of the process that this one is a fork of."""
    global _lock
    _lock = threading.Lock()
    _claims.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _is_nobodys(path: Path, content: bytes) -> bool:
    owner = _read(content)
    process = owner.get("process")
    if owner.get("system") == _system() and isinstance(process, int):
        if process == os.getpid() and owner.get("start") == _start_of(process):
            return owner.get("token") not in _claims
        if not _is_alive(process) or owner.get("start") != _start_of(process):
            return True
    with suppress(OSError):
        # The clocks of two machines differ by less, as a rule; the disk has the last word.
        if 0 <= time.time() - path.stat().st_mtime < EXPIRY:
            return False
    return seconds_unchanged(path) > EXPIRY


def _content(path: Path) -> bytes | None:
    """Return what is in a claim; None if it is gone."""
    with suppress(OSError):
        return read_regular(path)
    return None


def _read(content: bytes) -> dict[str, Any]:
    """Return what a claim says; nothing if it is damaged."""
    try:
        found = json.loads(content)
    except MALFORMED:
        return {}
    return found if isinstance(found, dict) else {}


def _is_alive(process: int) -> bool:
    """Tell whether there is such a process; where that is unknown there is."""
    with suppress(OSError, IndexError):
        # One that nobody has waited for keeps its number, and does nothing any more.
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in ("Z", "X")
    if platform.system() == "Windows":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start_of(process: int) -> str | None:
    """Return when a process was started: a number is used again for another one."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return None


def _this_process() -> dict[str, object]:
    process = os.getpid()
    known = {"host": socket.gethostname(), "process": process, "start": _start_of(process)}
    return {**known, "system": _system()}


@cache
def _system() -> str:
    """Return what two processes have in common that know each other by their numbers."""
    known = [socket.gethostname()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        known.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(known)
