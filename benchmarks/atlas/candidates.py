"""Candidates, trained as ``fit`` trains: a net for each of eight folds; which of them go together.

Each net stops on its own fold and learns the others. Their mean predicts the test rows; what they
predict for their own folds decides the weights where several candidates are put together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.atlas.protocol import PREDICTIONS, Cell, rows
from regaug.data.base import Part
from regaug.data.scaling import StandardizedSplit
from regaug.ensemble import leave_out
from regaug.ensemble.prepared import Prepared
from regaug.ensemble.rows import fold_rows
from regaug.ensemble.weights import weigh
from regaug.training import Settings, fit_many
from regaug.training.recipe import HIDDEN, default_recipe

FOLDS = 8
SIZES = (1, 2, 3, 4, 6, 8)
# Of the logarithm of an error, on one table.
MOST_CHANGE = 0.1


@dataclass(frozen=True)
class Tried:
    """A candidate: a method, what is changed of the default recipe, and the widths of the net."""

    method: str = "erm"
    changes: Mapping[str, Any] | None = None
    hidden: tuple[int, ...] = HIDDEN
    seed: int = 0

    def settings(self, usual: Settings, fold: int) -> Settings:
        """Return the settings of the net of a fold."""
        return replace(usual, **(self.changes or {}), seed=100 * self.seed + fold)


def train(
    kind: str, cell: Cell, make: Callable[[Sequence[StandardizedSplit]], Mapping[str, Tried]]
) -> dict[str, Any]:
    """Train candidates on a cell: return their errors and times, and keep what they predict.

    ``make`` is shown the splits of the folds and says what is to be tried.
    """
    table, _, test = rows(cell)
    ready = Prepared.of(leave_out(table, test), seed=cell.split)
    folds = fold_rows(ready.data, ready.rest, FOLDS, cell.split)
    x = ready.preparation(table.frame.iloc[test]).float()
    y = torch.from_numpy(np.array(table.y[test], dtype=np.float64))
    part = Part(x, ready.scale().transform(y).float(), test)
    splits = [
        StandardizedSplit(own.train, own.validation, part, y_scaler=own.y_scaler)
        for own in ready.splits(folds)
    ]
    tried = make(splits)
    bounds, usual = ready.bounds(), default_recipe(len(splits[0].train))
    held: list[Tensor] = []
    found: list[Tensor] = []
    seconds = []
    for own in tried.values():
        settings = [own.settings(usual, fold) for fold in range(len(folds))]
        results = fit_many(splits, own.method, settings, hidden=own.hidden, record=())
        at = {name: [r.predictions[name].double() for r in results] for name in PARTS}
        held.append(torch.cat([bounds.clamp(values) for values in at["validation"]]))
        found.append(torch.stack([bounds.clamp(values) for values in at["test"]]).mean(dim=0))
        seconds.append(round(sum(result.seconds for result in results), 2))
    PREDICTIONS.mkdir(parents=True, exist_ok=True)
    arrays = {"held": torch.stack(held), "found": torch.stack(found)}
    arrays |= {"held_y": ready.y[np.concatenate(folds)], "y": y}
    np.savez_compressed(_file(kind, cell), **{name: own.numpy() for name, own in arrays.items()})
    errors = [(own - y).square().mean().sqrt().item() for own in found]
    return {"rmse": dict(zip(tried, errors, strict=True)), "training": seconds}


PARTS = ("validation", "test")


class Predictions:
    """What the candidates predict on one cell."""

    def __init__(self, kind: str, cell: Cell) -> None:
        self.kind, self.cell = kind, cell

    @cached_property
    def arrays(self) -> dict[str, Tensor]:
        """Predictions of the folds and of the test rows, and the targets of both."""
        with np.load(_file(self.kind, self.cell)) as file:
            return {name: torch.from_numpy(file[name]) for name in file.files}

    def error(self, chosen: Iterable[int]) -> float:
        """Return the log of the test error of some candidates, weighted as in a fit."""
        own, numbers = self.arrays, list(chosen)
        weights = weigh(own["held"][numbers], own["held_y"])
        mean = torch.einsum("k,knm->nm", weights, own["found"][numbers])
        return float((mean - own["y"]).square().mean().sqrt().log())

    @cached_property
    def first(self) -> float:
        """The error of the first candidate."""
        return self.error([0])

    def change(self, chosen: Iterable[int]) -> float:
        """Return the change against the first candidate, within bounds.

        On a table with an outlier among the test rows it may be anything: that is not to decide.
        """
        return float(np.clip(self.error(chosen) - self.first, -MOST_CHANGE, MOST_CHANGE))


def known_predictions(kind: str, lines: Sequence[Mapping[str, Any]]) -> list[Predictions]:
    """Return the predictions that are here, of the cells of a results file."""
    known = [Cell(line["table"], line["split"]) for line in lines]
    return [Predictions(kind, cell) for cell in known if _file(kind, cell).exists()]


def changes(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> np.ndarray:
    """Return the log change against the first candidate, the mean over a table's splits.

    The shape is (tables, candidates).
    """
    logs = np.array([[np.log(line["rmse"][name]) for name in names] for line in lines])
    of_table = np.array([line["table"] for line in lines])
    against = logs - logs[:, :1]
    return np.array([against[of_table == table].mean(axis=0) for table in np.unique(of_table)])


def row(name: str, own: np.ndarray, time: float) -> str:
    """Return a line of a table: what a candidate has changed, over the tables."""
    error = own.std(ddof=1) / len(own) ** 0.5
    return (
        f"| {name} | {100 * np.expm1(own.mean()):+.1f} % | {100 * error:.1f} | "
        f"{100 * np.expm1(np.median(own)):+.1f} % | {(own < 0).mean():.0%} | x{time:.2f} |"
    )


HEAD = (
    "| change | RMSE | standard error | median | better on | time |",
    "| --- | --- | --- | --- | --- | --- |",
)


def pick(
    found: Sequence[Predictions], among: Iterable[int], size: int, first: Sequence[int]
) -> list[int]:
    """Choose candidates one by one, after the first ones, each what helps the ensemble most."""
    chosen, among = list(first), list(among)
    while len(chosen) < size and set(among) - set(chosen):
        left = [number for number in among if number not in chosen]
        errors = [np.mean([own.change([*chosen, number]) for own in found]) for number in left]
        chosen.append(left[int(np.argmin(errors))])
    return chosen


def relative_times(known: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return the time of each training over that of the first, ``(tables, candidates)``."""
    times = np.array([line["training"] for line in known])
    return times / times[:, :1]


