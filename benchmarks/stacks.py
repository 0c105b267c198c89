"""Stacked runs against the plain loop, and a stack with each method against one with erm."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.baseline import Loss, make_data, make_step, plain_loss
from benchmarks.step import at_a_layer, on_inputs
from benchmarks.timing import Row, interleaved
from regaug import FOMA, methods
from regaug.data import Part, Split, load, standardize
from regaug.training import Settings, fit_many
from regaug.training.recipe import HIDDEN, default_recipe
from regaug.training.stacked.stack import Stack
from regaug.training.stacked.training import Training

RUNS, EPOCHS, REPEATS = 30, 3, 5
BATCHES = 64
# Of the stack with each method: trained this far, through what it anneals.
METHOD_RUNS, METHOD_EPOCHS, SPLITS = 32, 30, 4


def measure() -> Iterator[Row]:
    yield from _measure(32, (8.0, 8.0, 6.0))
    yield from _measure(64)
    yield from _measure(128)
    yield from _measure(32, fused=True)
    yield from _measure_methods()


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


def _measure_methods() -> Iterator[Row]:
    """Measure the steps of a stack with each method against those with erm.

    The nets are those of the default recipe, and, without a budget, ones without its periodic
    features and its linear part: their steps are short, and the methods weigh more.
    """
    yield from _measure_nets("the default recipe", {}, budget=1.5)
    yield from _measure_nets("plain nets", {"frequencies": 0, "linear": False}, budget=None)


def _measure_nets(nets: str, changes: dict[str, Any], *, budget: float | None) -> Iterator[Row]:
    cases = {name: (name, {}) for name in methods.names() if name != "erm"}
    cases |= {"foma-rho at a layer": ("foma-rho", {"place": "layer"})}
    plain, *ours = interleaved(
        [all_epochs(*case, changes) for case in [("erm", {}), *cases.values()]], REPEATS
    )
    for name, seconds in zip(cases, ours, strict=True):
        words = f"{METHOD_RUNS} runs of {nets}, batch 32, built-in table: {name} against erm"
        yield Row(words, plain, seconds, faster=False, budget=budget)


def all_epochs(
    method: str, own: dict[str, object], changes: dict[str, Any]
) -> Callable[[], object]:
    """Return the steps of a training, without what comes before and between them."""
    splits = [standardize(load("diabetes").split(seed)) for seed in range(SPLITS)]
    recipe = replace(
        default_recipe(len(splits[0].train)), epochs=METHOD_EPOCHS, method_settings=own, **changes
    )
    runs = [
        Training.make(
            number,
            splits[number % SPLITS],
            method,
            replace(recipe, seed=number),
            HIDDEN,
            None,
        )
        for number in range(METHOD_RUNS)
    ]
    stack = Stack(runs, torch.float32, {"validation": 1})

    def train() -> None:
        for epoch in range(METHOD_EPOCHS):
            stack.train_epoch(epoch)

    return train
