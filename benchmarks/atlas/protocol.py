"""The protocol of the atlas: which rows are learned from and tested on, and where results go.

A table with more than 1,200 rows is a random draw of so many. It has four splits, by whole groups
where the index names a column of groups and at random otherwise (dates are inputs like any other;
rows with equal inputs may lie on both sides, for all models and all revisions alike).
A model learns from the training and validation rows of a split in any way it likes, and is scored
on the test rows.
"""

import json
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from regaug.data import load, read_table
from regaug.data.tabular.table import Table
from regaug.problems import Problem

try:
    from regaug.data.duplicates import Duplicates
except ImportError:  # in a revision that does not know of them
    Duplicates = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:  # a revision that is measured may not have it
    from regaug.data import ArrayData

FOLDER = Path(os.environ.get("REGAUG_DATA", "../shared/data")) / "atlas"
RESULTS = Path(__file__).parents[1] / "results" / "atlas"
PREDICTIONS = Path("runs") / "atlas-predictions"  # not among the results: too large to keep
MOST_ROWS, SPLITS = 1_200, 4


@dataclass(frozen=True)
class Cell:
    """One split of one table."""

    table: str
    split: int


@cache
def index() -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in json.loads((FOLDER / "index.json").read_text())}


def cells(tables: Iterable[str] = ()) -> list[Cell]:
    """Return all cells, the first split of every table first."""
    names = list(tables) or list(index())
    return [Cell(name, split) for split in range(SPLITS) for name in names]


def read(name: str) -> Table:
    """Read a table of the atlas, or a named data set by the same rules."""
    if name not in index():
        return _read_named(name)
    entry = index()[name]
    return _draw(pd.read_csv(FOLDER / entry["file"]), entry["target"], entry["group"])


def load_named(name: str) -> "ArrayData":
    """Load a data set that has a name, from beside the atlas if nobody says where it is."""
    if FOLDER.exists():
        os.environ.setdefault("REGAUG_DATA", str(FOLDER.parent))
    return load(name)


def _read_named(name: str) -> Table:
    data = load_named(name)
    frame = pd.DataFrame(data.x, columns=[f"x{number}" for number in range(data.x.shape[1])])
    frame["y"] = data.y[:, 0]
    if data.groups is None:
        return _draw(frame, "y", None)
    return _draw(frame.assign(group=data.groups), "y", "group")


def _draw(frame: pd.DataFrame, target: str, group: str | None) -> Table:
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0).sort_index()
    # The index of a frame is where a row stood; after a draw it would tell the order of time.
    frame = frame.reset_index(drop=True)
    table = read_table(frame, target=target, group=group)
    if Duplicates is not None:
        table.duplicates = Duplicates(np.arange(len(table)))
    return table


def problem(name: str) -> Problem:
    return Problem.from_table(read(name), splits=SPLITS)


def rows(cell: Cell) -> tuple[Table, np.ndarray, np.ndarray]:
    """Return the table of a cell, the rows to learn from and those to test on."""
    table = read(cell.table)
    split = Problem.from_table(table, splits=SPLITS).splits[cell.split]
    learn = np.sort(np.concatenate([split.train.rows, split.validation.rows]))
    return table, learn, split.test.rows


def rmse(prediction: np.ndarray, target: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(np.ravel(prediction) - np.ravel(target)))))


def unexplained(errors: Mapping[str, Sequence[float | None]]) -> float | None:
    """Return the share of the variance that the blend of a study leaves: how noisy a table is."""
    if None in errors["auto"]:
        return None
    logs = np.log(np.array(errors["auto"]) / np.array(errors["mean"]))
    return float(np.exp(2 * logs.mean()))


def measure(
    name: str, do: Callable[[Cell], dict[str, Any]], todo: Sequence[Cell], *, jobs: int = 2
) -> None:
    """Do every cell that the results file ``name`` does not have yet, a line of JSON each."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{name}.jsonl"
    done = {(line["table"], line["split"]) for line in lines(name)}
    left = [cell for cell in todo if (cell.table, cell.split) not in done]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool, file.open("a") as out:
        for cell, found in pool.imap_unordered(_Timed(do), left):
            if isinstance(found, str):  # a long measurement goes on without it
                print(f"{cell.table}, split {cell.split}: {found}", file=sys.stderr, flush=True)
                continue
            line = {"table": cell.table, "split": cell.split, **found}
            out.write(json.dumps(line) + "\n")
            out.flush()


def lines(name: str) -> list[dict[str, Any]]:
    file = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def publish(name: str, lines: Sequence[str]) -> None:
    """Write what was found as a page beside the results, and show it."""
    text = "\n".join(lines).rstrip()
    (RESULTS / f"{name}.md").write_text(f"{text}\n")
    print(text)


class _Timed:
    def __init__(self, do: Callable[[Cell], dict[str, Any]]) -> None:
        self.do = do

    def __call__(self, cell: Cell) -> tuple[Cell, dict[str, Any] | str]:
        import torch

        torch.set_num_threads(1)
        start = time.perf_counter()
        try:
            found = self.do(cell)
        except Exception:
            return cell, traceback.format_exc()
        return cell, {**found, "seconds": round(time.perf_counter() - start, 2)}
