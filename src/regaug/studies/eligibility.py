"""Which methods can act on a problem, and which baselines can stand beside them."""

from collections.abc import Sequence

from regaug.exceptions import ArgumentError
from regaug.methods import MAKERS
from regaug.problems import Problem
from regaug.studies.limits import leave_out_by_mask
from regaug.studies.logged import leave_out_logged
from regaug.studies.makers import leave_out_by_rows
from regaug.studies.rehearsal import leave_out_by_place
from regaug.training.baselines import baseline_names


def leave_out(problem: Problem, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods that can act on a problem, and sentences about where, and the others."""
    if problem.lightning is not None:
        return leave_out_logged(problem.lightning, names)
    if problem.kind == "estimator":
        return leave_out_by_rows(problem, names)
    if rows := [name for name in names if name in MAKERS]:
        raise ArgumentError(
            f"`methods` must act in a training, got {', '.join(rows)}: rows are for a regressor. "
            "Name it as `model`, such as 'boosting'."
        )
    names, sentences = leave_out_by_mask(problem, names)
    names, others = leave_out_by_place(problem, names)
    return names, [*sentences, *others]


def find_baselines(problem: Problem) -> tuple[str, ...]:
    """Return the baselines of a problem: none where the rows are not ours to know."""
    if problem.kind == "lightning":
        return ()
    # A regressor that is one of them is there anyway, without new rows.
    return tuple(name for name in baseline_names(problem.splits[0]) if name != problem.model)
