"""Time several functions side by side."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table: ours against the plain way.

    Attributes:
        name: What was measured.
        plain: Seconds the plain way takes (median).
        ours: Seconds ours takes (median).
        faster: True when the budget is "at least so many times faster", False when it is "at most
            so many times the time".
        budget: The bar; None for a line that is printed for information.
    """

    name: str
    plain: float
    ours: float
    faster: bool = True
    budget: float | None = None

    @property
    def ratio(self) -> float:
        """How many times faster ours is, or how many times the time it takes."""
        return self.plain / self.ours if self.faster else self.ours / self.plain

    @property
    def holds(self) -> bool:
        """Whether the budget is met; always, where there is none."""
        if self.budget is None:
            return True
        return self.ratio >= self.budget if self.faster else self.ratio <= self.budget


def interleaved(
    functions: Sequence[Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Call the functions in turn and return the median time of each.

    Taking turns gives each the same share of the machine's slow moments, so ratios are steadier
    than times.
    """
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    gc.disable()
    try:
        for _ in range(repeats):
            for function, record in zip(functions, times, strict=True):
                start = clock()
                function()
                record.append(clock() - start)
    finally:
        gc.enable()
    return [statistics.median(record) for record in times]
