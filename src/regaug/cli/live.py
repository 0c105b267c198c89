"""How far a study has come: a live table on a terminal, a line now and then in a pipe."""

import math
import sys
import time
from collections import Counter
from types import TracebackType
from typing import Any, Self

from regaug.metrics import is_better
from regaug.runs.worker import Outcome
from regaug.studies.compare import Plan

# Seconds between two lines where there is no terminal.
_PAUSE = 15.0


class Live:
    """Shows how many runs of every method are done, their best validation error, the time left.

    Args:
        plan: What the study is going to do.
        done: Runs per method that were finished before.
    """

    def __init__(self, plan: Plan, done: Counter[str]) -> None:
        self.metric: str = plan.configuration["metric"]
        self.total = Counter(run.name for run in plan.runs)
        self.before = done.total()
        self.done = Counter(done)
        self.best: dict[str, float] = {}
        self.start = self._last_line = time.monotonic()
        self._live: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live as RichLive

            self._live = RichLive(
                self._table(), console=Console(stderr=True), refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, outcome: Outcome) -> None:
        """Count what a finished piece of work has made."""
        for _, run, result in outcome:
            name = run["method"]
            self.done[name] += 1
            error = result["scores"]["validation"][self.metric]
            if error is not None and is_better(self.metric, error, self.best.get(name, math.nan)):
                self.best[name] = error
        if self._live is not None:
            self._live.update(self._table())
        elif time.monotonic() - self._last_line > _PAUSE:
            self._last_line = time.monotonic()
            print(
                f"{self.done.total()} of {self.total.total()} runs{self._time_left()}",
                file=sys.stderr,
                flush=True,
            )

    def _time_left(self) -> str:
        new = self.done.total() - self.before
        left = self.total.total() - self.done.total()
        if not new or not left:
            return ""
        return f", about {say_time((time.monotonic() - self.start) / new * left)} left"

    def _table(self) -> Any:
        from rich.table import Table

        title = f"{self.done.total()} of {self.total.total()} runs{self._time_left()}"
        table = Table("method", "runs", f"best validation {self.metric}", box=None, title=title)
        for name, total in self.total.items():
            best = f"{self.best[name]:.4g}" if name in self.best else ""
            table.add_row(name, f"{self.done[name]} / {total}", best)
        return table


def say_time(seconds: float) -> str:
    """Return a duration in words.

    Example:
        >>> say_time(42.3), say_time(100), say_time(5400)
        ('42 s', '1 min 40 s', '1 h 30 min')
    """
    whole = math.ceil(seconds - 0.5)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
