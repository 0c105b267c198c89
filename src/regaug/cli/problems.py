"""How a user names a problem that is no table: a Python file of their own, or a data set."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regaug._scripts import is_script
from regaug.cli.options import is_name, refuse
from regaug.exceptions import ArgumentError

if TYPE_CHECKING:
    from regaug.problems import Problem

_OPTIONS = {"relevance": "focus COLUMN"}


def open_problem(
    source: str,
    columns: Mapping[str, Any],
    *,
    metric: str | None = None,
    splits: int | None = None,
    quick: bool = False,
) -> "Problem | None":
    """Return the problem that a user means; None if it is a table.

    Args:
        source: ``study.py:problem``, or the name of a data set that has a network of its own.
        columns: Options that are about tables, by their names; each is refused if it is given.
        metric: The one that was asked for, if any.
        splits: The number that was asked for, if any.
        quick: Whether fewer of them are usual.
    """
    from regaug.data import info
    from regaug.problems import Problem
    from regaug.studies.plan import QUICK_SPLITS, SPLITS

    # What is no option of its own was given as another.
    options = {f"--{_OPTIONS.get(name, name)}": value for name, value in columns.items()}
    if is_script(source):
        refuse(options, f"{source} says itself what is learned from what")
        problem = Problem.from_file(source)
        if metric not in (None, problem.metric):
            raise ArgumentError(
                f"`--metric` must be that of the problem, {problem.metric!r}, got {metric!r}. "
                f"Leave it out, or change it in {source}."
            )
        return problem
    if not is_name(source) or info(source).task == "table":
        return None
    refuse(options, f"the data set {source!r} knows its inputs and how it is split")
    usual = QUICK_SPLITS if quick else SPLITS
    number = usual if splits is None else splits
    return Problem.named(source, splits=number, metric=metric)  # type: ignore[arg-type]
