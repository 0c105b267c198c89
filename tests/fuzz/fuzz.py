"""The loop: so many changed files, each from a seed of its own, within time and memory."""

import faulthandler
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from tests.fuzz.targets import TARGETS

SECONDS = 30.0  # that a file may take, on a busy machine
MEMORY = 3 * 2**30  # bytes that reading one may need beside what is there already


@dataclass
class Tally:
    """What has come out: how many of each target, how many accepted, and the findings."""

    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[str]] = field(default_factory=dict)  # by place, where they were found

    def __str__(self) -> str:
        """Return a line per target, and one per finding."""
        lines = [
            f"{name}: {self.tried[name]:,} tried, {self.accepted[name]:,} accepted"
            for name in TARGETS
        ]
        found = [f"{place}: {len(own)} x, {own[0]}" for place, own in self.findings.items()]
        return "\n".join([*lines, f"{len(found)} findings", *found])


def fuzz(
    *, seed: int = 0, count: int | None = None, seconds: float | None = None, only: str = ""
) -> Tally:
    """Try changed files until there were so many, or the time is up."""
    tally = Tally()
    names = [name for name, own in TARGETS.items() for _ in range(own.share) if only in name]
    with tempfile.TemporaryDirectory() as folder, limited_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dict.fromkeys(names):
            Path(folder, name).mkdir()
            TARGETS[name].write(Path(folder, name))
            shutil.copytree(Path(folder, name), Path(folder, "sound", name))
            TARGETS[name].use(Path(folder, "sound", name))  # else everything is refused
        number, end = 0, time.monotonic() + (seconds or 1e9)
        while (count is None or number < count) and time.monotonic() < end:
            name = names[number % len(names)]
            try_one(name, f"{seed}-{number}", Path(folder), tally)
            number += 1
    return tally


def try_one(name: str, seed: str, folder: Path, tally: Tally) -> None:
    """Try one file, which its seed decides."""
    tally.tried[name] += 1
    try:
        with limited_time():
            sound, copy = folder / name, folder / "copy"
            tally.accepted[name] += TARGETS[name].attempt(sound, copy, Random(seed))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/regaug/" in frame.filename] or list(frames)
        place = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
        found = tally.findings.setdefault(place, [])
        found.append(f"{name}, seed {seed}: {str(error)[:300]}")
        if len(found) == 1:
            print(f"--- {name}, seed {seed}\n{traceback.format_exc()[-3000:]}", file=sys.stderr)


@contextmanager
def limited_time() -> Iterator[None]:
    """End what takes too long: by an error, or the whole process where that is not seen."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        faulthandler.dump_traceback_later(4 * SECONDS, exit=True, file=sys.__stderr__)
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let no file need more memory than there is beside what is used already."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
