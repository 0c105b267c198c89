"""A progress bar on a terminal, a line now and then in a pipe."""

import sys
import time
from typing import Any, Self

# Seconds between two lines where there is no terminal.
_PAUSE = 10.0


class Bar:
    """Show how much is done, and a few words on how it goes.

    Args:
        unit: What is counted: "epoch" or "run".
        total: How many there will be, at most.
        done: How many were done before.
        show: Whether to show anything at all.
    """

    def __init__(self, unit: str, total: int, done: int = 0, *, show: bool) -> None:
        self.unit, self.total, self.done = unit, total, done
        self._is_plain = show and not sys.stderr.isatty()
        self._last_line = time.monotonic()
        self._progress: Any = None
        if show and not self._is_plain:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            self._progress = Progress(
                TextColumn(unit),
                MofNCompleteColumn(),
                BarColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task("", total=total, completed=done)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, words: str) -> None:
        """Count one more."""
        self.done += 1
        if self._progress is not None:
            self._progress.update(self._task, advance=1, description=words)
        elif self._is_plain and self._is_due():
            print(f"{self.unit} {self.done}/{self.total}  {words}", file=sys.stderr, flush=True)

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self.done < self.total and now - self._last_line < _PAUSE:
            return False
        self._last_line = now
        return True
