"""The plan of a network's study: made by one process, and followed by all who want the same."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regaug._files import JSON
from regaug.exceptions import ArgumentError
from regaug.problems import Problem
from regaug.runs.claims import alone
from regaug.runs.run import run_key
from regaug.studies.budget import Asked, Budget
from regaug.studies.config import Search
from regaug.studies.folders import find_about
from regaug.studies.plan import Plan, make_network_plan, measure_budget


@contextmanager
def planning_alone(root: Path | None, problem: Problem, asked: Asked) -> Iterator[None]:
    """Let one process plan the study of a network; others who want the same follow it.

    How large such a study is depends on what was measured, so each would have planned another one.
    """
    if root is None or problem.kind != "network":
        yield
        return
    wish: dict[str, JSON] = {"problem": problem.name, "metric": problem.metric}
    wish |= {"asked": asked.to_dict()}
    is_new = not root.exists()
    try:
        with alone(root / f".plan-{run_key(wish)[:16]}.json"):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # unless there is something in it now
                root.rmdir()


def plan_network(
    problem: Problem,
    asked: Asked,
    root: Path | None,
    *,
    seed: int,
    search: Search,
    jobs: int,
) -> Plan:
    """Plan the study of a network: as it was planned before, if it was, and else by measuring."""
    kept = None
    if root is not None:
        known: dict[str, JSON] = {"problem": problem.name, "metric": problem.metric}
        known |= {"seed": seed, "search": search}
        kept = find_about(root, known, {"asked": asked.to_dict()})
    if kept is None:
        budget = measure_budget(problem, asked, seed=seed, jobs=jobs)
    else:
        budget = Budget.from_dict(kept["budget"])
    return make_network_plan(problem, budget, seed=seed, search=search)


def kept_plan(plan: Plan, asked: Asked) -> dict[str, object]:
    """Return what a folder keeps of a plan, for whoever continues it."""
    if plan.budget is None:
        return {}
    return {"asked": asked.to_dict(), "budget": plan.budget.to_dict()}


def with_epochs(problem: Problem, asked: Asked) -> Problem:
    """Return a problem with the epochs that are asked for; refuse what is for networks alone."""
    if asked.fair != "epochs":
        raise ArgumentError(
            f"`fair` must be 'epochs' for a {problem.kind}, got {asked.fair!r}. It is for networks "
            "of your own."
        )
    if asked.epochs is None:
        return problem
    if problem.kind == "lightning":
        return problem.with_epochs(asked.epochs)
    raise ArgumentError(
        f"`epochs` must be None for a {problem.kind}, got {asked.epochs}. It is for networks of "
        "your own: the recipes of a table say how long they train."
    )
