"""How far a study has come: a live table on a terminal, a line now and then in a pipe."""

import math
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import typer

from regaug.formatting import duration, number
from regaug.metrics import METRICS
from regaug.studies.progress import Progress

if TYPE_CHECKING:
    from rich.live import Live as RichLive
    from rich.table import Table

# Seconds between two lines where there is no terminal.
_PAUSE = 15.0


class Live:
    """Shows how many runs of every method are done, their best validation error, the time left.

    It is the ``progress`` of :func:`regaug.compare`.
    """

    def __init__(self) -> None:
        self.best: dict[str, float] = {}
        self._last_line = time.monotonic()
        self._live: RichLive | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Show how far it has come."""
        if not progress.records:
            self._announce(progress)
        metric = progress.plan.config.metric
        for record in progress.records:
            name, error = record.run.method, record.validation_error(metric)
            self.best[name] = min(error, self.best.get(name, math.inf))
        if self._live is not None:
            self._live.update(self._table(progress))
        elif progress.records and time.monotonic() - self._last_line > _PAUSE:
            self._last_line = time.monotonic()
            typer.echo(_title(progress), err=True)

    def _announce(self, progress: Progress) -> None:
        for line in progress.announcement:
            typer.echo(line, err=True)
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live as RichLive

            table, console = self._table(progress), Console(stderr=True)
            self._live = RichLive(table, console=console, refresh_per_second=4, transient=True)
            self._live.start()

    def _table(self, progress: Progress) -> "Table":
        from rich.table import Table

        config = progress.plan.config
        metric = METRICS[config.metric]
        total: Mapping[str, int] = Counter(run.method for run in progress.plan.runs)
        header = ("method", "runs", f"best validation {metric.title_for(config.targets)}")
        table = Table(*header, box=None, title=_title(progress))
        for name, runs in total.items():
            error = self.best.get(name, math.inf)
            best = number(metric.sign * error) if math.isfinite(error) else ""
            table.add_row(name, f"{progress.done.get(name, 0)} / {runs}", best)
        return table


def _title(progress: Progress) -> str:
    total, done = len(progress.plan.runs), sum(progress.done.values())
    left = f", about {duration(progress.seconds_left)} left" if 0 < done < total else ""
    return f"{done:,} of {total:,} runs{left}"
