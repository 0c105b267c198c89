"""Thirty stacked runs against thirty runs of the plain loop, with and without FOMA."""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.baseline import Loss, make_data, make_step, plain_loss
from benchmarks.step import at_a_layer, on_inputs
from benchmarks.timing import Row, interleaved
from regaug import FOMA
from regaug.data import Part, Split
from regaug.training import Settings, fit_many

RUNS, EPOCHS, REPEATS = 30, 3, 5
BATCHES = 64


def measure() -> Iterator[Row]:
    yield from _measure(32, (7.0, 6.0, 4.0))
    yield from _measure(64)
    yield from _measure(128)
    yield from _measure(32, fused=True)


def _measure(
    batch_size: int,
    budgets: tuple[float | None, float | None, float | None] = (None, None, None),
    *,
    fused: bool = False,
) -> Iterator[Row]:
    cases: list[tuple[str, Loss, str, dict[str, object]]] = [
        ("erm", plain_loss, "erm", {}),
        ("FOMA on inputs", on_inputs(FOMA()), "foma-rho", {"place": "input"}),
        ("FOMA at a layer", at_a_layer(FOMA()), "foma-rho", {"place": "layer"}),
    ]
    settings = f"batch {batch_size}" + (", fused Adam in the plain loop" if fused else "")
    for (name, loss, method, own), budget in zip(cases, budgets, strict=True):
        if method != "erm":
            own = own | {"anneal": None, "sampler": "random"}
        plain, ours = interleaved(
            [_one_plain_run(batch_size, loss, fused), _stacked_runs(batch_size, method, own)],
            REPEATS,
        )
        yield Row(f"{RUNS} runs, {settings}: {name}", RUNS * plain, ours, budget=budget)


def _one_plain_run(batch_size: int, loss: Loss, fused: bool) -> Callable[[], None]:
    step = make_step(batch_size, fused=fused, loss=loss)

    def run() -> None:
        for _ in range(EPOCHS * BATCHES):
            step()

    return run


def _stacked_runs(batch_size: int, method: str, own: dict[str, object]) -> Callable[[], object]:
    """Return all of ``fit_many``: making the nets, training, choosing the epoch, scoring."""
    x, y = make_data(batch_size * BATCHES)
    train = Part(x=x, y=y, rows=np.arange(len(x)))
    few = Part(x=x[:200], y=y[:200], rows=np.arange(200))
    split = Split(train, few, few)
    settings = [
        Settings(epochs=EPOCHS, batch_size=batch_size, seed=seed, method_settings=own)
        for seed in range(RUNS)
    ]
    return lambda: fit_many(split, method, settings, record=["validation"])
