"""Models of ``regaug.fit`` and of others on three well-known tables, ten splits of each.

    python -m benchmarks.atlas.known run [jobs] [models]     resumable
    python -m benchmarks.atlas.known show                    writes results/atlas/known.md

``models`` are names of ``MODELS`` with commas between them; ``catboost`` needs that package. What
stands for before is the same command with revision 7de531c first in ``PYTHONPATH``:
``known run 2 before``. A model learns from the training and validation rows of a split.
"""

import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.atlas.fits import judge
from benchmarks.atlas.protocol import Cell, lines, load_named, measure, publish, rmse
from benchmarks.atlas.rivals import make_catboost, make_mlp
from regaug import fit
from regaug.data import read_table

TABLES, SPLITS = ("airfoil", "no2", "diabetes"), 10
TARGET = "y"


@cache
def read(name: str) -> pd.DataFrame:
    data = load_named(name)
    frame = pd.DataFrame(np.asarray(data.x), columns=[f"x{i}" for i in range(data.x.shape[1])])
    return frame.assign(**{TARGET: np.asarray(data.y)[:, 0]})


def parts(cell: Cell) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to learn from and those to test on."""
    frame, test = read(cell.table), load_named(cell.table).split(seed=cell.split).test.rows
    return frame.drop(index=frame.index[test]), frame.iloc[test]


def ours(cell: Cell, method: str) -> dict[str, Any]:
    learn, test = parts(cell)
    model = fit(read_table(learn.reset_index(drop=True), target=TARGET), method=method)
    return judge(model, test, test[[TARGET]].to_numpy())


def others(cell: Cell, make: Callable[[int], Any]) -> dict[str, Any]:
    learn, test = parts(cell)
    with warnings.catch_warnings(action="ignore"):  # that a net has not converged, in every fit
        model = make(cell.split).fit(learn.drop(columns=TARGET), learn[TARGET])
    return {"rmse": rmse(model.predict(test.drop(columns=TARGET)), test[TARGET].to_numpy())}


MODELS: dict[str, Callable[[Cell], dict[str, Any]]] = {
    "auto": partial(ours, method="auto"),
    "erm": partial(ours, method="erm"),
    "catboost": partial(others, make=make_catboost),
    "mlp": partial(others, make=make_mlp),
    "before": partial(ours, method="auto"),
}
WORDS = {
    "auto": "`fit`: the blend",
    "erm": "`fit --method erm`",
    "catboost": "CatBoost's defaults",
    "mlp": "scikit-learn's `MLPRegressor`, standardized",
    "before": "`fit` before the recipe (revision 7de531c)",
}


def show() -> None:
    """Write errors against CatBoost's, and how many test rows the intervals cover."""
    out = [
        "# Three known tables, ten splits of each",
        "",
        "`python -m benchmarks.atlas.known run`, then `show`. RMSE on the test rows: the mean over",
        "splits, and the change against CatBoost's defaults, a geometric mean with its 95 %",
        "interval over splits, not corrected for rows that splits share; the share of test rows",
        "that 90 % intervals cover. In brackets the number of splits that are done.",
        "",
    ]
    for table in TABLES:
        own = {name: _lines(name, table) for name in MODELS}
        shown = [name for name, found in own.items() if found]
        splits = max(len(own[name]) for name in shown) if shown else 0
        out += [f"## {table}: {splits} splits", "", "| model | RMSE | against CatBoost | covered |"]
        out.append("| --- | --- | --- | --- |")
        out += [_row(WORDS[name], own[name], own["catboost"]) for name in shown]
        out.append("")
    publish("known", out)


def _lines(model: str, table: str) -> dict[int, dict[str, Any]]:
    return {own["split"]: own for own in lines(f"known-{model}") if own["table"] == table}


def _row(name: str, own: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]) -> str:
    # Not in the revision that `before` measures.
    from benchmarks.atlas.pooling import interval

    mean = np.mean([line["rmse"] for line in own.values()])
    logs = [np.log(own[n]["rmse"] / other[n]["rmse"]) for n in own if n in other]
    against = ""
    if own is not other and len(logs) > 1:
        low, middle, high = interval(logs)
        against = f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"
    covered = [line["covered"] for line in own.values() if "covered" in line]
    share = f"{100 * np.mean(covered):.1f} %" if covered else ""
    return f"| {name} ({len(own)}) | {mean:.4g} | {against} | {share} |"


if __name__ == "__main__":
    command, *more = sys.argv[1:]
    if command == "show":
        show()
    else:
        jobs, named = [*more, *["2", "auto,erm,catboost,mlp"][len(more) :]]
        todo = [Cell(table, split) for split in range(SPLITS) for table in TABLES]
        for name in named.split(","):
            measure(f"known-{name}", MODELS[name], todo, jobs=int(jobs))
