"""Who works on what: processes and machines that share a folder leave each other's work alone."""

import json
import os
import platform
import secrets
import socket
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from regaug._files import MALFORMED, create_whole, dump, remove_exactly, seconds_unchanged
from regaug._regular import read_regular

# Seconds after which the time of a claim is renewed, and after which one that is not is nobody's.
BEAT, EXPIRY = 5.0, 60.0
# Of this process: those that are in force.
_tokens: set[str] = set()


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
        self._has_ended = threading.Event()
        _tokens.add(token)
        threading.Thread(target=self._renew, daemon=True).start()

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Claim what a file stands for; None if somebody else has done so. The folder is made."""
        token = secrets.token_hex(8)
        own = dump({"process": os.getpid(), "system": _system(), "token": token})
        path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            create_whole(path, own, sync=False)
            found = _content(path)
            if found == own:
                return cls(path, token)
            if not _is_nobodys(path, found) or not remove_exactly(path, found):
                return None
        return None

    def end(self, *, keep: bool = False) -> None:
        """Let others have it; with ``keep`` only once the file is removed, or has expired."""
        self._has_ended.set()
        _tokens.discard(self.token)
        if not keep and self.token.encode() in (found := _content(self.path)):
            remove_exactly(self.path, found)

    def _renew(self) -> None:
        while not self._has_ended.wait(BEAT):
            with suppress(OSError):  # it was taken from here, and what is done is done twice
                os.utime(self.path)


def _is_nobodys(path: Path, content: bytes) -> bool:
    owner = _read(content)
    process = owner.get("process")
    if owner.get("system") == _system() and isinstance(process, int):
        if process == os.getpid():
            return owner.get("token") not in _tokens
        if not _is_alive(process):
            return True
    return seconds_unchanged(path) > EXPIRY


def _content(path: Path) -> bytes:
    """Return what is in a claim; nothing if it is gone."""
    with suppress(OSError):
        return read_regular(path)
    return b""


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


@cache
def _system() -> str:
    """Return what two processes have in common that know each other by their numbers."""
    known = [socket.gethostname()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        known.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(known)
