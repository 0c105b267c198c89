"""Which recipe trains the table net well: one change at a time, and a portfolio of several.

    python -m benchmarks.atlas.recipes run [jobs]     every candidate on every table, resumable
    python -m benchmarks.atlas.recipes show           the ablation, and the portfolio

The portfolio that is shown is chosen one by one over all tables, and its errors are those on tables
that did not choose it. That of ``regaug/training/recipe.py`` is still set by hand.
"""

import sys
from typing import Any

import numpy as np
import torch

from benchmarks.atlas.protocol import RESULTS, Cell, cells, index, lines, measure, problem
from regaug.data.base import Split
from regaug.data.scaling import standardize
from regaug.ensemble.weights import similar_weights
from regaug.training import Settings, fit_many

MOST_TRAINING, MOST_VALIDATION = 200, 80
BASE: dict[str, Any] = {
    "epochs": 200,
    "patience": 30,
    "learning_rate": 2e-3,
    "weight_decay": 1e-2,
    "frequencies": 8,
    "spread": 0.1,
    "linear": True,
}
ONE_CHANGE: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no periodic features, no linear part": {"frequencies": 0, "linear": False},
    "no periodic features": {"frequencies": 0},
    "no linear part": {"linear": False},
    "half the frequencies": {"frequencies": 4},
    "lower frequencies": {"spread": 0.03},
    "higher frequencies": {"spread": 0.3},
    "rate 1e-3": {"learning_rate": 1e-3},
    "rate 5e-3": {"learning_rate": 5e-3},
    "cosine from 2e-3": {"schedule": "cosine", "patience": None},
    "cosine from 1e-2": {"schedule": "cosine", "patience": None, "learning_rate": 1e-2},
    "waves of 5e-3": {"schedule": "waves", "patience": None, "learning_rate": 5e-3},
    "waves of 1e-2": {"schedule": "waves", "patience": None, "learning_rate": 1e-2},
    "no decay": {"weight_decay": 0.0},
    "decay 0.1": {"weight_decay": 0.1},
    "decay 1": {"weight_decay": 1.0},
    "batches of 64": {"batch_size": 64},
    "batches of 16": {"batch_size": 16},
    "no early end": {"patience": None},
}
DRAWS = 13


def candidates() -> list[Settings]:
    """Return the settings that are tried: changes of the base, then draws."""
    tried = [Settings(**{**BASE, **change}) for change in ONE_CHANGE.values()]
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        schedule = rng.choice(["constant", "cosine", "waves"])
        tried.append(
            Settings(
                epochs=200,
                patience=30 if schedule == "constant" else None,
                schedule=schedule,
                learning_rate=float(np.exp(rng.uniform(np.log(5e-4), np.log(1e-2)))),
                weight_decay=float(np.exp(rng.uniform(np.log(1e-3), np.log(1.0)))),
                frequencies=int(rng.choice([0, 8, 8, 8])),
                spread=float(np.exp(rng.uniform(np.log(0.03), np.log(0.5)))),
                linear=bool(rng.choice([True, True, False])),
                batch_size=int(rng.choice([16, 32, 32, 64])),
            )
        )
    return tried


def small_split(cell: Cell) -> Split:
    """Return a split with few rows to learn from: what a recipe is for."""
    whole, rng = problem(cell.table).splits[cell.split], np.random.default_rng(cell.split)
    # Rows are in the order of the table, which may mean something: at random, not the first ones.
    train = whole.train.take(rng.permutation(len(whole.train))[:MOST_TRAINING])
    validation = whole.validation.take(rng.permutation(len(whole.validation))[:MOST_VALIDATION])
    return Split(train, validation, whole.test)


def run(cell: Cell) -> dict[str, Any]:
    """Train every candidate on a cell; keep the errors here and the predictions beside."""
    split = small_split(cell)
    results = fit_many(standardize(split), "erm", candidates(), record=())
    parts = ("validation", "test")
    arrays = {part: np.stack([own.predictions[part].numpy() for own in results]) for part in parts}
    targets = {f"{part}_y": split.parts[part].y.numpy() for part in parts}
    folder = RESULTS / "predictions"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{cell.table}-{cell.split}.npz", **arrays, **targets)
    return {part: [float(f"{own.scores[part].rmse:.6g}") for own in results] for part in parts}


def show() -> None:
    """Print the ablation and the portfolio."""
    found = lines("recipes")
    test = np.log([line["test"] for line in found])
    change = test - test[:, :1]
    print("| change | test RMSE | standard error | worse on |\n| --- | --- | --- | --- |")
    for number, name in enumerate(ONE_CHANGE):
        own = change[:, number]
        error = own.std(ddof=1) / len(own) ** 0.5
        print(
            f"| {name} | {100 * own.mean():+.1f} % | {100 * error:.1f} | {(own > 0).mean():.0%} |"
        )
    tables = [_Table(line["table"], line["split"]) for line in found]
    settings = candidates()
    whole = pick(tables, range(len(settings)), 12)
    print("portfolio:", whole)
    for number in whole:
        print(
            "   ",
            {
                k: v
                for k, v in settings[number].to_dict().items()
                if k in BASE or k in ("schedule", "batch_size")
            },
        )
    rng = np.random.default_rng(0)
    fold_of = rng.permutation(len(tables)) % 5
    for size in (1, 2, 4, 6, 8, 12):
        held = []
        for fold in range(5):
            learn = [own for own, f in zip(tables, fold_of, strict=True) if f != fold]
            chosen = pick(learn, range(len(settings)), size)
            held += [
                own.error(chosen) - own.error([0])
                for own, f in zip(tables, fold_of, strict=True)
                if f == fold
            ]
        drawn = [
            own.error(range(len(ONE_CHANGE), len(ONE_CHANGE) + size)) - own.error([0])
            for own in tables
        ]
        print(
            f"{size:3d} recipes: portfolio {100 * np.mean(held):+.1f} %, "
            f"drawn {100 * np.mean(drawn):+.1f} %"
        )


class _Table:
    """The predictions of all candidates on one cell."""

    def __init__(self, table: str, split: int) -> None:
        arrays = np.load(RESULTS / "predictions" / f"{table}-{split}.npz")
        self.validation, self.test, self.y, self.test_y = (
            torch.from_numpy(arrays[name]).double()
            for name in ("validation", "test", "validation_y", "test_y")
        )

    def error(self, chosen: Any) -> float:
        """Return the log of the test error of the ensemble of some candidates."""
        chosen = list(chosen)
        weights = similar_weights(self.validation[chosen], self.y)
        mean = torch.einsum("k,knm->nm", weights, self.test[chosen].nan_to_num())
        return float((mean - self.test_y).square().mean().sqrt().log())


def pick(tables: list[_Table], among: Any, size: int) -> list[int]:
    """Choose candidates one by one, each the one that helps the ensemble most over the tables."""
    chosen: list[int] = []
    for _ in range(size):
        left = [number for number in among if number not in chosen]
        errors = [np.mean([own.error([*chosen, number]) for own in tables]) for number in left]
        chosen.append(left[int(np.argmin(errors))])
    return chosen


if __name__ == "__main__":
    if sys.argv[1] == "show":
        show()
    else:
        jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
        measure("recipes", run, [cell for cell in cells(index()) if cell.split == 0], jobs=jobs)
