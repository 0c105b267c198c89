"""A progress bar on a terminal, a line now and then in a pipe."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

# Seconds between two lines where there is no terminal.
_PAUSE = 10.0


class Bar:
    """Show how many of ``total`` epochs or runs are done, and a few words on how it goes."""

    def __init__(self, unit: str, total: int, done: int = 0, *, show: bool) -> None:
        self.unit, self.total, self.done = unit, total, done
        self._is_plain = show and not sys.stderr.isatty()
        self._last_line = time.monotonic()
        self._progress: Any = None
        if show and not self._is_plain:
            from rich import progress
            from rich.console import Console

            self._progress = progress.Progress(
                progress.TextColumn(unit),
                progress.MofNCompleteColumn(),
                progress.BarColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.description}"),
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

    def say(self, words: str) -> None:
        """Say how it goes while nothing is finished."""
        if self._progress is not None:
            self._progress.update(self._task, description=words)
        elif self._is_plain and time.monotonic() - self._last_line >= _PAUSE:
            self._print(words)

    def _print(self, words: str) -> None:
        self._last_line = time.monotonic()
        print(f"{self.unit} {self.done}/{self.total}  {words}", file=sys.stderr, flush=True)

    def advance(self, words: str) -> None:
        """Count one more."""
        self.done += 1
        if self._progress is not None:
            self._progress.update(self._task, advance=1, description=words)
        elif self._is_plain and (
            self.done == self.total or time.monotonic() - self._last_line >= _PAUSE
        ):
            self._print(words)


@contextmanager
def bar_from_first_call(unit: str) -> Iterator[Callable[..., None]]:
    """Give a function that is told how many of how many are done, and a few words.

    The bar is there from the first call on, when the total is known; a fourth argument of that call
    is what it counts, if it is not ``unit``.
    """
    with ExitStack() as stack:
        bars: list[Bar] = []

        def show(done: int, total: int, words: str, counted: str = unit) -> None:
            if not bars:
                bars.append(stack.enter_context(Bar(counted, total, done, show=True)))
            # What is done again was counted before.
            while bars[0].done < done:
                bars[0].advance(words)
            bars[0].say(words)

        yield show
