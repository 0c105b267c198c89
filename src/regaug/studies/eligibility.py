"""Which methods can act on a problem, and which baselines can stand beside them."""

from collections.abc import Sequence

from regaug import methods
from regaug.exceptions import ArgumentError
from regaug.methods import MAKERS, teachers_of
from regaug.problems import Problem
from regaug.studies.config import REFERENCE
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
        names, untaught = _leave_out_by_teacher(problem, names)
        kept, sentences = leave_out_by_rows(problem, names)
        return kept, [*sentences, *untaught]
    if rows := [name for name in names if name in MAKERS]:
        raise ArgumentError(
            f"`methods` must act in a training, got {', '.join(rows)}: rows are for a regressor. "
            "Name it as `model`, such as 'boosting'."
        )
    names, sentences = leave_out_by_mask(problem, names)
    names, others = leave_out_by_place(problem, names)
    names, untaught = _leave_out_by_teacher(problem, names)
    return names, [*sentences, *others, *untaught]


def _leave_out_by_teacher(
    problem: Problem, names: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods without those whose teachers cannot be fitted, and what to say of these.

    Of a teacher that labels rows the own error is to be known.
    """
    taught = [name for name in names if teachers_of(name)]
    beside = find_baselines(problem) if taught else ()
    if isinstance(problem.model, str):
        beside = (*beside, problem.model)
    left = [name for name in taught if methods.get(name).taught(beside) is None]
    kept = tuple(name for name in names if name not in left)
    if not left:
        return kept, []
    said = f"Left out, as no teacher can be fitted to these inputs: {', '.join(left)}."
    if not set(kept) - {REFERENCE}:
        raise ArgumentError(f"`methods` must have one that can act on the problem. {said}")
    return kept, [said]


def find_baselines(problem: Problem) -> tuple[str, ...]:
    """Return the baselines of a problem: none where the rows are not ours to know."""
    if problem.kind == "lightning":
        return ()
    # A regressor that is one of them is there anyway, without new rows.
    return tuple(name for name in baseline_names(problem.splits[0]) if name != problem.model)
