"""What a user hands to a study, as a study takes it: data, a model, rows, a column of relevance."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from regaug._registry import lookup
from regaug.data.base import Data, Split
from regaug.data.tabular.foreign import read_foreign
from regaug.data.tabular.table import Table, open_table
from regaug.ensemble.contents import NETS
from regaug.exceptions import ArgumentError, ArgumentTypeError
from regaug.methods import SMOGN
from regaug.metrics import FOCUSES, focus_of
from regaug.problems import Problem
from regaug.runs.factories import Factory
from regaug.training.estimators import REGRESSORS

if TYPE_CHECKING:
    import pandas as pd

AnyData: TypeAlias = "Problem | Data | list[Split] | tuple[Split, ...] | str | Path | pd.DataFrame"


def open_data(data: AnyData, **columns: Any) -> Problem | Data | Sequence[Split]:
    """Return a problem or splits as they are, and a path or a frame as a table."""
    if not isinstance(data, Problem | list | tuple):
        if not isinstance(data, Data) and columns["target"] is None:
            raise ArgumentTypeError(
                "`data` must be a table (regaug.data.read_table, regaug.data.load), a list of "
                "splits, a problem, or a path or a frame with `target`, got "
                f"{type(data).__name__} without it."
            )
        return open_table(data, **columns)
    for name, value in columns.items():
        if value:
            raise ArgumentError(
                f"`{name}` must be None for data that knows its columns, got {value!r}."
            )
    return data


def check_relevance(column: str, metric: str, methods: Sequence[str] | None) -> None:
    """Refuse a column of relevance where nothing would go by it."""
    ends = ", ".join(map(repr, FOCUSES))
    if focus_of(metric) is not None:
        raise ArgumentError(
            f"`focus` must be one of {ends} for the metric {metric!r}, which goes by the targets "
            f"themselves, got {column!r}. A column of relevance is for rows that smogn makes, with "
            "another metric, such as 'rmse'."
        )
    if SMOGN not in (methods or ()):
        raise ArgumentError(
            f"`focus` must be None, or one of {ends} with the metric 'tail-rmse', where no method "
            f"goes by a column of relevance, got {column!r}. Name 'smogn' in `methods`."
        )


def find_model(model: object) -> Any:
    """Return what a problem takes for what a user has named."""
    if not isinstance(model, str):
        return model
    if model == NETS:
        return None
    if ":" not in model:
        return lookup("model", model, {name: name for name in (NETS, *REGRESSORS)})
    factory = Factory(model)
    factory.find()  # now, not in a worker
    return factory


def with_rows(problem: Problem, rows: object, data: Data) -> Problem:
    """Return a problem with rows that were made elsewhere."""
    if problem.kind != "estimator":
        raise ArgumentError(
            "`rows` needs a regressor that learns from new rows, got nets. Choose one: "
            'model="boosting".'
        )
    parts, notes = read_foreign(rows, data, problem.splits)
    return replace(problem, rows=parts, notes=[*problem.notes, *notes])


def name_source(data: Data | None, problem: Problem) -> dict[str, object]:
    """Return how the user named the data, for commands to copy."""
    if isinstance(data, Table):
        return dict(data.given)
    source = problem.source if data is None else data.info.name
    return {"source": source} if source else {}
