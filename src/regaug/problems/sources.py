"""Where problems come from: a table, a named data set, a file, loaders of somebody else's."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from regaug import _random
from regaug._checks import check_integer
from regaug._scripts import blaming, find_in_script
from regaug.data import load
from regaug.data.base import Data, Part, Split
from regaug.data.splits import SplitRule
from regaug.data.tabular.table import Table
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.training.logged import LoggedTraining

# A study of more rows than that looks at so many of them, and of a wide table at so many numbers,
# but not at fewer rows than the last.
MOST_ROWS, MOST_NUMBERS, FEWEST_ROWS = 12_000, 400_000, 2_000


def divide_table(
    data: Data, count: int, split: SplitRule | None, *, seed: int, most_rows: int | None
) -> tuple[list[Split], list[str]]:
    """Return so many splits of a table, of some of its rows if it has many, and what to say.

    Arguments are those of :meth:`regaug.Problem.from_table`.
    """
    if not isinstance(data, Data):
        raise ArgumentTypeError(
            "`data` must be a table (regaug.data.read_table, regaug.data.load), got "
            f"{type(data).__name__}."
        )
    if data.info.task != "table":
        raise ArgumentError(
            f"`data` must be a table, got {data.info.name}, "
            f"{'an' if data.info.task == 'image' else 'a'} {data.info.task} data set. "
            f"Take Problem.named({data.info.name!r}), which has a network for it."
        )
    if split is not None and not isinstance(data, Table):
        raise ArgumentError(
            f"`split` must be None for data that knows how it is split, got {split!r}."
        )
    check_integer("splits", count, 1)
    check_integer("seed", seed, 0)
    divide = data.split if split is None else partial(cast(Table, data).split, split=split)
    numbers = [_random.derive(_random.Stream.SPLITS, seed, i) for i in range(count)]
    splits: list[Split] = [divide(number % 2**31) for number in numbers]
    notes = []
    if count > 1 and len({own.test.rows.tobytes() for own in splits}) == 1:
        splits = splits[:1]
        notes.append("This data has one split only, so nothing can be said of certainty.")
    total = sum(len(part) for part in splits[0].parts.values())
    columns = splits[0].train.x[0].numel()
    most = _limit_rows(columns) if most_rows is None else check_integer("most_rows", most_rows, 1)
    if total > most:
        notes.append(f"The study looks at {most:,} of the {total:,} rows.")
        splits = [own.subsample(most, seed=seed) for own in splits]
    return splits, notes


def without_encoders(split: Split) -> Split:
    """Return the three parts and nothing else: what a worker needs that makes no new rows."""
    return Split(split.train, split.validation, split.test, blocks=split.blocks)


def _limit_rows(columns: int) -> int:
    """Return at how many rows of so many columns a study looks, at most."""
    return min(MOST_ROWS, max(FEWEST_ROWS, MOST_NUMBERS // columns))


def find_in_file(path: str, name: str, kind: type) -> Any:
    """Return a thing of some kind that a Python file defines, or that a function in it returns."""
    found = find_in_script(path, name)
    what = f"`{name}` of {Path(path).name} must"
    if callable(found) and not isinstance(found, type):
        needed = [own.name for own in signature(found).parameters.values() if _is_needed(own)]
        if needed:
            raise ArgumentTypeError(
                f"{what} be called without arguments, got a function that needs "
                f"{', '.join(needed)}. Give them defaults, or write a function that calls it."
            )
        with blaming():
            found = found()
        what += " return"
    else:
        what += " be"
    if not isinstance(found, kind):
        came = found.__name__ if isinstance(found, type) else type(found).__name__
        raise ArgumentTypeError(f"{what} a regaug.{kind.__name__}, got {came}.")
    return found


def _is_needed(parameter: Parameter) -> bool:
    """Tell whether a function cannot be called without this argument."""
    is_several = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return parameter.default is Parameter.empty and not is_several


@cache
def _load_once(name: str) -> Data:
    return load(name)


def split_named(name: str, number: int) -> Split:
    """Return a split of a named data set, which stays in memory."""
    return _load_once(name).split(number)


def make_lightning(
    make_module: Callable[..., Any], make_datamodule: Callable[..., Any], options: Mapping[str, Any]
) -> Any:
    """Make what trains in Lightning, which is imported for it and not before."""
    make = import_module("regaug.integrations.lightning.training").LightningTraining
    return make(make_module, make_datamodule, **options)


def count_rows(training: LoggedTraining, number: int) -> Split:
    """Return a split of so many rows as somebody else's loaders have, without what is in them."""
    facts, nothing = training.facts, torch.zeros(1)
    train, validation, test = (
        Part(nothing.expand(n, *facts.inputs), nothing.expand(n, facts.targets), np.arange(n))
        for n in facts.sizes
    )
    return Split(train, validation, test)