def portfolio(
    found: Sequence[Predictions], names: Sequence[str], among: Sequence[int], first: Sequence[int]
) -> list[str]:
    """Choose a portfolio on all tables; say what it is worth on tables that have not chosen it."""
    whole = pick(found, among, max(SIZES), first)
    tables = sorted({own.cell.table for own in found})
    fold_of = dict(zip(tables, np.random.default_rng(0).permutation(len(tables)) % 5, strict=True))
    held: dict[int, list[float]] = {size: [] for size in SIZES if size >= len(first)}
    for fold in range(5):
        others = [own for own in found if fold_of[own.cell.table] != fold]
        chosen = pick(others, among, max(SIZES), first)
        for own in found:
            if fold_of[own.cell.table] == fold:
                for size in held:
                    held[size].append(own.change(chosen[:size]))
    worth = [f"{size}: {100 * np.expm1(np.mean(own)):+.1f} %" for size, own in held.items() if own]
    return [
        f"Chosen one by one: {'; '.join(names[number] for number in whole)}. On tables that have "
        f"not chosen, against the first line, so many of them: {', '.join(worth)}. (A table counts "
        f"with {100 * MOST_CHANGE:.0f} % at most.)",
        "",
    ]


def _file(kind: str, cell: Cell) -> Path:
    return PREDICTIONS / f"{kind}-{cell.table}-{cell.split}.npz"
