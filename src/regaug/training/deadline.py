"""When a training ends with the best it has: at a time, or when somebody asks for it."""

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeAlias


@dataclass(frozen=True)
class Deadline:
    """An end that somebody may decide on while others, in any process, train.

    It stands where a time stands: ``time.time() > deadline`` says whether it is over.

    Attributes:
        flag: It is over when there is such a file.
        until: And at this time, in seconds since 1970; None for no time.

    Example:
        >>> Deadline(Path("no/such/file")) < 0.0
        False
        >>> Deadline(Path("no/such/file"), until=1.0) < 2.0
        True
    """

    flag: Path
    until: float | None = None

    def __lt__(self, now: float) -> bool:
        return (self.until is not None and now > self.until) or self.flag.exists()


Until: TypeAlias = float | Deadline


@contextmanager
def stoppable(say: Callable[[], None]) -> Iterator[Path]:
    """Let the first Ctrl-C make a file, whose path is given; the second one interrupts.

    ``say`` is called after the first. Only the main thread hears of it.
    """
    with tempfile.TemporaryDirectory(prefix="regaug-") as folder:
        flag = Path(folder) / "stop"

        def stop(number: int, frame: FrameType | None) -> None:
            if flag.exists():
                raise KeyboardInterrupt
            flag.touch()
            say()

        if threading.current_thread() is not threading.main_thread():
            yield flag
            return
        before = signal.signal(signal.SIGINT, stop)
        try:
            yield flag
        finally:
            signal.signal(signal.SIGINT, before)
